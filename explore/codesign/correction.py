"""What exact simulations say about predictions: how far these are off, as a linear function of the
logarithms of the fields. Where few points are known, most of it is an average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...isa.config import Config
from ..sampling import CONFIG_FIELDS
from .front import Point

if TYPE_CHECKING:
    import numpy.typing as npt

LEAST_POINTS = 4            # below them nothing is corrected
RIDGE = 4.0                 # what a weight costs, in squared errors of points


@dataclass(frozen=True)
class Correction:
    """Factors of predicted cycles."""

    centre: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    offset: float

    def factor(self, config: Config) -> float:
        return float(np.exp(self.offset + (_fields(config) - self.centre) @ self.weights))

    def correct(self, points: Sequence[Point]) -> list[Point]:
        return [replace(point, cycles=point.cycles * self.factor(point.config))
                for point in points]


def fit_correction(predicted: Mapping[Config, Point], exact: Mapping[Config, Point]) -> Correction:
    """From the configurations of which both are known. Their order does not matter."""
    known = sorted((config for config in exact if config in predicted),
                   key=lambda config: config.digest)
    size = len(CONFIG_FIELDS)
    if len(known) < LEAST_POINTS:
        return Correction(np.zeros(size), np.zeros(size), 0.0)
    rows = np.array([_fields(config) for config in known])
    errors = np.log([exact[config].cycles / predicted[config].cycles for config in known])
    centre, offset = rows.mean(axis=0), float(errors.mean())
    spread = rows - centre
    weights = np.linalg.solve(spread.T @ spread + RIDGE * np.eye(size),
                              spread.T @ (errors - offset))
    return Correction(centre, weights, offset)


def _fields(config: Config) -> npt.NDArray[np.float64]:
    return np.log2([max(1, getattr(config, name)) for name in CONFIG_FIELDS])
