"""The CPU's part of a model as machine code: compiled once, kept, and run by several threads."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes import c_int32, c_void_p, cast
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from ...base.checked_values import show_name
from ...base.processor import host
from ...compiler.cpu.code.entry import Entry, finder
from ...compiler.cpu.code.sharing import HELP_STEPS, RUN_STEPS
from ...compiler.cpu.cpu_part import Part
from ...compiler.cpu.part_cache import cached_move, cached_part
from ...compiler.cpu.tiles import PLAIN, TILES
from ...compiler.graph.graph import Graph
from ...compiler.graph.types import Array, GraphError, TensorType
from ...compiler.operators.layout import Layout
from ..devices.device import Bytes
from ..switch_interval import short_switch_interval
from .host import Nodes, Pack, Unpack
from .kernel_code import functions_of
from .thread_pool import Run, Step, pool_of, share_of, thread_count

ALIGNED = 64                # bytes: a cache line
WORTH_SHARING = 1 << 16     # elements of a kernel from which on threads share it


class LoadedPart:
    """A part that is in memory, with the memory that it works in. Runs one at a time."""

    def __init__(self, part: Part, threads: int, *, optimize: bool = True) -> None:
        self.part, self.threads = part, threads
        self._places: list[object] = []     # of each kernel; steps have their addresses
        self._functions = functions_of(part.module, optimize=optimize)
        self._run = Run(self._functions[RUN_STEPS].address)
        self._steps = (Step * len(part.kernels))(*map(self._step, part.kernels))
        self._shared = any(each.share for each in self._steps)
        self._given: dict[int, Array] = {}      # by place: inputs of the last run
        self._memory = np.empty(part.scratch_bytes + ALIGNED, np.uint8)
        start = -self._memory.ctypes.data % ALIGNED + self._memory.ctypes.data
        self._table = (c_void_p * max(1, part.places))()
        for place, offset in part.scratch.items():
            self._table[place] = start + offset
        for place, array in part.constants.items():
            self._table[place] = array.ctypes.data

    def _step(self, entry: Entry) -> Step:
        places = (c_int32 * len(entry.places))(*entry.places)
        self._places.append(places)
        worth = entry.work >= WORTH_SHARING
        return Step(self._functions[finder(len(entry.places))].address, cast(places, c_void_p),
                    self._functions[entry.body].address, entry.iterations,
                    share_of(entry.iterations, self.threads) if worth else 0)

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        outputs = self._bind(inputs)
        self._check(self._run_kernels(0, len(self._steps)))
        return outputs

    def kernel_seconds(self, inputs: Mapping[str, Array]) -> list[float]:
        """What each kernel takes in one run, apart from the others."""
        outputs = self._bind(inputs)            # they have to live until the end
        found = []
        for number in range(len(self._steps)):
            start = perf_counter()
            failed = self._run_kernels(number, number + 1)
            found.append(perf_counter() - start)
            self._check(failed)
        del outputs
        return found

    def _bind(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Put the addresses of inputs and new outputs into the table. Many inputs may be those of
        the run before, such as weights that are tried on samples."""
        part = self.part
        for name, place in part.inputs.items():
            given = inputs[name]
            if self._given.get(place) is not given:
                self._given[place] = array = np.ascontiguousarray(given)
                self._table[place] = array.ctypes.data
        outputs = {}
        for name, place in part.outputs.items():
            type_ = part.types[name]
            outputs[name] = np.empty(type_.shape, type_.dtype)
            self._table[place] = outputs[name].ctypes.data
        return outputs

    def _check(self, failed: int) -> None:
        if failed:
            raise GraphError(f"{show_name(self.part.kernels[failed - 1].node)}: an index from data "
                             "is outside its axis")

    def _run_kernels(self, first: int, last: int) -> int:
        """Run kernels `first` to before `last`: 0, or the number of one that failed, from 1 on."""
        if not self._shared:
            return int(self._run(self._table, self._steps, first, last, None))
        pool = pool_of(self.threads, self._functions[HELP_STEPS])
        return pool.run(self._run, self._table, self._steps, first, last)


@lru_cache(64)
def _move(layout: Layout, dtype: str, *, into_tiles: bool) -> Part:
    """Into tiles or out of them: most layers of a network have the same ones."""
    return cached_move(layout, dtype, host(), into_tiles=into_tiles)


class CompiledBackend:
    """What the graph means, by compiled kernels. A node that cannot be compiled is an error that
    names it."""

    name = "compiled"

    def __init__(self, threads: int | None = None, *, optimize: bool = True) -> None:
        """Code that is to run once may do without optimizations, which take most of the time."""
        self.threads, self.optimize = thread_count(threads), optimize
        self._compiler = ThreadPoolExecutor(1, "microtron compiler")

    def load(self, part: Graph) -> LoadedPart:
        """A part in memory, here and now."""
        return self._load(cached_part(part, host()))

    def nodes(self, part: Graph) -> Nodes:
        loading = self._loading(cached_part(part, host()))
        empty = {name: np.empty(part.type_of(name).shape, part.type_of(name).dtype)
                 for name in part.outputs if part.type_of(name).size == 0}

        def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
            values = {**loading.result()(inputs), **empty}
            return {name: values[name] for name in part.outputs}
        return run

    def pack(self, layout: Layout, type_: TensorType) -> Pack:
        loading = self._loading(_move(layout, type_.dtype, into_tiles=True))

        def pack(tensor: Array) -> Bytes:
            tiles: Any = loading.result()({PLAIN: tensor})[TILES]
            return tiles.view(np.uint8).reshape(-1)         # type: ignore[no-any-return]
        return pack

    def unpack(self, layout: Layout, type_: TensorType) -> Unpack:
        loading = self._loading(_move(layout, type_.dtype, into_tiles=False))
        return lambda tiles: loading.result()({TILES: tiles})[PLAIN].reshape(type_.shape)

    def _loading(self, part: Part) -> Future[LoadedPart]:
        """A part that will be loaded. LLVM, which takes longest, works on it while Python prepares
        the next."""
        return self._compiler.submit(self._load, part)

    def _load(self, part: Part) -> LoadedPart:
        with short_switch_interval:
            return LoadedPart(part, self.threads, optimize=self.optimize)
