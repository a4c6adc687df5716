"""Data sets: configurations × layers × schedules × memories, sampled by a design and measured.

Layers and configurations meet in pairs: round after round, every configuration gets the next layer
that is not its own yet, so that each appears about as often as any other. A pair has some
schedules, the best estimate first and the others at random, and each schedule every memory.
Schedules far worse than the best, those of thousands of steps, and layers of millions of cycles
are left out: they take long to measure and tell little.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..compiler.errors import CompileError
from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.choice import Candidate, candidates, estimates, rank_candidates
from ..compiler.operators.description import Description
from ..compiler.operators.form import TensorForm
from ..isa.config import Config
from ..isa.memory_timing import MemoryTiming
from .distributed.pool import Pool, SerialPool
from .features import bound_of_point, estimate_of, features_of, steps_of
from .measure import Progress, measure_all
from .points import LayerPoint, Schedule, canonical, describe, point_key
from .records import Records

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_CYCLES = 2_000_000     # of a layer, roughly; pairs that take more are left out
MOST_STEPS = 1024           # of a schedule: it has some instructions for each
WORST = 3.0                 # times the best estimate: nobody runs schedules that are worse
DRAWN = 8                   # pairs of a task for a cluster
Row = dict[str, object]
Pair = tuple[Config, Description]


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is measured: equal designs have equal points, in the same order."""

    configs: Sequence[Config]
    layers: Sequence[Description]
    memories: Sequence[MemoryTiming]
    schedules: int = 4          # of each pair
    seed: int = 0
    device: str = ""            # that measures, instead of the simulator
    names: Mapping[Config, str] | None = None       # of configurations that have one
    known: dict[int, Sequence[Schedule]] = field(       # drawn so far, by the number of a pair
        default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("configs", "layers", "memories"):
            if not getattr(self, name):
                raise MicrotronError(f"a data set needs {name}, but there are none")
        if not 1 <= self.schedules <= 10_000:
            raise MicrotronError(f"schedules is {self.schedules}, but must be from 1 to 10000")

    @property
    def pairs(self) -> Iterator[Pair]:
        """Every configuration with every layer, evenly at every length."""
        rng = random.Random(self.seed)
        configs, layers = list(self.configs), list(self.layers)
        rng.shuffle(configs)
        rng.shuffle(layers)
        for turn in range(len(layers)):
            for number, config in enumerate(configs):
                # Steps of a configuration and of a turn differ, so that pairs do not repeat.
                yield config, layers[(number + turn + number // len(layers)) % len(layers)]

    def groups(self, most: int | None = None,
               pool: Pool | None = None) -> Iterator[list[LayerPoint]]:
        """The points, pair by pair; no more than `most` of them. Schedules are drawn by the
        workers of a pool, and once only."""
        left = most
        pairs = enumerate(self.pairs)
        each = self.schedules * len(self.memories)
        # No more pairs at a time than may be needed: what is drawn ahead is not for nothing.
        while some := list(islice(pairs, None if left is None else -(-left // each))):
            with closing(self._drawn(some, pool or SerialPool())) as drawn:
                for (config, layer), schedules in drawn:
                    found = [LayerPoint(layer, config, memory, schedule, self.device)
                             for schedule in schedules for memory in self.memories][:left]
                    if found:
                        yield found
                    if left is not None:
                        left -= len(found)

    def _drawn(self, pairs: Sequence[tuple[int, Pair]],
               pool: Pool) -> Generator[tuple[Pair, Sequence[Schedule]]]:
        """Pairs with their schedules, in order, whichever is drawn first."""
        known = self.known

        def tasks() -> Iterator[Draw]:
            unknown = ((number, pair) for number, pair in pairs if number not in known)
            while some := dict(islice(unknown, DRAWN if pool.size > 1 else 1)):
                yield Draw(some, self.memories[0], self.schedules, self.seed)
        with closing(pool.run(draw_pairs, tasks())) as drawn:
            for number, pair in pairs:
                while number not in known:
                    other, schedules = next(drawn)
                    known[other] = schedules
                yield pair, known[number]


@dataclass(frozen=True)
class Draw:
    """Pairs whose schedules are drawn, by their places in a design."""

    pairs: Mapping[int, Pair]
    memory: MemoryTiming
    schedules: int
    seed: int


def draw_pairs(asked: Draw) -> Iterator[tuple[int, list[Schedule]]]:
    """A task of a pool: the schedules of each pair."""
    for number, (config, layer) in asked.pairs.items():
        yield number, draw_schedules(layer, config, asked.memory, asked.schedules,
                                     random.Random(f"{asked.seed} {number}"))


def draw_schedules(layer: Description, config: Config, memory: MemoryTiming, count: int,
                   rng: random.Random) -> list[Schedule]:
    """Of one pair: the best estimate, half of the rest among the most promising, and half among
    all that fit. None if nothing fits, or the layer takes too long."""
    operator = operator_of(layer)
    try:
        forms = operator.forms_of(layer, config)
        ranked: list[Candidate[TensorForm, DataclassInstance]] = rank_candidates(
            operator.template, forms, memory)
    except CompileError:
        return []
    best = ranked[0]
    if best.estimate > MOST_CYCLES:
        return []
    form, most = best.form, WORST * best.estimate
    promising = [Schedule(each.form.number, each.knobs) for each in ranked[1:]
                 if each.estimate <= most]
    every, cycles = (candidates(operator.template, form),
                     estimates(operator.template, form, memory))
    anything = [Schedule(form.number, knobs) for knobs, each in zip(every, cycles, strict=True)
                if each <= most]
    rng.shuffle(promising)
    rng.shuffle(anything)
    wanted: dict[Schedule, None] = {}
    for most_taken, some in ((1, [Schedule(form.number, best.knobs)]),
                             (1 + count // 2, promising), (count, anything)):
        for each in some:
            if len(wanted) >= most_taken:
                break
            if steps_of(LayerPoint(layer, config, memory, each)) <= MOST_STEPS:
                wanted[each] = None
    return list(wanted)


def collect(design: Design, store: Path, *, points: int | None = None,
            seconds: float | None = None, pool: Pool | None = None,
            tell: Callable[[Progress], None] = lambda progress: None) -> Progress:
    """Measure what is not in the store yet."""
    return measure_all(store, design.groups(points, pool), pool=pool, seconds=seconds, tell=tell)


def rows_of(design: Design, store: Path, points: int | None = None) -> Iterator[Row]:
    """A row for each point of the design that has been measured, in the design's order."""
    with Records(store) as records:
        for group in design.groups(points):
            for point in group:
                measured = records.find(point.to_json())
                if measured is not None and "error" not in measured:
                    yield row_of(point, measured, design.names)


def row_of(point: LayerPoint, measured: Mapping[str, object],
           names: Mapping[Config, str] | None = None) -> Row:
    """One row: what was asked, the bounds and the estimate, the outcome, and the features."""
    asked, config = point.to_json(), point.config
    knobs = asdict(point.schedule.knobs)
    work = point.form.work
    row: Row = {
        "key": point_key(asked), "asked": canonical(asked), "operator": point.layer.operator,
        "layer": point_key(describe(point.layer))[:12],
        "configuration": (names or {}).get(config, config.digest), "form": point.schedule.form}
    row |= {f"knob_{name}": _scalar(value) for name, value in knobs.items()}
    row |= {f"config_{name}": value for name, value in config.to_dict().items()}
    row |= {f"memory_{name}": int(value) for name, value in asdict(point.memory).items()}
    row |= {f"work_{name}": value for name, value in asdict(work).items()}
    row |= {f"bound_{name}": value
            for name, value in asdict(work.bound(config, point.memory)).items()}
    row |= {"bound": bound_of_point(point), "estimate": estimate_of(point), **measured}
    return row | {f"feature_{name}": value for name, value in features_of(point).items()}


def _scalar(value: object) -> object:
    """Numbers as they are; pairs, such as the window of a pool, as text."""
    if isinstance(value, bool):
        return int(value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def parse_budget(text: str) -> tuple[int | None, float | None]:
    """Points and seconds, as in `5000`, `30min` or `5000,30min`."""
    found: dict[bool, int] = {}         # by whether it is minutes
    for part in text.split(","):
        number, in_minutes = part.removesuffix("min"), part.endswith("min")
        if in_minutes in found or not number.isascii() or not number.isdigit() or not (
                1 <= int(number[:12]) < 10 ** 9):
            raise MicrotronError(f"budget is {quote(text)}, but must be points, minutes or both, "
                                 f"as in 5000,30min")
        found[in_minutes] = int(number)
    return found.get(False), 60.0 * found[True] if True in found else None
