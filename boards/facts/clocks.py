"""Whether a board's oscillator gives the clocks that its design runs at."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from .board import Board
from .errors import BoardError

# The PLL of an ECP5, by Lattice's data sheet FPGA-DS-02012; LiteX searches among the same.
PHASE_HZ, VCO_HZ, OUTPUT_HZ = (10e6, 400e6), (400e6, 800e6), (3_125_000, 400_000_000)
MOST_DIVIDER = 128
MARGIN = 0.01                   # that a clock may be off
SETTLING_HZ = 25e6              # while the delays of DDR3 are found


def check_clock(board: Board, place: str) -> None:
    """Refuse frequencies that the shell cannot have. Gowin's PLL is asked where the system is
    written, and hard processors have a divider for theirs."""
    clock, kind = board.clock, board.memory.kind
    needs_pin = board.flow == "quartus" or kind in ("sdr", "ddr3")
    if needs_pin and not clock.pin:
        raise BoardError(f"{place}: clock: pin is missing: where the oscillator is")
    if board.flow == "quartus" and clock.system_hz != clock.hz:
        raise BoardError(f"{place}: clock: system_hz is {clock.system_hz:,}, but must be the "
                         f"{clock.hz:,} of the oscillator: there is no PLL")
    if clock.accelerator_hz is not None and not (board.flow == "ecp5" and kind != "none"):
        raise BoardError(f"{place}: clock: accelerator_hz is {clock.accelerator_hz:,}, but only a "
                         "system on an ECP5 has a second clock; leave it out")
    if board.flow == "ecp5" and kind != "none":
        _check_ecp5(board, place)
        _check_accelerator(board, place)


def _check_accelerator(board: Board, place: str) -> None:
    """Its PLL makes the next lower clock that it can, so any one in its range will do."""
    wanted = board.clock.accelerator_hz
    if wanted is not None and not OUTPUT_HZ[0] <= wanted <= OUTPUT_HZ[1]:
        raise BoardError(f"{place}: clock: accelerator_hz is {wanted:,}, but the PLL of an ECP5 "
                         f"makes {OUTPUT_HZ[0]:,} to {OUTPUT_HZ[1]:,}")


def _check_ecp5(board: Board, place: str) -> None:
    hz, wanted = board.clock.hz, board.clock.system_hz
    if not PHASE_HZ[0] <= hz <= PHASE_HZ[1]:
        raise BoardError(f"{place}: clock: hz is {hz:,}, but the PLL of an ECP5 takes "
                         f"{PHASE_HZ[0]:,.0f} to {PHASE_HZ[1]:,.0f}")
    twice = board.memory.rate == "1:2"
    low, high = OUTPUT_HZ[0], OUTPUT_HZ[1] // (2 if twice else 1)
    if not low <= wanted <= high:
        raise BoardError(f"{place}: clock: system_hz is {wanted:,}, but the PLL of an ECP5 makes "
                         f"{low:,} to {high:,}{', and twice that for memory' if twice else ''}")
    outputs: list[float] = [2 * wanted if twice else wanted]
    if board.memory.kind == "ddr3":
        outputs.append(SETTLING_HZ)
    elif twice:
        outputs.append(wanted)
    if not pll_can_generate(hz, outputs):
        raise BoardError(f"{place}: clock: system_hz is {wanted:,}, which the PLL of an ECP5 does "
                         f"not make of {hz:,}; take one that is a simple fraction of it")


def pll_can_generate(hz: int, outputs: Sequence[float]) -> bool:
    """Whether one PLL of an ECP5 makes all of these clocks from an oscillator."""
    for divider in range(1, MOST_DIVIDER + 1):
        phase = hz / divider
        if not PHASE_HZ[0] <= phase <= PHASE_HZ[1]:
            continue
        for factor in range(ceil(VCO_HZ[0] / phase), floor(VCO_HZ[1] / phase) + 1):
            if all(_is_near(phase * factor, each) for each in outputs):
                return True
    return False


def _is_near(vco: float, wanted: float) -> bool:
    divider = min(max(round(vco / wanted), 1), MOST_DIVIDER)
    return abs(vco / divider - wanted) <= MARGIN * wanted
