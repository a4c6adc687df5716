"""Compiled functions that Python calls."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from ctypes import c_int64
from dataclasses import dataclass
from threading import Lock
from types import FunctionType

from ...base.arrays import address_of
from ...base.cache import CODE, cache_key
from ...base.machine_code import Library, describe_target, object_file
from ...base.processor import host
from ...base.progress import announce
from .branch_odds import Odds
from .functions import ENTRY, Functions
from .values import NUMBER, Array, Kind, Value


class Entry:
    """A function that is compiled at its first call, for arguments of these kinds.

    name        what is being compiled, for the progress message
    sources     a digest of all sources that it is compiled from
    """

    def __init__(self, function: Callable[..., int], kinds: Mapping[str, Kind], *, name: str,
                 sources: str):
        self.function, self.kinds = function, kinds
        self.name, self.sources = name, sources
        self._code: Callable[[int], int] | None = None
        self._lock = Lock()

    def __call__(self, *given: object) -> int:
        """Call it with its arguments in order: arrays, bound or not, integers, or tuples of these.
        It releases the GIL."""
        words: list[int] = []
        for kind, each in zip(self.kinds.values(), given, strict=True):
            _add_words(words, kind, each)
        code = self._code or self._load()
        numbers = array("q", words)
        return code(numbers.buffer_info()[0])

    def use(self, code: Callable[[int], int]) -> None:
        """Call this code from now on instead of what would be compiled."""
        self._code = code

    def _load(self) -> Callable[[int], int]:
        with self._lock:                # one thread compiles, the others wait
            if self._code is None:
                key = cache_key(self.name, self.sources, describe_target(host()))
                self._code = entry_of(CODE.get_or_make(key, self._compile))
            return self._code

    def _compile(self) -> bytes:
        with announce(f"compiling the {self.name}, once: this takes some seconds"):
            return object_file(self.text())

    def text(self, odds: Odds | None = None) -> str:
        """The function and everything it calls, as LLVM IR."""
        functions = Functions(self.function.__name__, odds or Odds())
        assert isinstance(self.function, FunctionType)
        functions.entry(self.function, tuple(self.kinds.values()))
        return str(functions.module)


def entry_of(code: bytes) -> Callable[[int], int]:
    """The entry in an object file: it takes the address of its arguments and returns a number."""
    entry: Callable[[int], int] = Library(code).function(ENTRY, c_int64, c_int64)
    return entry


@dataclass(frozen=True, eq=False)
class BoundArray:
    """An array with its address looked up, to be passed many times."""

    kind: Kind
    array: Value                # kept alive
    words: tuple[int, ...]

    def __reduce__(self) -> str:
        raise TypeError("an address means nothing to another process")


def bind_array(kind: Kind, array: Value) -> Value:
    words: list[int] = []
    _add_words(words, kind, array)
    return BoundArray(kind, array, tuple(words))


def _add_words(words: list[int], kind: Kind, value: Value) -> None:
    """Append the words of an argument: a number, an array, a record (an array of one) or a
    tuple."""
    if isinstance(value, BoundArray):
        assert value.kind is kind, f"{value.kind} instead of {kind}"
        words += value.words
    elif isinstance(kind, tuple):
        for part, each in zip(kind, value, strict=True):
            _add_words(words, part, each)
    elif kind is NUMBER:
        words.append(value)
    else:
        dtype, shape = value.dtype, kind.shape if isinstance(kind, Array) else (1,)
        assert dtype is kind.dtype or dtype == kind.dtype, f"an array of {dtype}"
        assert value.flags.c_contiguous
        words.append(address_of(value))
        for known, length in zip(shape, value.shape, strict=True):
            if known is None:
                words.append(length)
            else:
                assert length == known, f"an array has {length} elements, not {known}"
