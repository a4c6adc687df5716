"""The networks that a configuration is searched for, and what they take on one: at least, by
estimate or cost model, and exactly.

The cycles of several networks are added up, each times its weight. Only what runs on the
accelerator counts.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from ...base.errors import MicrotronError
from ...compiler.compile import bound_of, compile_op
from ...compiler.errors import CompileError
from ...compiler.network.network import Network
from ...compiler.operators.catalogue import operator_of
from ...compiler.operators.choice import rank_candidates
from ...compiler.operators.description import Description
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...runtime.models.compilation import ModelOptions, compile_to_network
from ...sim.simulated_cost import SimulatedCost
from ..distributed.pool import Pool, SerialPool
from ..layer_sources import can_schedule, read_layers
from ..points import NETWORK, Json
from ..predictor import CostModel
from ..records import Record, Records, current_sources
from .layer_streams import (
    Stream,
    StreamLayer,
    estimated_stream_cycles,
    least_stream_cycles,
    streams_of,
)


@dataclass(frozen=True)
class Task:
    """A network with its weight, and its layers as a first configuration has them, a stream for
    each program; or a list of layers, each compiled alone."""

    path: Path
    weight: float
    digest: str
    streams: tuple[Stream, ...]


def read_tasks(paths: Sequence[Path], weights: Sequence[float], config: Config,
               memory: MemoryTiming) -> list[Task]:
    """The networks, compiled once to see their layers."""
    if not paths:
        raise MicrotronError("there is no network to search a configuration for")
    if weights and len(weights) != len(paths):
        raise MicrotronError(f"there are {len(weights)} weights, but {len(paths)} networks")
    found = []
    for path, weight in zip(paths, weights or [1.0] * len(paths), strict=True):
        streams = tuple((StreamLayer(layer),) for layer in read_layers(path)) if is_layer_list(
            path) else streams_of(_compile(path, config, memory))
        if not streams:
            raise MicrotronError(f"{path}: nothing of it runs on the accelerator")
        found.append(Task(path, weight, digest_of(path), streams))
    return found


def is_layer_list(path: Path) -> bool:
    return path.suffix == ".json"


def digest_of(path: Path) -> str:
    """Of the bytes of a network."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read on {platform.node()}: {error.strerror}"
                             ) from None


def _compile(path: Path, config: Config, memory: MemoryTiming) -> Network:
    from ... import __version__

    return compile_to_network(path, config, ModelOptions(memory=memory, cost=SimulatedCost(memory)),
                              version=__version__)


def least_cycles(tasks: Sequence[Task], config: Config, memory: MemoryTiming) -> float:
    """A bound: no program for these layers takes fewer."""
    return sum(task.weight * least_stream_cycles(stream, config, memory)
               for task in tasks for stream in task.streams)


def predicted_cycles(tasks: Sequence[Task], config: Config, memory: MemoryTiming,
                     model: CostModel | None) -> float:
    """Cycles by a cost model, or by the analytic estimate of the best schedule, less what is saved
    by results that stay on the chip. Layers of several parts, which neither knows, count with their
    bounds."""
    predict = cache(lambda layer: _predict(layer, config, memory, model))
    return sum(task.weight * estimated_stream_cycles(stream, config, memory, predict)
               for task in tasks for stream in task.streams)


def _predict(layer: Description, config: Config, memory: MemoryTiming,
             model: CostModel | None) -> float:
    if not can_schedule(layer):
        return float(bound_of(layer, config, memory).cycles)
    if model is not None:
        return model.predict(config, layer, memory)
    operator = operator_of(layer)
    return float(rank_candidates(operator.template, operator.forms_of(layer, config),
                                 memory)[0].estimate)


def exact_cycles(tasks: Sequence[Task], config: Config, memory: MemoryTiming,
                 records: Records) -> float:
    """Cycles of the compiled networks, simulated; from the store where they are known."""
    for _, error in measure_configs(tasks, [config], memory, records, SerialPool()):
        if error is not None:
            raise CompileError(error)
    total = 0.0
    for task in tasks:
        known = records.find(NetworkQuestion(task, config, memory).to_json())
        assert known is not None, "it has just been measured"
        cycles = known["cycles"]
        assert isinstance(cycles, int), "as it was recorded"
        total += task.weight * cycles
    return total


@dataclass(frozen=True)
class NetworkQuestion:
    """A network on a configuration, which is compiled and simulated whole."""

    task: Task
    config: Config
    memory: MemoryTiming

    def to_json(self) -> dict[str, object]:
        return {"kind": NETWORK, "network": self.task.digest,
                "config": self.config.explicit_fields(), "memory": asdict(self.memory)}


def measure_network(asked: NetworkQuestion) -> Iterator[tuple[NetworkQuestion, Json]]:
    """A task of a pool: cycles of all programs of a network, or why there are none."""
    path = asked.task.path
    if digest_of(path) != asked.task.digest:
        raise MicrotronError(f"{path} on {platform.node()} is another file than the one that was "
                             f"read first: workers need the networks at the same place")
    config, memory, cost = asked.config, asked.memory, SimulatedCost(asked.memory)
    compile_layer = cache(lambda layer: compile_op(layer, config, cost=cost, memory=memory).program)
    try:
        programs = [*map(compile_layer, read_layers(path))] if is_layer_list(path) else (
            _compile(path, config, memory).programs)
    except CompileError as error:
        yield asked, {"error": str(error)}
    else:
        yield asked, {"cycles": sum(map(cost, programs)), "file": path.name}


def measure_configs(tasks: Sequence[Task], configs: Sequence[Config], memory: MemoryTiming,
                    records: Records, pool: Pool) -> Generator[tuple[Config, str | None]]:
    """Measure what is not in the store. Gives each configuration as soon as all networks are known
    on it, or with the reason if one of them does not fit."""
    unknown = {config: [asked for task in tasks if records.find(
        (asked := NetworkQuestion(task, config, memory)).to_json()) is None] for config in configs}
    yield from ((config, None) for config, some in unknown.items() if not some)
    left = {config: len(some) for config, some in unknown.items()}
    for asked, measured in pool.run(measure_network, (
            asked for config, some in unknown.items() for asked in some if left[config] > 0)):
        config = asked.config
        if "error" in measured:
            if left[config] > 0:
                yield config, str(measured["error"])
            left[config] = 0                    # no other network on it counts
            continue
        records.add(Record(asked.to_json(), current_sources(NETWORK), measured))
        left[config] -= 1
        if left[config] == 0:
            yield config, None


@dataclass(frozen=True)
class Prediction:
    """A configuration whose cycles are predicted."""

    tasks: Sequence[Task]
    config: Config
    memory: MemoryTiming
    model: CostModel | None


def predict_config(asked: Prediction) -> Iterator[tuple[Config, float | CompileError]]:
    """A task of a pool: predicted cycles, or why a layer does not fit."""
    try:
        yield asked.config, predicted_cycles(asked.tasks, asked.config, asked.memory, asked.model)
    except CompileError as error:
        yield asked.config, CompileError(str(error))
