"""Builds points of a front for their board: the area and the clock that routing came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...base.checked_values import PlainData
from ...base.errors import MicrotronError
from ...boards.facts.board import Board
from .codesign_search import Exploration, spread
from .front import Point, RoutedPoint, knee_of

BUILDS = "builds"           # folder of a front with a folder for each design


def check_route(board: Board) -> None:
    """Refuse a board for which this machine makes no bitstream, before a search finds out."""
    from ...boards.build.flow import flow_of, why_unavailable

    if not flow_of(board).makes_bitstream:
        raise MicrotronError(f"--route: for {board.name} only a project for the vendor's tools is "
                             f"made; leave it out")
    if reason := why_unavailable(board):
        raise MicrotronError(f"--route: nothing can be built for {board.name}: {reason}")


def choose_routed(front: Sequence[Point], count: int) -> list[Point]:
    """At most so many points: the knee, and others at even distances."""
    knee = knee_of(front)
    first = [] if knee is None or count < 1 else [knee]
    return [*first, *spread([point for point in front if point is not knee],
                            count - len(first))]


def route_points(found: Exploration, count: int, folder: Path, *, until: float | None = None,
                 tell: Callable[[str], None] = lambda doing: None,
                 show: Callable[[Exploration], None] = lambda found: None) -> None:
    """Build points for the board, one after another. Builds resume: what was built before, here or
    in another folder, takes no time. `show` is called after each."""
    chosen = choose_routed(found.front, count)
    for number, point in enumerate(chosen, 1):
        if until is not None and number > 1 and time.monotonic() >= until:
            return
        config = point.config
        tell(f"building {number} of {len(chosen)} for {found.question.budget.board.name}: "
             f"{config.batch} × {config.block_in} × {config.block_out}, {config.alu_lanes} lanes")
        found.routed[config] = route_point(found, point, folder / BUILDS / config.digest[:12])
        show(found)


def route_point(found: Exploration, point: Point, folder: Path) -> RoutedPoint:
    """One point as a bitstream in its folder. That a design cannot be routed is a result, too."""
    from ...boards.build.plan import build, make_plan

    name = f"{BUILDS}/{folder.name}"
    try:
        built: PlainData = build(make_plan(
            found.question.budget.board, point.config, point.config.digest[:12]), folder)
    except MicrotronError as error:
        return RoutedPoint(folder=name, error=str(error))
    return RoutedPoint(folder=name, mhz=built["mhz"], used=built["used"],
                       runs_mhz=built["target_mhz"] if built["meets_timing"] else 0.0)
