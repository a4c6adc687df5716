"""A search of configurations for the page: all its points, and those that no other one beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base.checked_values import PlainData
from ..isa.config import Config

MOST_PREDICTED = 5000       # points that are drawn besides those that were simulated


@dataclass(frozen=True, kw_only=True)
class ParetoPoint:
    """A configuration with what it takes."""

    kind: str               # front, exact, predicted or baseline
    name: str
    config: Config
    cycles: float
    area: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Pareto:
    """What a search found."""

    board: str
    mhz: float
    objectives: Sequence[str]
    points: Sequence[ParetoPoint]
    trials: int
    rejected: Sequence[tuple[str, int, str]]        # reason, trials, an example

    def to_dict(self) -> PlainData:
        """Fields of configurations are named once: there may be thousands of points."""
        fields = list(Config().to_dict())
        others = [each for each in self.points if each.kind != "predicted"]
        predicted = [each for each in self.points if each.kind == "predicted"]
        every = -(-len(predicted) // MOST_PREDICTED) or 1
        drawn = [*predicted[::every], *others]
        return {"board": self.board, "mhz": self.mhz, "objectives": list(self.objectives),
                "kinds": list(self.points[0].area) if self.points else [], "fields": fields,
                "trials": self.trials,
                "fit": sum(each.kind != "baseline" for each in self.points),
                "left_out": len(self.points) - len(drawn),
                "rejected": [list(each) for each in self.rejected],
                "points": [_point(each, fields) for each in drawn]}


def _point(point: ParetoPoint, fields: Sequence[str]) -> PlainData:
    config = point.config.to_dict()
    return {"kind": point.kind, "name": point.name, "latency": point.cycles, **point.area,
            "config": [config[each] for each in fields]}
