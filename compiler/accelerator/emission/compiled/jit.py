"""Compiling the emitter with numba, as `isa.verification.order.jit` does for the verifier. Other
threads run meanwhile."""

from __future__ import annotations

from .....base.numba_cache import enable_cache
from .....isa.verification.order.jit import (
    OPTIONS,
    Function,
    call_directly,
    helper,
    njit,
    prepare_call,
)

__all__ = ["entry", "helper", "prepare_call"]


def entry(function: Function) -> Function:
    """A compiled function for Python to call, kept in numba's cache."""
    compiled: Function = njit(nogil=True, **OPTIONS)(function)
    enable_cache(compiled, "emitter", needs_numba=False)
    return call_directly(compiled)
