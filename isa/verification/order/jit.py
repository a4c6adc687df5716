"""Compiling with numba: three ways to do it.

A function that Python calls in order to verify a program is an `entry_point`, and loaded without
numba. Functions that create no arrays need not count who holds one; counting took most of their
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from ....base.compiled.deferred_functions import OPTIONS, Deferred, Entry

Function = TypeVar("Function", bound=Callable[..., object])

NOT_FOR_PYTHON = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
VERIFIER = "verifier"


def entry_point(function: Function) -> Function:
    """A compiled function for Python to call, and not for others. Arguments are arrays, numbers and
    tuples of these; results are numbers."""
    return cast(Function, Entry(function, f"{VERIFIER} ({function.__name__})"))


def entry(function: Function) -> Function:
    """A compiled function for Python and others to call, kept in numba's cache."""
    return cast(Function, Deferred(function, OPTIONS, VERIFIER))


def helper(function: Function) -> Function:
    """A function that only compiled functions call: less to compile."""
    return cast(Function, Deferred(function, OPTIONS | NOT_FOR_PYTHON))


def inline_always(function: Function) -> Function:
    """A helper that becomes part of its only caller, which is not optimized twice then."""
    return cast(Function, Deferred(function, {"inline": "always"} | OPTIONS | NOT_FOR_PYTHON))
