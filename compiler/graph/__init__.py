"""The graph of a network: typed, flat and frozen, with a listing, a verifier and a meaning."""
