"""The networks that a configuration is searched for, and what they take on one: at least, by
estimate or cost model, and exactly.

The cycles of several networks are added up, each times its weight. Only what runs on the
accelerator counts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...base.errors import MicrotronError
from ...compiler.compile import bound_of
from ...compiler.network.network import AcceleratorStep, Network
from ...compiler.operators.catalogue import operator_of
from ...compiler.operators.choice import rank_candidates
from ...compiler.operators.description import Description
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...runtime.models.compilation import ModelOptions, compile_to_network
from ...sim.simulated_cost import SimulatedCost
from ..layer_sources import can_schedule
from ..points import NETWORK
from ..predictor import CostModel
from ..records import Record, Records, current_sources

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """A network with its weight, and its layers as a first configuration has them."""

    path: Path
    weight: float
    digest: str
    layers: Mapping[Description, int]       # and how often each occurs


def read_tasks(paths: Sequence[Path], weights: Sequence[float], config: Config,
               memory: MemoryTiming) -> list[Task]:
    """The networks, compiled once to see their layers."""
    if not paths:
        raise MicrotronError("there is no network to search a configuration for")
    if weights and len(weights) != len(paths):
        raise MicrotronError(f"there are {len(weights)} weights, but {len(paths)} networks")
    found = []
    for path, weight in zip(paths, weights or [1.0] * len(paths), strict=True):
        layers = Counter(layer.spec for step in _compile(path, config, memory).steps
                         if isinstance(step, AcceleratorStep) for layer in step.layers)
        if not layers:
            raise MicrotronError(f"{path}: nothing of it runs on the accelerator")
        found.append(Task(path, weight, hashlib.sha256(path.read_bytes()).hexdigest(), layers))
    return found


def _compile(path: Path, config: Config, memory: MemoryTiming) -> Network:
    from ... import __version__

    return compile_to_network(path, config, ModelOptions(memory=memory, cost=SimulatedCost(memory)),
                              version=__version__)


def least_cycles(tasks: Sequence[Task], config: Config, memory: MemoryTiming) -> float:
    """A bound: no program for these layers takes fewer."""
    return sum(task.weight * times * bound_of(layer, config, memory).cycles
               for task in tasks for layer, times in task.layers.items())


def predicted_cycles(tasks: Sequence[Task], config: Config, memory: MemoryTiming,
                     model: CostModel | None) -> float:
    """Cycles by a cost model, or by the analytic estimate of the best schedule. Layers of several
    parts, which neither knows, count with their bounds."""
    return sum(task.weight * times * _predict(layer, config, memory, model)
               for task in tasks for layer, times in task.layers.items())


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
                 records: Records, tell: Tell = lambda doing: None) -> float:
    """Cycles of the compiled networks, simulated; from the store where they are known."""
    total = 0.0
    for task in tasks:
        asked = {"kind": NETWORK, "network": task.digest, "config": config.explicit_fields(),
                 "memory": asdict(memory)}
        known = records.find(asked)
        if known is None:
            tell(task.path.name)
            network, cost = _compile(task.path, config, memory), SimulatedCost(memory)
            known = {"cycles": sum(map(cost, network.programs)), "file": task.path.name}
            records.add(Record(asked, current_sources(NETWORK), known))
        cycles = known["cycles"]
        assert isinstance(cycles, int), "as it was recorded"
        total += task.weight * cycles
    return total
