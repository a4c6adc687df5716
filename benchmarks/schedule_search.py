"""How many trials a search of schedules takes: cycles of the compiler's own choice, and of the
best that random trials, annealing and a ranking model find, against all schedules.

    python benchmarks/tuning.py --search searches.records

A case is a layer on a configuration: ResNet-18's C2 to C11, a depthwise layer, an attention
product and a padded pool, on `base` and on two configurations that are drawn. All strategies
measure into one store, so that a schedule is simulated once, and a run that was stopped goes on.
`transfer` is guided, too, but begins with what a cost model expects that has seen the first trials
of the other layers.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from cases.known_layers import BERT, MOBILENET, RESNET_18
from common import Column, Outcome, Row

from microtron.base.progress import report_progress
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.description import Description
from microtron.compiler.operators.pool.pool import Kind, Pool
from microtron.explore.fit import ROUNDS, TrainingData, train_trees
from microtron.explore.measure import measure_all
from microtron.explore.points import LayerPoint, Schedule
from microtron.explore.records import Records
from microtron.explore.sampling import sample_configs
from microtron.explore.search import Search, Space, anneal, search_all, search_guided
from microtron.explore.tune import LayerQuestion, compiler_choice, schedule_space
from microtron.isa.config import Config
from microtron.isa.config_files import load_config
from microtron.isa.memory_timing import MemoryTiming

MEMORY = MemoryTiming()
TRIALS = 64
MARKS = (1, 8, 16, 32, 64)      # trials after which the best is looked at
SHARE = 1.01                    # of the best known: near enough
SEED = 14                       # of the configurations
TAUGHT = 32                     # trials of each other layer that a cost model has seen
STRATEGIES = ("random", "anneal", "guided", "transfer")


@dataclass(frozen=True)
class Case:
    """A layer on a configuration, with the schedules to search."""

    layer_name: str
    config_name: str
    layer: Description
    config: Config
    first: Schedule             # the compiler's choice
    space: Space


def layers() -> dict[str, Description]:
    found: dict[str, Description] = {each.vta: each.spec for each in RESNET_18 if each.offloaded}
    found["depthwise"] = next(each.spec for each in MOBILENET if each.name == "D5")
    found["attention"] = next(each.spec for each in BERT if each.name == "scores")
    return found | {"padded pool": Pool(kind=Kind.MAX, height=56, width=56, channels=64,
                                        kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))}


def configs(drawn: int) -> dict[str, Config]:
    """`base`, and the first few of a sample on which every layer has a schedule."""
    found = {"base": load_config("base")}
    for number, config in enumerate(sample_configs(16, SEED), 1):
        if len(found) <= drawn and all(_fits(layer, config) for layer in layers().values()):
            found[f"drawn {number}"] = config
    return found


def _fits(layer: Description, config: Config) -> bool:
    try:
        compiler_choice(LayerQuestion(layer, config, MEMORY))
    except CompileError:
        return False
    return True


def cases(most: int, drawn: int) -> Iterator[Case]:
    for config_name, config in configs(drawn).items():
        for layer_name, layer in layers().items():
            asked = LayerQuestion(layer, config, MEMORY)
            first = compiler_choice(asked)
            yield Case(layer_name, config_name, layer, config, first,
                       schedule_space(asked, first, most))


def measure_case(case: Case, store: Path, schedules: Sequence[Schedule]) -> list[float]:
    """Exact cycles, from the store where they are known."""
    points = [LayerPoint(case.layer, case.config, MEMORY, each) for each in schedules]
    measure_all(store, [points])
    with Records(store) as records:
        found = [records.find(point.to_json()) or {} for point in points]
    return [float(str(each["cycles"])) if "cycles" in each else math.inf for each in found]


def search_random(search: Search) -> None:
    search.try_all(search.rng.sample(search.unknown(), search.left))


METHODS: dict[str, Callable[[Search], None]] = {
    "random": search_random, "anneal": anneal, "guided": search_guided, "transfer": search_guided,
    "exhaustive": search_all}


def run_method(name: str, case: Case, store: Path, trials: int,
               seed: int) -> dict[int, float]:
    """What was measured, in order: places in the space with their cycles."""
    search = Search(case.space, lambda some: measure_case(case, store, some), trials,
                    random.Random(seed))
    search.try_all([case.space.schedules.index(case.first)])
    METHODS[name](search)
    return search.known


def teach(case: Case, others: Mapping[str, tuple[Case, Mapping[int, float]]]) -> Case:
    """The case with what a cost model expects that saw the first trials of the other layers."""
    seen = [(other.space, place, cycles) for name, (other, known) in others.items()
            if name != case.layer_name
            for place, cycles in list(known.items())[:TAUGHT] if math.isfinite(cycles)]
    expected = np.array([space.expected[place] for space, place, _ in seen])
    data = TrainingData(
        tuple(f"f{number}" for number in range(case.space.features.shape[1])),
        np.array([space.features[place] for space, place, _ in seen], np.float32),
        np.array([cycles for *_, cycles in seen]), expected, expected, expected, (), (), ())
    trees = train_trees(data, np.arange(len(seen)), 0, ROUNDS)
    factors = np.exp2(trees.inplace_predict(case.space.features).astype(float))
    return replace(case, space=replace(case.space, expected=case.space.expected * factors))


def best_after(known: Mapping[int, float], trials: int) -> float:
    return min(list(known.values())[:trials])


def trials_until(known: Mapping[int, float], goal: float) -> int | None:
    """Trials until a schedule is good enough; None if none was."""
    return next((number for number, cycles in enumerate(known.values(), 1) if cycles <= goal), None)


def measure_searches(options: argparse.Namespace) -> Outcome:
    store = Path(options.search)
    rows: list[Row] = []
    with report_progress("listing schedules") as tell:
        by_config: dict[str, list[Case]] = {}
        for case in cases(options.points, options.drawn):
            tell(f"listing schedules: {case.layer_name} on {case.config_name}")
            by_config.setdefault(case.config_name, []).append(case)
        for some in by_config.values():
            guided: dict[str, tuple[Case, Mapping[int, float]]] = {}
            for case in some:
                tell(f"searching {case.layer_name} on {case.config_name}")
                guided[case.layer_name] = case, run_method("guided", case, store, TRIALS, 0)
            for case in some:
                tell(f"comparing {case.layer_name} on {case.config_name}")
                rows.append(_compare(case, store, guided))
    return Outcome(
        benchmark="tuning", title="Trials until within 1 % of the best known",
        columns=(Column("layer", "layer"), Column("config", "configuration"),
                 Column("space", "schedules"), Column("best", "best known"),
                 Column("own", "own choice", lambda ratio: f"{ratio:.3f}"),
                 *(Column(name, name, lambda trials: "–" if trials is None else str(trials))
                   for name in METHODS)),
        rows=rows, facts={"points": options.points, "trials": TRIALS},
        details=tuple(summary(rows)))


def _compare(case: Case, store: Path,
             guided: Mapping[str, tuple[Case, Mapping[int, float]]]) -> Row:
    found = {"guided": guided[case.layer_name][1]}
    for name in ("random", "anneal"):
        found[name] = run_method(name, case, store, TRIALS, 0)
    found["transfer"] = run_method("transfer", teach(case, guided), store, TRIALS, 0)
    found["exhaustive"] = run_method("exhaustive", case, store, len(case.space.schedules), 0)
    best = min(min(known.values()) for known in found.values())
    return {"layer": case.layer_name, "config": case.config_name,
            "space": len(case.space.schedules), "best": round(best),
            "own": best_after(found["guided"], 1) / best,
            **{name: trials_until(known, SHARE * best) for name, known in found.items()},
            "after": {name: {str(mark): best_after(known, mark) / best for mark in MARKS}
                      for name, known in found.items()}}


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """For each strategy, how many cases it finishes, and how fast."""
    for name in METHODS:
        reached = [row[name] for row in rows if row[name] is not None and row[name] <= TRIALS]
        worst = max(row["after"][name][str(TRIALS)] for row in rows)
        yield (f"{name}: within 1 % in {TRIALS} trials on {len(reached)} of {len(rows)}, "
               f"{np.mean(reached) if reached else 0:.1f} trials on average; at worst "
               f"{100 * worst - 100:.1f} % above the best known")
