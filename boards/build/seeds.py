"""Builds with several seeds of nextpnr, of which the fastest is kept: chance decides a tenth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

from ...base.checked_values import PlainData
from ...base.errors import MicrotronError
from ...base.progress import print_note
from ..facts.errors import BoardError
from .estimate import is_route
from .plan import Plan, build, check_folder
from .steps import Command, Step

MOST = 9


def check_seeds(plan: Plan, seeds: int) -> None:
    """Refuse what cannot be built so often."""
    if not 1 <= seeds <= MOST:
        raise BoardError(f"--seeds is {seeds}, but must be 1 to {MOST}")
    if seeds > 1 and not any(map(is_route, plan.build.steps)):
        raise BoardError(f"--seeds is {seeds}, but the flow {plan.flow.name} routes nothing: the "
                         "vendor's tools do; leave it out")


def build_with_seeds(plan: Plan, folder: Path, seeds: int) -> PlainData:
    """A build with the fastest of so many seeds. Each has a folder of its own, `seed_2`, whose
    build resumes as any does and shares all steps before placing; the folder gets the best."""
    check_seeds(plan, seeds)
    if seeds == 1:
        return build(plan, folder)
    check_folder(folder)
    tried: list[PlainData] = []
    for seed in range(seeds):
        print_note(f"seed {seed}, {seed + 1} of {seeds}")
        try:
            tried.append({"seed": seed, **build(with_seed(plan, seed), folder / f"seed_{seed}")})
        except MicrotronError as error:
            print_note(f"seed {seed}: {error}")
            tried.append({"seed": seed, "error": str(error)})
    return build(with_seed(plan, best_of(tried)), folder, summary_of(tried))


def with_seed(plan: Plan, seed: int) -> Plan:
    """The same build with a seed for nextpnr. 0 is its own, with which a build without seeds is
    made."""
    if not seed:
        return plan
    steps = tuple(_with_seed(step, seed) if is_route(step) else step for step in plan.build.steps)
    return replace(plan, build=replace(plan.build, steps=steps))


def _with_seed(step: Step, seed: int) -> Step:
    assert isinstance(step.work, Command)
    return replace(step, work=replace(
        step.work, arguments=(*step.work.arguments, "--seed", str(seed))))


def best_of(tried: list[PlainData]) -> int:
    """The seed with the fastest clock, of those that meet all others if there are any."""
    routed = [each for each in tried if "error" not in each]
    if not routed:
        raise MicrotronError(f"no seed was routed: {tried[0]['error']}")
    return int(max(routed, key=lambda each: (
        not each.get("missed_clocks"), reached(each), -each["seed"]))["seed"])


def summary_of(tried: list[PlainData]) -> PlainData:
    """What a report says of seeds."""
    return {"seeds": [{"seed": each["seed"], **(
                {"error": each["error"]} if "error" in each else {"mhz": reached(each)})}
                for each in tried],
            "median_mhz": round(median(reached(each) for each in tried if "error" not in each), 2)}


def reached(found: PlainData) -> float:
    """The clock that routing came to."""
    return float(found["mhz"])
