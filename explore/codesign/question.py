"""What a search of configurations is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...base.checked_values import near_misses, quote
from ...base.errors import MicrotronError
from ...isa.memory_timing import MemoryTiming
from ..predictor import CostModel
from .board_budget import Budget
from .workload import Task

OBJECTIVES = ("latency", "lut", "register", "dsp", "bram")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is searched."""

    tasks: Sequence[Task]
    budget: Budget
    memory: MemoryTiming
    objectives: Sequence[str] = ("latency", "lut", "dsp")
    model: CostModel | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for each in self.objectives:
            if each not in OBJECTIVES:
                raise MicrotronError(f"objective is {quote(each)}, but must be one of "
                                     f"{', '.join(OBJECTIVES)}{near_misses(each, OBJECTIVES)}")
        if "latency" not in self.objectives or len(set(self.objectives)) != len(self.objectives):
            raise MicrotronError(f"objectives are {', '.join(self.objectives)}, but must name "
                                 f"latency and each at most once")
