"""How fast a board is: its clock with a configuration, and how its memory behaves."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ...isa.config import PRESETS, Config
from ...isa.memory_timing import MemoryTiming
from .board import Board
from .errors import BoardError
from .fit import check_fits


@dataclass(frozen=True)
class Speed:
    board: str
    mhz: float

    def milliseconds(self, cycles: int) -> float:
        return cycles / self.mhz / 1000


def speed_of(board: Board, config: Config) -> Speed:
    """The clock of the board's accelerator, or the one that this preset was routed for if lower.
    Where the accelerator has a clock of its own, a build chooses it: that is the routed one. What
    the board cannot hold has none, and is refused as a build refuses it."""
    check_fits(board, config)
    routed = [mhz for name, mhz in board.routed.items() if PRESETS[name] == config]
    if routed and board.clock.is_crossed:
        return Speed(board.name, min(routed))
    return Speed(board.name, min((board.clock.compute_hz / 1e6, *routed)))


def memory_option(board: Board) -> str:
    """How the board's memory behaves, as the option --memory takes it."""
    timing = board.memory.timing
    if timing is None:
        raise BoardError(f"{board.name}: how its memory behaves has not been measured; give it in "
                         "[memory.timing] of a file of your own, or with --memory and no --board")
    return ",".join(f"{field.name}={int(getattr(timing, field.name))}"
                    for field in dataclasses.fields(MemoryTiming))


def processor_mhz(board: Board, accelerator_mhz: float) -> float:
    """The clock of the board's processor. A soft one runs at that of the system, which is the
    accelerator's unless that has one of its own."""
    if board.cpu_mhz is not None:
        return board.cpu_mhz
    if board.memory.kind == "processor":
        raise BoardError(f"{board.name}: the clock of its processor is not known; give it in the "
                         f"board's file, as in cpu_mhz = 650")
    return board.clock.system_hz / 1e6 if board.clock.is_crossed else accelerator_mhz
