"""The report on a search of configurations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import say

if TYPE_CHECKING:
    from ...explore.codesign.codesign_search import Exploration
    from ...explore.codesign.front import Point
    from ...report.pareto import Pareto, ParetoPoint


def write_front_report(target: Path, models: list[Path], found: Exploration,
                       baseline: tuple[str, Point] | None, *, silent: bool) -> None:
    """One HTML file with all points; `baseline` is a configuration's name and point."""
    from ...base.progress import report_progress
    from ...report.save_report import write_report

    names = " and ".join(path.name for path in models)
    with report_progress(f"writing {target}"):
        write_report({}, target, f"{names} on {found.question.budget.board.name}",
                     pareto=pareto_of(found, baseline))
    if not silent:
        say(f"{target}: a report on the search; open it in a browser")


def pareto_of(found: Exploration, baseline: tuple[str, Point] | None) -> Pareto:
    """A search in the form that the report takes."""
    from ...report.pareto import Pareto

    board = found.question.budget.board
    return Pareto(
        board=board.name, mhz=board.clock.compute_hz / 1e6,
        objectives=found.question.objectives, trials=found.trials,
        points=list(_points(found, baseline)),
        rejected=[(reason, times, found.examples[reason])
                  for reason, times in found.rejected.most_common()])


def _points(found: Exploration, baseline: tuple[str, Point] | None) -> Iterator[ParetoPoint]:
    """Every configuration once, as what is known best of it, but a baseline on the front twice."""
    from ...explore.codesign.front_files import name_points
    from ...report.pareto import ParetoPoint

    front = {point.config: name for name, point in name_points(found.front)}
    for config, point in found.predicted.items():
        if config not in found.exact:
            yield ParetoPoint(kind="predicted", name=_shape(point), config=config,
                              cycles=point.cycles, area=point.area)
    for config, point in found.exact.items():
        if baseline is not None and config == baseline[1].config and config not in front:
            continue
        kind = "front" if config in front else "exact"
        yield ParetoPoint(kind=kind, name=front.get(config, _shape(point)), config=config,
                          cycles=point.cycles, area=point.area)
    if baseline is not None:
        name, point = baseline
        yield ParetoPoint(kind="baseline", name=name, config=point.config, cycles=point.cycles,
                          area=point.area)


def _shape(point: Point) -> str:
    config = point.config
    return (f"{config.batch} × {config.block_in} × {config.block_out}, {config.alu_lanes} lanes, "
            f"{config.acc_banks} banks")
