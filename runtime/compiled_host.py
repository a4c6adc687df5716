"""The CPU's part of a model as machine code: compiled once, kept, and run by several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes import CFUNCTYPE, Structure, c_int32, c_int64, c_void_p, cast
from functools import lru_cache
from typing import Any

import numpy as np

from ..compiler.cpu.code.entry import RUN_STEPS, Entry, finder
from ..compiler.cpu.part import Part, compile_function, compile_part
from ..compiler.cpu.tiles import PLAIN, TILES, packed, unpacked
from ..compiler.expression.tensor import Tensor
from ..compiler.graph.graph import Graph
from ..compiler.graph.types import Array, GraphError, TensorType
from ..compiler.operators.layout import Layout
from ..isa.values import named
from ..native.target import host
from .device import Bytes
from .host import Nodes, Pack, Unpack
from .kernel_code import functions_of
from .short_turns import short_turns
from .thread_pool import Kernel, pool_of, thread_count

ALIGNED = 64                # bytes: a cache line
WORTH_SHARING = 1 << 16     # elements of a kernel from which on threads share it
Find = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_int64, c_int64)   # as of `finding`
Run = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32, c_int32)              # as of `running_steps`


class _Step(Structure):
    """A kernel as `running_steps` reads it."""

    _fields_ = (("finder", c_void_p), ("places", c_void_p), ("body", c_void_p),
                ("iterations", c_int64))


class LoadedPart:
    """A part that is in memory, with the memory that it works in. Runs one at a time."""

    def __init__(self, part: Part, threads: int, *, optimize: bool = True) -> None:
        self.part, self.threads = part, threads
        self._places: list[Any] = []        # of each kernel; steps have their addresses
        self._functions = functions_of(part.module, optimize=optimize)
        self._run = Run(self._functions[RUN_STEPS].address)
        self._steps = (_Step * len(part.kernels))(*map(self._step, part.module.entries))
        self._stretches = list(self._all_stretches())
        self._memory = np.empty(part.scratch_bytes + ALIGNED, np.uint8)
        start = -self._memory.ctypes.data % ALIGNED + self._memory.ctypes.data
        self._table = (c_void_p * max(1, part.places))()
        for place, offset in part.scratch.items():
            self._table[place] = start + offset
        for place, array in part.constants.items():
            self._table[place] = array.ctypes.data

    def _step(self, entry: Entry) -> _Step:
        places = (c_int32 * len(entry.places))(*entry.places)
        self._places.append(places)
        return _Step(self._functions[finder(len(entry.places))].address, cast(places, c_void_p),
                     self._functions[entry.body].address, entry.iterations)

    def _all_stretches(self) -> Iterator[tuple[int, int, Kernel | None]]:
        """Kernels that run in a row, from … to before …, or one that threads share."""
        first = 0
        for number, kernel in enumerate(self.part.kernels):
            if self.threads > 1 and kernel.iterations > 1 and kernel.work >= WORTH_SHARING:
                if number > first:
                    yield first, number, None
                yield number, number + 1, self._shared(number)
                first = number + 1
        if first < len(self.part.kernels):
            yield first, len(self.part.kernels), None

    def _shared(self, number: int) -> Kernel:
        """A kernel for threads to share."""
        step, places = self._steps[number], self._places[number]
        find, body = Find(step.finder), step.body
        return lambda table, first, last: int(find(table, places, body, first, last))

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
        for first, last, shared in self._stretches:
            if shared is None:
                failed = self._run(self._table, self._steps, first, last)
            else:
                kernel = part.kernels[first]
                failed = last if pool_of(self.threads).run(shared, self._table,
                                                           kernel.iterations) else 0
            if failed:
                raise GraphError(f"{named(part.kernels[failed - 1].node)}: an index from data is "
                                 f"outside its axis")
        return outputs


@lru_cache(64)
def _move(function: Callable[[Layout, str], Tensor], layout: Layout, dtype: str) -> Part:
    """Into tiles or out of them: most layers of a network have the same ones."""
    return compile_function(function(layout, dtype), host())


class CompiledBackend:
    """What the graph means, by compiled kernels. A node that cannot be compiled is an error that
    names it."""

    name = "compiled"

    def __init__(self, threads: int | None = None, *, optimize: bool = True) -> None:
        """Code that is to run once may do without optimizations, which take most of the time."""
        self.threads, self.optimize = thread_count(threads), optimize
        self._compiler = ThreadPoolExecutor(1, "microtron compiler")

    def nodes(self, part: Graph) -> Nodes:
        loading = self._loading(compile_part(part, host()))
        empty = {name: np.empty(part.type_of(name).shape, part.type_of(name).dtype)
                 for name in part.outputs if part.type_of(name).size == 0}

        def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
            values = {**loading.result()(inputs), **empty}
            return {name: values[name] for name in part.outputs}
        return run

    def pack(self, layout: Layout, type_: TensorType) -> Pack:
        loading = self._loading(_move(packed, layout, type_.dtype))

        def pack(tensor: Array) -> Bytes:
            tiles: Any = loading.result()({PLAIN: tensor})[TILES]
            return tiles.view(np.uint8).reshape(-1)         # type: ignore[no-any-return]
        return pack

    def unpack(self, layout: Layout, type_: TensorType) -> Unpack:
        loading = self._loading(_move(unpacked, layout, type_.dtype))
        return lambda tiles: loading.result()({TILES: tiles})[PLAIN].reshape(type_.shape)

    def _loading(self, part: Part) -> Future[LoadedPart]:
        """A part that will be loaded. LLVM, which takes longest, works on it while Python prepares
        the next."""
        return self._compiler.submit(self._loaded, part)

    def _loaded(self, part: Part) -> LoadedPart:
        with short_turns:
            return LoadedPart(part, self.threads, optimize=self.optimize)
