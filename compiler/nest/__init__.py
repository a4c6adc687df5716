"""Loop nests: statements over buffers, with a listing, a verifier and an interpreter."""
