"""Compiling with numba: three ways to do it.

numba drops a cached function when its file changes, but not when a function that it calls in
another file does. A parameter whose default is a digest of all sources is part of the signature by
which a cached function is found.

Functions that create no arrays need not count who holds one; counting took most of their time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from ....base.numba_cache import enable_cache

Function = TypeVar("Function", bound=Callable[..., Any])

njit: Any = numba.njit
OPTIONS = {"error_model": "numpy", "_nrt": False}
NOT_FOR_PYTHON = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry(function: Function) -> Function:
    """A compiled function for Python to call, kept in numba's cache."""
    compiled: Function = njit(**OPTIONS)(function)
    enable_cache(compiled, "verifier", needs_numba=False)
    return compiled


def helper(function: Function) -> Function:
    """A function that only compiled functions call: less to compile."""
    compiled: Function = njit(**OPTIONS, **NOT_FOR_PYTHON)(function)
    return compiled


def inline_always(function: Function) -> Function:
    """A helper that becomes part of its only caller, which is not optimized twice then."""
    compiled: Function = njit(inline="always", **OPTIONS, **NOT_FOR_PYTHON)(function)
    return compiled
