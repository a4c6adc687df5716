"""What compiled code says about itself. To Python, these functions are as any others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
CALLED: set[Any] = set()


def inlined(function: Function) -> Function:
    """A function that is inlined wherever it is called, as are all that run in every cycle: a call
    takes longer than what most of them do, and each would lie on a page of its own."""
    return function


def called(function: Function) -> Function:
    """A function that is called, because it runs seldom or has many lines."""
    CALLED.add(function)
    return function


class Blank:
    """Called in compiled code, it is a record of zeros that lives as long as the caller.

    As long as every function that gets the record is inlined, and none of its fields is an array,
    it exists only as values in processor registers: reading and writing it costs nothing.
    """

    def __init__(self, dtype: np.dtype[np.void]):
        self.dtype = dtype

    def __call__(self) -> Any:
        return SimpleNamespace(**dict.fromkeys(self.dtype.names or (), 0))
