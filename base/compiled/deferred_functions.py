"""Functions for numba to compile, which cost nothing until somebody calls them.

Importing numba takes a quarter of a second, and what it compiled can be called without it. So
decorators only write down what is to be compiled. An entry, whose arguments are arrays, numbers and
tuples of these, takes them as a list of words: addresses, extents and values. Its machine code lies
in our own cache and is loaded by LLVM alone; numba is imported if there is none (`numba_entry`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, c_int32, c_int64, c_void_p
from functools import update_wrapper
from threading import Lock, RLock
from typing import TypeAlias, TypeVar, cast

import numpy as np

from ..arrays import address_of
from ..cache import CODE, cache_key
from ..numba_cache import Compiled, enable_cache
from ..progress import announce
from ..source_digest import source_digest

Function: TypeAlias = Callable[..., Compiled]
Value = TypeVar("Value")
Code: TypeAlias = Callable[[int, int, int], int]

OPTIONS = {"error_model": "numpy", "_nrt": False}       # without arrays that are created
END_OF_NAME = b"\0"

_lock = RLock()
_waiting: list[Deferred] = []


class Deferred:
    """A function that is compiled with the others, as soon as one of them is needed. With the name
    of a cache, Python may call it, too, and numba's cache keeps it."""

    def __init__(self, function: Function, options: Mapping[str, object], cache: str = ""):
        self.function, self.options, self.cache = function, dict(options), cache
        self.compiled: Compiled = None
        update_wrapper(self, function)
        _waiting.append(self)

    def __call__(self, *arguments: object) -> object:
        compile_deferred()
        return self.compiled(*arguments)


def compile_deferred() -> None:
    """Hand all functions to numba, and replace them where others find them by name. It compiles
    each when it is called."""
    import numba

    njit: Compiled = numba.njit
    with _lock:
        found, _waiting[:] = list(_waiting), []
        for each in found:
            each.compiled = njit(**each.options)(each.function)
            if each.cache:
                enable_cache(each.compiled, each.cache, needs_numba=False)
        for each in found:
            names = each.function.__globals__
            for name, value in list(names.items()):
                if isinstance(value, Deferred):
                    names[name] = value.compiled


def bind(value: Value) -> Value:
    """An argument whose addresses are looked up once, for many calls."""
    return cast(Value, Bound(value))


class Bound:
    """What `bind` makes of an argument."""

    def __init__(self, value: object):
        self.value = value
        self.words: list[int] = []
        self.kinds: list[object] = []
        _flatten(value, self.words, self.kinds)


class Entry:
    """A function that returns a number, or a tuple of numbers. While it runs, other threads can,
    too. `name` is what a person is told that is compiled; `sources`, what it is compiled from, if
    that is not one of our modules."""

    def __init__(self, function: Function, name: str, *, sources: str = ""):
        self.function, self.name, self.sources = function, name, sources
        result = function.__annotations__["return"]
        self._result: Function | None = getattr(result, "_make", None)
        results = len(getattr(result, "_fields", getattr(result, "__args__", " ")))
        self._empty = (0,) * (results + 1)      # results, and one word for numba
        if self._result is None and result is not int:
            self._result = tuple
        self._known: dict[tuple[object, ...], Code] = {}
        self._lock = Lock()
        update_wrapper(self, function)

    def __call__(self, *arguments: object) -> Compiled:
        words: list[int] = []
        kinds: list[object] = []
        for each in arguments:
            _flatten(each, words, kinds)
        code = self._known.get(tuple(kinds)) or self._load(arguments, tuple(kinds))
        count = len(words)
        room = array("q", [*words, *self._empty])
        begin, length = room.buffer_info()
        ended = code(begin + room.itemsize * (length - 1), 0, begin)
        assert ended == 0, "these functions raise nothing"
        found = room[count:-1]
        return found[0] if self._result is None else self._result(found)

    def _load(self, arguments: tuple[object, ...], kinds: tuple[object, ...]) -> Code:
        from ..machine_code import Library, describe_target
        from ..processor import host

        with self._lock:                # one thread compiles, the others wait
            if kinds not in self._known:
                sources = self.sources or source_digest(self.function.__module__)
                key = cache_key(self.name, self.function.__qualname__, repr(kinds), sources,
                                source_digest(__name__), describe_target(host()))
                name, _, code = CODE.get_or_make(key, lambda: self._compile(
                    arguments)).partition(END_OF_NAME)
                function = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int64)
                library = Library(code)
                made = function(library.address(name.decode()))
                made.library = library          # type: ignore[attr-defined]    # keeps it alive
                self._known[kinds] = made
            return self._known[kinds]

    def _compile(self, arguments: tuple[object, ...]) -> bytes:
        with announce(f"compiling the {self.name}, once: this takes some seconds"):
            compile_deferred()
            from .numba_entry import compile_entry

            name, code = compile_entry(self.function, tuple(map(_unbind, arguments)), OPTIONS)
            return name.encode() + END_OF_NAME + code


def _unbind(value: object) -> object:
    return value.value if isinstance(value, Bound) else value


def _flatten(value: object, words: list[int], kinds: list[object]) -> None:
    """The words of an argument, and whatever numba tells types apart by."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        assert flags.c_contiguous, "a row of elements one after the other"
        words.append(address_of(value) if value.size else 0)    # nobody reads there
        words += value.shape
        kinds += value.dtype, value.ndim, flags.writeable
    elif isinstance(value, Bound):
        words += value.words
        kinds += value.kinds
    else:
        kinds.append(type(value))
        if isinstance(value, tuple):
            kinds.append(len(value))
            for each in value:
                _flatten(each, words, kinds)
        else:
            assert isinstance(value, int | np.integer), "arguments are numbers, or arrays of them"
            words.append(int(value))
