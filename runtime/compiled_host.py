"""The CPU's part of a model as machine code: compiled once, kept, and run by several threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ctypes import c_int32, c_int64, c_void_p
from typing import Any

import numpy as np

from ..compiler.cpu.part import RUN, Part, compile_function, compile_part
from ..compiler.cpu.tiles import PLAIN, TILES, packed, unpacked
from ..compiler.graph.graph import Graph
from ..compiler.graph.types import Array, GraphError, TensorType
from ..compiler.operators.layout import Layout
from ..isa.values import named
from ..native.kept import kept
from ..native.machine_code import Library, described, object_file
from ..native.target import host
from .device import Bytes
from .host import Nodes, Pack, Unpack
from .thread_pool import Kernel, pool_of, thread_count

ALIGNED = 64                # bytes: a cache line
WORTH_SHARING = 1 << 16     # elements of a kernel from which on threads share it


class LoadedPart:
    """A part that is in memory, with the memory that it works in. Runs one at a time."""

    def __init__(self, part: Part, threads: int) -> None:
        self.part, self.threads = part, threads
        library = Library(*map(_compiled, part.module.pieces()))
        self._run = library.function(RUN, c_int32, c_void_p, c_int32, c_int32)
        self._steps = list(self._stretches(library))
        self._memory = np.empty(part.scratch_bytes + ALIGNED, np.uint8)
        start = -self._memory.ctypes.data % ALIGNED + self._memory.ctypes.data
        self._table = (c_void_p * max(1, part.places))()
        for place, offset in part.scratch.items():
            self._table[place] = start + offset
        for place, array in part.constants.items():
            self._table[place] = array.ctypes.data

    def _stretches(self, library: Library) -> Iterator[tuple[int, int, Kernel | None]]:
        """Kernels that run in a row, from … to before …, or one that threads share."""
        first = 0
        for number, kernel in enumerate(self.part.kernels):
            if self.threads > 1 and kernel.iterations > 1 and kernel.work >= WORTH_SHARING:
                if number > first:
                    yield first, number, None
                yield number, number + 1, library.function(kernel.name, c_int32, c_void_p, c_int64,
                                                           c_int64)
                first = number + 1
        if first < len(self.part.kernels):
            yield first, len(self.part.kernels), None

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        part, given = self.part, []
        for name, place in part.inputs.items():
            array = np.ascontiguousarray(inputs[name])
            given.append(array)                 # it must live until the end
            self._table[place] = array.ctypes.data
        outputs = {}
        for name, place in part.outputs.items():
            type_ = part.types[name]
            outputs[name] = np.empty(type_.shape, type_.dtype)
            self._table[place] = outputs[name].ctypes.data
        for first, last, shared in self._steps:
            if shared is None:
                failed = self._run(self._table, first, last)
            else:
                kernel = part.kernels[first]
                failed = last if pool_of(self.threads).run(shared, self._table,
                                                           kernel.iterations) else 0
            if failed:
                raise GraphError(f"{named(part.kernels[failed - 1].node)}: an index from data is "
                                 f"outside its axis")
        return outputs


def _compiled(text: str) -> bytes:
    """A module as an object file, from the cache if possible."""
    return kept("kernel", f"{text}\n{described(host())}", lambda: object_file(text, unroll=False),
                takes_long=False)


class CompiledBackend:
    """What the graph means, by compiled kernels. A node that cannot be compiled is an error that
    names it."""

    name = "compiled"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def nodes(self, part: Graph) -> Nodes:
        loaded = LoadedPart(compile_part(part, host()), self.threads)
        empty = {name: np.empty(part.type_of(name).shape, part.type_of(name).dtype)
                 for name in part.outputs if part.type_of(name).size == 0}

        def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
            values = {**loaded(inputs), **empty}
            return {name: values[name] for name in part.outputs}
        return run

    def pack(self, layout: Layout, type_: TensorType) -> Pack:
        loaded = LoadedPart(compile_function(packed(layout, type_.dtype), host()), self.threads)

        def pack(tensor: Array) -> Bytes:
            tiles: Any = loaded({PLAIN: tensor})[TILES]
            return tiles.view(np.uint8).reshape(-1)         # type: ignore[no-any-return]
        return pack

    def unpack(self, layout: Layout, type_: TensorType) -> Unpack:
        loaded = LoadedPart(compile_function(unpacked(layout, type_.dtype), host()), self.threads)
        return lambda tiles: loaded({TILES: tiles})[PLAIN].reshape(type_.shape)
