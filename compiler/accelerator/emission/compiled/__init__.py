"""The emitter as compiled code, over arrays."""
