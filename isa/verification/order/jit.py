"""Compiling with numba: three ways to do it, and a way to call the result.

numba drops a cached function when its file changes, but not when a function that it calls in
another file does. A parameter whose default is a digest of all sources is part of the signature by
which a cached function is found.

Functions that create no arrays need not count who holds one; counting took most of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np

from ....base.numba_cache import enable_cache

Function = TypeVar("Function", bound=Callable[..., Any])

Compiled: TypeAlias = Any       # of numba, which has no types

njit: Compiled = numba.njit
typeof: Compiled = numba.typeof
omitted: Compiled = numba.types.Omitted
OPTIONS = {"error_model": "numpy", "_nrt": False}
NOT_FOR_PYTHON = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry(function: Function) -> Function:
    """A compiled function for Python to call, kept in numba's cache."""
    compiled: Function = njit(**OPTIONS)(function)
    enable_cache(compiled, "verifier", needs_numba=False)
    return compiled


def call_directly(compiled: Function) -> Function:
    """A compiled function, called without numba's dispatch, which looks at every array in dozens
    and takes longer than a short stream. Arguments are arrays, numbers and tuples of these; one
    with a default is left out. Other compiled functions cannot call it."""
    known: dict[tuple[object, ...], Function] = {}
    dispatcher: Compiled = compiled

    @wraps(compiled)
    def call(*arguments: object) -> object:
        kinds: list[object] = []
        _add_kinds(arguments, kinds)
        found = known.get(tuple(kinds))
        if found is not None:
            return found(*arguments, 0.0)           # numba passes something for a default, too
        result = dispatcher(*arguments)
        signature = (*map(typeof, arguments), omitted(dispatcher.py_func.__defaults__[0]))
        if signature in dispatcher.overloads:
            known[tuple(kinds)] = dispatcher.overloads[signature].entry_point
        return result

    _KNOWN[call] = known
    return cast(Function, call)


_KNOWN: dict[Callable[..., object], dict[tuple[object, ...], Compiled]] = {}


def prepare_call(called: Function, *arguments: object) -> Function:
    """What is called directly, for many arguments of the same kinds as these: only these are
    looked at."""
    kinds: list[object] = []
    _add_kinds(arguments, kinds)
    found = _KNOWN[called].get(tuple(kinds))
    if found is None:                       # never called so far
        return called
    return cast(Function, lambda *arguments: found(*arguments, 0.0))


def _add_kinds(values: Iterable[object], kinds: list[object]) -> None:
    """Whatever numba tells types apart by, and more."""
    for value in values:
        if isinstance(value, np.ndarray):
            kinds += value.dtype, value.ndim, value.flags.num
        else:
            kinds.append(type(value))
            if isinstance(value, tuple):
                _add_kinds(value, kinds)


def helper(function: Function) -> Function:
    """A function that only compiled functions call: less to compile."""
    compiled: Function = njit(**OPTIONS, **NOT_FOR_PYTHON)(function)
    return compiled


def inline_always(function: Function) -> Function:
    """A helper that becomes part of its only caller, which is not optimized twice then."""
    compiled: Function = njit(inline="always", **OPTIONS, **NOT_FOR_PYTHON)(function)
    return compiled
