"""What all operators end with: sums of 32 bits become results of 8."""

from __future__ import annotations

from dataclasses import dataclass

from ...isa.instructions import Rounding


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """The part of an operator's description that says how results are rounded and clamped."""

    zero_point_out: int = 0
    low: int = -128
    high: int = 127
    rounding: Rounding = Rounding.TWICE
