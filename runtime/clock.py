"""The clock of an accelerator: what turns cycles into seconds, and who says so."""

from __future__ import annotations

from math import isfinite

from ..base.checked_values import quote
from ..base.classes.dataclass import dataclass
from ..base.errors import MicrotronError

DEFAULT_MHZ = 100.0


@dataclass(frozen=True)
class Clock:
    """Of the accelerator, and who says so: nobody ("assumed"), the user ("given") or a board."""

    mhz: float = DEFAULT_MHZ
    source: str = "assumed"

    def __post_init__(self) -> None:
        if isinstance(self.mhz, bool) or not isinstance(self.mhz, int | float) or not (
                isfinite(self.mhz) and self.mhz > 0):
            raise MicrotronError(f"the clock is {quote(self.mhz)} MHz, but must be above zero, as "
                                 f"in 100")

    def seconds(self, cycles: float) -> float:
        return cycles / (self.mhz * 1e6)

    def __str__(self) -> str:
        said = {"assumed": " (assumed; --clock sets it)", "given": ""}
        return f"{self.mhz:g} MHz{said.get(self.source, f' on {self.source}')}"
