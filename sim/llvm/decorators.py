"""Decorators for compiled functions. They have no effect in Python."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., object])
NOT_INLINED: set[object] = set()


def inline(function: Function) -> Function:
    """Always inline a function, as for all that run in every cycle: a call takes longer than most
    of them, and each would be in its own page."""
    return function


def noinline(function: Function) -> Function:
    """Never inline a function, because it is long or rarely runs."""
    NOT_INLINED.add(function)
    return function


class Blank:
    """When called, allocates a record of zeros on the caller's stack.

    As long as every function that gets the record is inlined, and none of its fields is an array,
    it lives in processor registers: reading and writing it costs nothing.
    """

    def __init__(self, dtype: np.dtype[np.void]):
        self.dtype = dtype

    def __call__(self) -> Any:
        return SimpleNamespace(**{name: self._zero(name) for name in self.dtype.names or ()})

    def _zero(self, name: str) -> int | list[int]:
        shape = self.dtype[name].shape
        return [0] * shape[0] if shape else 0
