"""Whose time commands show: the accelerator's clock, and the processor beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import MicrotronError

if TYPE_CHECKING:
    from ..boards.facts.board import Board
    from ..isa.config import Config
    from ..runtime.clock import Clock
    from ..runtime.models.compiled_model import CompiledModel
    from ..runtime.reports.layers import TimeHost
    from ..runtime.times.host_times import HostTimes

ClockMhz = Annotated[float | None, typer.Option(
    "--clock", metavar="MHZ", help="Clock of the accelerator, to turn cycles into time. "
                                   "[default: the board's, or 100]")]
OnBoard = Annotated[str, typer.Option(
    "--board", metavar="NAME", help="Take memory, clock and processor of this board, and its "
                                    "preset unless --config is given.")]
AllReasons = Annotated[bool, typer.Option(
    "--all", help="List every node that falls back to the CPU, not only the reasons.")]


def board_and_memory(name: str, memory: str) -> tuple[Board | None, str]:
    """The board of that name, with its own memory; none if none is named."""
    if not name:
        return None, memory
    from ..boards.facts.catalogue import find_board
    from ..boards.facts.speed import memory_option

    if memory:
        raise MicrotronError("--board has a memory of its own; leave out --memory, or --board")
    chosen = find_board(name)
    return chosen, memory_option(chosen)


def clock_of(mhz: float | None, board: Board | None, config: Config) -> Clock:
    """The clock that times are for, and who says so. A board must hold the configuration."""
    from ..runtime.clock import Clock

    if board is not None:
        from ..boards.facts.speed import speed_of
        speed = speed_of(board, config)
        if mhz is None:
            return Clock(speed.mhz, board.name)
    if mhz is None:
        return Clock()
    return Clock(mhz, "given")


def measure_here(model: CompiledModel) -> HostTimes:
    """The CPU's half on this machine."""
    from ..base.progress import report_progress
    from ..runtime.times.measure import measure_times

    with report_progress("measuring the CPU's part") as say:
        return measure_times(model, say=say)


def host_timer(board: Board | None, clock: Clock) -> TimeHost:
    """How the CPU's times are found: estimated for a board's processor, else measured on this
    machine, which also serves a board that has no processor."""
    if board is None or board.cpu == "none":
        return measure_here
    from ..boards.facts.speed import processor_mhz
    from ..runtime.times.estimate import estimate_times, find_processor

    processor, mhz = find_processor(board.cpu), processor_mhz(board, clock.mhz)
    return lambda model: estimate_times(model, processor, mhz)
