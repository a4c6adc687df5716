"""Programs of kernels that were compiled before, by any process.

A program follows from the form, the knobs and the sources of the compiler. All three are in its
key: a form as pickle writes it down, of which nothing is ever read back.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from ...base.cache import RESULTS, cache_key
from ...base.source_digest import source_digest
from ...isa.config import Config
from ...isa.program import Access, Program, Segment, Tensor
from ...isa.stream import as_bytes, from_bytes

KIND = "kernel"
OURS = __name__.partition(".")[0]
FIXED = ("builtins", "numpy")       # with Python, or with the installation


class ForeignError(Exception):
    """Code outside the package, whose sources are not in the key: results are not cached."""


def cached_program(make: Callable[[], Program], config: Config, *made_from: object) -> Program:
    """The program that `make` returns, taken from the cache if it is there. It depends on nothing
    but the configuration, `made_from`, and the sources of `make` and of all functions and types in
    there."""
    key = _key((make.__module__,), (config, *made_from)) if RESULTS.is_used() else None
    if key is None:
        return make()
    content = RESULTS.get(key)
    if content is not None:
        return _deserialize(content, config)
    program = make()
    RESULTS.put(key, _serialize(program))
    return program


def _serialize(program: Program) -> bytes:
    """What it takes to rebuild one of our programs. Only its first segment has data."""
    micro_ops, *others = program.segments
    assert micro_ops.data is not None, "micro-ops are known"
    assert all(each.data is None for each in others), "an operator's constants are given later"
    code = as_bytes(program.code).tobytes()
    facts = {"segments": [(each.name, each.size, each.access.value) for each in program.segments],
             "tensors": [(each.name, each.segment, each.offset, each.shape, each.dtype)
                         for each in program.tensors], "code": len(code)}
    return json.dumps(facts).encode() + b"\n" + code + micro_ops.data.tobytes()


def _deserialize(content: bytes, config: Config) -> Program:
    """The program again. It was checked when it was made, and its bytes are as they were then."""
    text, _, rest = content.partition(b"\n")
    facts = json.loads(text)
    code, micro_ops = rest[:facts["code"]], np.frombuffer(rest, np.uint8)[facts["code"]:]
    segments = [Segment(name, size, Access(access)) for name, size, access in facts["segments"]]
    return Program(config, from_bytes(code), (replace(segments[0], data=micro_ops), *segments[1:]),
                   tuple(Tensor(*each) for each in facts["tensors"]))


def _key(modules: Iterable[str], made_from: tuple[object, ...]) -> str | None:
    """The key of a program that these modules make, or None if it is not certain what the program
    depends on."""
    text = io.BytesIO()
    writer = _Writer(text, pickle.HIGHEST_PROTOCOL)
    try:
        writer.dump(made_from)
    except (ForeignError, pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return cache_key(KIND, source_digest(*sorted({*modules, *writer.modules})), text.getvalue())


class _Writer(pickle.Pickler):
    """Writes down what an object consists of: for a function, its name and what it closes over; for
    a record, its fields, but no properties that were computed from them since. `modules` are those
    of ours that it comes from."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.modules: set[str] = set()

    def reducer_override(self, value: object) -> Any:
        kind: type = type(value)
        names = _fields(kind)
        if names is not None:
            return kind, tuple([getattr(value, each) for each in names])
        if kind is FunctionType or issubclass(kind, type):
            package = value.__module__.partition(".")[0]
            if package == OURS:
                self.modules.add(value.__module__)
            elif package not in FIXED:
                raise ForeignError
            if isinstance(value, FunctionType):
                bound = tuple(cell.cell_contents for cell in value.__closure__ or ())
                return str, (value.__qualname__, value.__module__, bound, value.__defaults__)
        return NotImplemented


@cache
def _fields(kind: object) -> tuple[str, ...] | None:
    """The fields of a type, if it is a dataclass."""
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None
