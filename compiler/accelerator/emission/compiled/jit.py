"""Compiling the emitter with numba, as `isa.verification.order.jit` does for the verifier."""

from __future__ import annotations

from typing import cast

from .....base.compiled.deferred_functions import Entry, bind
from .....isa.verification.order.jit import Function, helper, inline_always

__all__ = ["bind", "entry", "helper", "inline_always"]


def entry(function: Function) -> Function:
    """A compiled function for Python to call. Other threads run meanwhile."""
    return cast(Function, Entry(function, "emitter"))
