"""The CPU's half on this machine, measured: every kernel and hand-over, the best of a few runs.

Inputs are made up: zeros for integers, which are valid indices everywhere, and numbers from 0 to 1
for floats. What would take too long or too much memory to try, or cannot be compiled here, is
estimated and marked so.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...base.errors import MicrotronError
from ...compiler.graph.graph import Graph
from ...compiler.graph.types import Array, TensorType
from ..models.compiled_host import CompiledBackend, LoadedPart
from ..models.compiled_model import CompiledModel, HostStep, Port
from .estimate import FALLBACK, FALLBACK_MHZ, estimate_times
from .host_times import Handover, HostTimes, NodeTime, Source, ports_of
from .operations import operations_of

MOST_RUNS = 30              # the least time of many short runs is that of an idle machine
LEAST_RUNS = 4              # of a part that is not slow: the first one finds cold caches
SLOW = 1.0                  # seconds of a part that is run no more often than need be
BUDGET = 1.5                # seconds for more runs, of all parts and hand-overs together
MOST_OPERATIONS = 20_000_000_000    # of a part: some ten seconds
MOST_BYTES = 1 << 30        # of all tensors of a part

Say = Callable[[str], None]


def measure_times(model: CompiledModel, *, threads: int | None = None,
                  say: Say | None = None) -> HostTimes:
    """Run what the CPU does for a model, apart from the accelerator, and take its time."""
    backend = CompiledBackend(threads)
    guess = estimate_times(model, FALLBACK, FALLBACK_MHZ)
    parts = {number: step.part for number, step in enumerate(model.steps)
             if isinstance(step, HostStep)}
    share = BUDGET / max(1, len(parts) + len(guess.handovers))
    nodes: dict[str, NodeTime] = {}
    for place, part in enumerate(parts.values(), 1):
        if say is not None:
            say(f"measuring the CPU's part {place} of {len(parts)}")
        nodes |= _part_times(part, backend, share, guess.nodes)
    if say is not None:
        say(f"measuring {len(guess.handovers)} hand-overs")
    handovers = tuple(
        _measure_handover(each, port, backend, share)
        for each, (_, port, _, _) in zip(guess.handovers, ports_of(model), strict=True))
    name = platform.machine() or "unknown"
    many = "1 thread" if backend.threads == 1 else f"{backend.threads} threads"
    return HostTimes(processor=f"this machine ({name}, {many})", nodes=nodes, handovers=handovers)


def _part_times(part: Graph, backend: CompiledBackend, budget: float,
                guess: Mapping[str, NodeTime]) -> dict[str, NodeTime]:
    """The nodes of a part, which was run a few times; estimated where that is out of the
    question."""
    estimated = {name: guess[name] for name in part.nodes}
    operations = sum(operations_of(part, node).total for node in part.nodes.values())
    if operations > MOST_OPERATIONS or sum(each.bytes for each in part.types.values()) > MOST_BYTES:
        return estimated
    try:
        loaded = backend.load(part)
        return _kernel_times(part, loaded, budget)
    except MicrotronError:          # no lowering, or an index that needs real data
        return estimated


def _kernel_times(part: Graph, loaded: LoadedPart, budget: float) -> dict[str, NodeTime]:
    rng = np.random.default_rng(0)
    inputs = {name: random_tensor(type_, rng) for name, type_ in part.inputs.items()}
    start = time.perf_counter()
    best = loaded.kernel_seconds(inputs)
    for number in range(1, MOST_RUNS):
        spent = time.perf_counter() - start
        if spent > (budget if number >= LEAST_RUNS else SLOW):
            break
        best = list(map(min, best, loaded.kernel_seconds(inputs)))
    seconds: dict[str, float] = {}
    for kernel, each in zip(loaded.part.kernels, best, strict=True):
        seconds[kernel.node] = seconds.get(kernel.node, 0) + each
    return {name: NodeTime(seconds[name], Source.MEASURED) if name in seconds else
            _fused_node(part, name, seconds) for name in part.nodes}


def _fused_node(part: Graph, name: str, seconds: Mapping[str, float]) -> NodeTime:
    """A node without a kernel: the one reader computes it on the way, or there is nothing to do."""
    reader = name
    while reader not in seconds:
        readers = part.readers.get(reader, ())
        if len(readers) != 1 or not part.nodes[name].type.size:
            return NodeTime(0.0, Source.MEASURED)       # constant, or empty
        reader = readers[0]
    return NodeTime(None, Source.MEASURED, inside=reader)


def _measure_handover(guess: Handover, port: Port, backend: CompiledBackend,
                      budget: float) -> Handover:
    if guess.bytes > MOST_BYTES or port.type.bytes > MOST_BYTES:
        return guess
    if guess.to_accelerator:
        data: Array = np.zeros(port.type.shape, port.type.dtype)
        work: Callable[[Array], object] = backend.pack(port.layout, port.type)
    else:
        data, work = np.zeros(guess.bytes, np.uint8), backend.unpack(port.layout, port.type)
    work(data)                                          # waits until it is compiled
    stop, best = time.perf_counter() + budget, float("inf")
    for _ in range(MOST_RUNS):
        start = time.perf_counter()
        work(data)
        end = time.perf_counter()
        best = min(best, end - start)
        if end > stop:
            break
    return replace(guess, seconds=best, source=Source.MEASURED)


def random_tensor(type_: TensorType, rng: np.random.Generator) -> Array:
    """Numbers for a tensor of which only the type is known."""
    if type_.is_float:
        return rng.random(type_.shape, np.float32).astype(type_.dtype)
    return np.zeros(type_.shape, type_.dtype)
