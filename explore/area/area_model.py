"""Predicts the area of a configuration: counts of what it is made of. For LUTs and registers each
has a weight of at least zero that is fitted to syntheses; multipliers and blocks of RAM are those
counts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np

from ...base.atomic_files import write_atomically
from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ...boards.facts.fit import preset_areas
from ...isa.config import PRESETS, Config
from ..data_files import are_weights, not_a_model, read_measured, read_model
from ..points import AREA, FAMILIES
from ..validation import Errors, errors_of
from .area_counts import KINDS, area_features

NAME, VERSION = "area model", 1
SHIPPED = Path(__file__).parent / "areas.csv"
LEAST_ROWS = 10             # of a family
# What decides most of the logic: all that few rows can tell apart.
MAIN_COUNTS = ("once", "lanes", "vector", "products", "banked lanes")
# A lane of the ALU and a product, synthesized alone: few designs do not tell their weights.
ALONE = {"ecp5": {"lut": {"lanes": 1076.0, "products": 18.0, "lut rams": 6.0},
                  "register": {"lanes": 757.0, "products": 33.0}}}
PRESET_AREAS = {"ecp5": "ecp5", "xc7": "zynq"}      # what areas.toml calls them
Weights = Mapping[str, Mapping[str, Mapping[str, float]]]       # by family, kind and count


@dataclass(frozen=True)
class AreaRow:
    """One synthesis."""

    config: Config
    family: str
    area: Mapping[str, float]


@dataclass(frozen=True)
class AreaModel:
    """Predicts what configurations take that nobody has synthesized."""

    weights: Weights
    errors: Mapping[str, Mapping[str, Mapping[str, float]]]     # held-out configurations

    def predict(self, config: Config, family: str,
                multipliers: int | None = None) -> dict[str, float]:
        """LUTs, registers, multipliers and blocks of RAM on a family of FPGAs, in a part with so
        many multipliers."""
        if family not in self.weights:
            raise MicrotronError(f"family is {quote(family)}, but must be one of "
                                 f"{', '.join(self.weights)}")
        weights = self.weights[family]
        return {kind: sum(weights[kind].get(name, 0.0) * count for name, count in counts.items())
                for kind, counts in area_features(config, family, multipliers).items()}

    def save(self, path: Path) -> None:
        write_atomically(path, (json.dumps(
            {"format": f"microtron {NAME}", "version": VERSION, "weights": self.weights,
             "errors": self.errors}, indent=1) + "\n").encode())


def fit_area(rows: Sequence[AreaRow], folds: int = 5, seed: int = 0) -> AreaModel:
    """A model of all rows, judged by folds that hold out whole configurations."""
    families = [family for family in FAMILIES if any(row.family == family for row in rows)]
    weights, errors = {}, {}
    for family in families:
        some = [row for row in rows if row.family == family]
        if len({row.config for row in some}) < max(LEAST_ROWS, folds):
            raise MicrotronError(f"{family}: there are {len(some)} rows, but an area model needs "
                                 f"{max(LEAST_ROWS, folds)} configurations or more")
        weights[family] = _weights(some)
        errors[family] = {kind: each.to_dict()
                          for kind, each in _judge(some, folds, seed).items()}
    return AreaModel(weights, errors)


def _weights(rows: Sequence[AreaRow]) -> dict[str, dict[str, float]]:
    """The weights with the least relative errors, none of them below zero."""
    from scipy.optimize import nnls

    features = [area_features(row.config, row.family) for row in rows]
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        names = list(features[0][kind])
        if "once" not in names:
            found[kind] = dict.fromkeys(names, 1.0)
            continue
        known: dict[str, float] = {}
        if len(rows) < 2 * len(names):
            known = ALONE.get(rows[0].family, {}).get(kind, {})
            names = [name for name in MAIN_COUNTS if name not in known]
        counts = np.array([[each[kind][name] for name in names] for each in features], float)
        exact = np.array([row.area[kind] for row in rows])
        rest = exact - sum(weight * np.array([each[kind][name] for each in features])
                           for name, weight in known.items())
        weights = nnls(counts / exact[:, None], rest / exact)[0].tolist()
        found[kind] = {**known, **dict(zip(names, weights, strict=True))}
    return found


def _judge(rows: Sequence[AreaRow], folds: int, seed: int) -> dict[str, Errors]:
    configs = sorted({row.config for row in rows}, key=lambda config: config.digest)
    random.Random(seed).shuffle(configs)
    part = {config: number % folds for number, config in enumerate(configs)}
    predicted: dict[str, list[float]] = {kind: [] for kind in KINDS}
    exact: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(folds):
        train = [row for row in rows if part[row.config] != number]
        model = AreaModel({rows[0].family: _weights(train)}, {})
        for row in rows:
            if part[row.config] == number:
                for kind, value in model.predict(row.config, row.family).items():
                    predicted[kind].append(value)
                    exact[kind].append(row.area[kind])
    return {kind: errors_of(np.array(predicted[kind]), np.array(exact[kind])) for kind in KINDS}


def read_areas(paths: Iterable[Path]) -> list[AreaRow]:
    """The rows of tables of `microtron dataset --area`."""
    return [AreaRow(config, family, dict(zip(KINDS, area, strict=True))) for path in paths
            for config, family, area in read_measured(path, KINDS, AREA, FAMILIES)]


@cache
def shipped_area_model() -> AreaModel:
    """The model of the syntheses that come with Microtron, and of what boards know of presets."""
    presets = [AreaRow(PRESETS[name], family, area) for family, called in PRESET_AREAS.items()
               for name, area in preset_areas(called).items()]
    ecp5 = _weights([row for row in (*read_areas([SHIPPED]), *presets) if row.family == "ecp5"])
    return AreaModel({"ecp5": ecp5, "xc7": _scaled(
        ecp5, [row for row in presets if row.family == "xc7"])}, {})


def _scaled(known: Mapping[str, Mapping[str, float]],
            rows: Sequence[AreaRow]) -> dict[str, dict[str, float]]:
    """Weights for a family of which few designs have been synthesized: those of another, all times
    the same, and a constant. Four designs do not tell counts apart, and what is large on one family
    is large on the other."""
    from scipy.optimize import nnls

    found: dict[str, dict[str, float]] = {}
    for kind, weights in known.items():
        found[kind] = dict(weights)
        if "once" not in weights:
            continue
        there = [sum(weights[name] * count for name, count in area_features(
            row.config, row.family)[kind].items()) for row in rows]
        exact = np.array([row.area[kind] for row in rows])
        counts = np.array([[1.0, each] for each in there])
        constant, scale = nnls(counts / exact[:, None], np.ones(len(rows)))[0].tolist()
        found[kind] = {name: scale * weight + constant * (name == "once")
                       for name, weight in weights.items()}
    return found


def load_area_model(path: str | PathLike[str]) -> AreaModel:
    """Read an area model that `microtron fit` wrote."""
    file, given = read_model(path, NAME, VERSION)
    if not _are_weights(given.get("weights")):
        raise not_a_model(file, NAME, VERSION)
    return AreaModel(given["weights"], given.get("errors") or {})


def _are_weights(given: object) -> bool:
    return isinstance(given, dict) and bool(given) and all(
        family in FAMILIES and isinstance(kinds, dict) and kinds.keys() == set(KINDS) and all(
            are_weights(names) for names in kinds.values()) for family, kinds in given.items())
