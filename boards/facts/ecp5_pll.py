"""A PLL of an ECP5 that makes one clock: the accelerator's own."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from .clocks import MOST_DIVIDER, PHASE_HZ, VCO_HZ
from .errors import BoardError

CELL = "accelerator_pll"            # the instance's name, by which it is found in a netlist


@dataclass(frozen=True)
class PllSettings:
    """Dividers of an EHXPLLL. Its first output is the clock, its second one feeds back:

        oscillator / input ── phase detector ── VCO ─┬─ / output ──▶ clock
                                 / feedback ◀── / second ◀┘
    """

    input_divider: int
    feedback_divider: int
    second_divider: int
    output_divider: int
    hz: float                       # of the clock that they make

    @property
    def parameters(self) -> dict[str, int | str]:
        """As the cell has them."""
        return {"CLKI_DIV": self.input_divider, "CLKFB_DIV": self.feedback_divider,
                "CLKOP_DIV": self.output_divider, "CLKOP_CPHASE": self.output_divider - 1,
                "CLKOS_DIV": self.second_divider, "CLKOS_CPHASE": self.second_divider - 1,
                "CLKOP_FPHASE": 0, "CLKOS_FPHASE": 0, "CLKOP_ENABLE": "ENABLED",
                "CLKOS_ENABLE": "ENABLED", "FEEDBK_PATH": "INT_OS"}


def choose_settings(oscillator_hz: int, most_hz: float) -> PllSettings:
    """The fastest clock up to `most_hz` that a PLL makes of an oscillator."""
    best: PllSettings | None = None
    for input_divider in range(1, MOST_DIVIDER + 1):
        phase = oscillator_hz / input_divider
        if not PHASE_HZ[0] <= phase <= PHASE_HZ[1]:
            continue
        for factor in range(ceil(VCO_HZ[0] / phase), floor(VCO_HZ[1] / phase) + 1):
            output = max(1, ceil(phase * factor / most_hz))
            split = _split(factor)
            if output > MOST_DIVIDER or split is None:
                continue
            found = PllSettings(input_divider, *split, output, phase * factor / output)
            if best is None or found.hz > best.hz:
                best = found
    if best is None:
        raise BoardError(f"the PLL of an ECP5 makes no clock up to {most_hz:,.0f} Hz of "
                         f"{oscillator_hz:,} Hz")
    return best


def _split(factor: int) -> tuple[int, int] | None:
    """A factor as that of the feedback's two dividers."""
    for second in range(1, MOST_DIVIDER + 1):
        if factor % second == 0 and factor // second <= MOST_DIVIDER:
            return factor // second, second
    return None


def format_constraint(hz: float, net: str = "{clk}") -> str:
    """The line of an LPF file that says how fast a net is to be."""
    return f'FREQUENCY NET "{net}" {hz / 1e6:.4f} MHz;'
