"""Marks for functions that are compiled. In Python they have no effect."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
NOT_INLINED: set[object] = set()


def inline(function: Function) -> Function:
    """For a function to be inlined wherever it is called, as all that run in every cycle are: a
    call takes longer than what most of them do, and each would be on a page of its own."""
    return function


def noinline(function: Function) -> Function:
    """For a function that remains a function, because it is long or rarely runs."""
    NOT_INLINED.add(function)
    return function


class Blank:
    """When called, makes a record of zeros that exists until the caller returns.

    As long as every function that gets the record is inlined, and none of its fields is an array,
    it consists of values in processor registers only: reading and writing it costs nothing.
    """

    def __init__(self, dtype: np.dtype[np.void]):
        self.dtype = dtype

    def __call__(self) -> Any:
        return SimpleNamespace(**dict.fromkeys(self.dtype.names or (), 0))
