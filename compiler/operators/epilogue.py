"""What all operators end with: sums of 32 bits become results of 8."""

from __future__ import annotations

from dataclasses import dataclass

from ...isa.instructions import Requantize, RequantizeFlags, Rounding

ROUNDING_FLAGS = {Rounding.TWICE: RequantizeFlags(0), Rounding.EVEN: RequantizeFlags.EVEN,
                  Rounding.AWAY: RequantizeFlags.AWAY}


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """The part of an operator's description that says how results are rounded and clamped."""

    zero_point_out: int = 0
    low: int = -128
    high: int = 127
    rounding: Rounding = Rounding.TWICE

    def requantization(self) -> Requantize:
        """The instruction of the epilogue, but for its tiles and loops."""
        return Requantize(flags=ROUNDING_FLAGS[self.rounding], zero_point=self.zero_point_out,
                          low=self.low, high=self.high)
