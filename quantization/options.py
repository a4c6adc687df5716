"""How to quantize a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from ..base.checked_values import integer, quote
from ..base.errors import MicrotronError
from .calibration.ranges import BEST, check_method

TECHNIQUES = ("smooth", "equalize", "absorb", "refine", "round", "correct")
JUDGED = (16, 64)               # samples on which candidates are compared, by the model's size
JUDGED_MACS = 4e9               # of one candidate on more than the fewest


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """All choices that a user has. Techniques are tried, and used where they help."""

    method: str = BEST                      # of choosing ranges
    techniques: Sequence[str] = TECHNIQUES
    weight_bits: int = 8
    keep_float: Sequence[str] = ()        # layers that are not quantized, by name
    max_loss: float | None = None           # points of accuracy, or percent of error
    judged_samples: int | None = None       # as many as the model's size allows

    def __post_init__(self) -> None:
        check_method(self.method)
        for name in ("techniques", "keep_float"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence) or not all(
                    isinstance(each, str) for each in given):
                raise MicrotronError(f"{name} is {quote(given)}, but must be a list of names")
            object.__setattr__(self, name, tuple(given))
        for each in self.techniques:
            if each not in TECHNIQUES:
                raise MicrotronError(f"techniques have {quote(each)}, but must be among "
                                     f"{', '.join(TECHNIQUES)}")
        if integer(self.weight_bits) not in (4, 8):
            raise MicrotronError(f"weight_bits is {quote(self.weight_bits)}, but must be 4 or 8")
        count = integer(self.judged_samples)
        if self.judged_samples is not None and (count is None or count < 1):
            raise MicrotronError(f"judged_samples is {quote(self.judged_samples)}, but must be a "
                                 f"whole number from 1 on")
        loss = self.max_loss
        if loss is not None and (isinstance(loss, bool) or not isinstance(loss, int | float)
                                 or not isfinite(loss) or loss < 0):
            raise MicrotronError(f"max_loss is {quote(loss)}, but must be a number from 0 on")

    def count_judged(self, macs: int, *, random: bool) -> int:
        """On how many samples candidates are compared. What is rare shows on many only, and random
        samples say little anyway."""
        if self.judged_samples is not None:
            return self.judged_samples
        fewest, most = JUDGED
        return fewest if random else int(min(most, max(fewest, JUDGED_MACS // max(macs, 1))))
