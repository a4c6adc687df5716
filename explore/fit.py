"""Fits cost models to data sets, and says how good they are on what they have not seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..base.errors import MicrotronError
from .data_files import read_column
from .features import bound_of_point, estimate_of, features_of
from .points import LayerPoint, PointError, describe, parse_point, point_key
from .predictor import CostModel, Trees, feature_sources, import_xgboost, matrix_of
from .validation import Errors, Floats, HeldOut, calibration, errors_of, folds

# Few points are far off, such as those that wait for memory: absolute errors do not follow these.
SETTINGS = {"objective": "reg:absoluteerror", "tree_method": "hist", "learning_rate": 0.03,
            "max_depth": 7, "subsample": 0.5, "colsample_bynode": 0.3,
            "reg_lambda": 2.0, "nthread": 1}        # threads wait for each other on a busy machine
ROUNDS = 800                # trees
# Rows of a leaf. Those of one layer on one configuration resemble one another, so small leaves
# learn pairs by heart; of few rows, a share.
LEAF_ROWS, LEAF_SHARE = 15, 0.01
LEAST_ROWS = 50
MODEL, PIPELINE = "cost model", "steps simulated"
ESTIMATE, ROOFLINE = "analytic estimate", "roofline"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class TrainingData:
    """A data set as numbers."""

    names: tuple[str, ...]
    features: npt.NDArray[np.float32]
    cycles: Floats
    pipelines: Floats           # cycles of the steps as simulated, which the trees correct
    estimates: Floats
    bounds: Floats
    configurations: tuple[str, ...]
    layers: tuple[str, ...]
    operators: tuple[str, ...]

    @property
    def targets(self) -> npt.NDArray[np.float32]:
        return np.log2(self.cycles / self.pipelines).astype(np.float32)


@dataclass(frozen=True)
class Fit:
    """A cost model, and what cross-validation says about it."""

    predictor: CostModel
    errors: Mapping[HeldOut, Mapping[str, Errors]]      # by kind of prediction
    operators: Mapping[str, Errors]                     # the model's, where both are held out,
    calibration: Sequence[Mapping[str, object]]         # as this

    def to_dict(self) -> dict[str, object]:
        return {held_out.value: {name: each.to_dict() for name, each in kinds.items()}
                for held_out, kinds in self.errors.items()}


def load_data(paths: Sequence[Path], tell: Tell = lambda doing: None) -> TrainingData:
    """The points of data sets; features are computed anew, as this version does."""
    points: list[LayerPoint] = []
    cycles: list[float] = []
    for path in paths:
        tell(f"reading {path}")
        for number, (asked, exact) in enumerate(zip(
                read_column(path, "asked"), read_column(path, "cycles"), strict=True), 1):
            points.append(_point(f"{path}: row {number}", asked))
            cycles.append(_positive(f"{path}: row {number}: cycles", exact))
    if len(points) < LEAST_ROWS:
        raise MicrotronError(f"there are {len(points)} rows, but a cost model needs {LEAST_ROWS} "
                             f"or more")
    tell(f"computing features of {len(points)} rows")
    rows = [features_of(point) for point in points]
    names = tuple(rows[0])
    return TrainingData(
        names, matrix_of(rows, names), np.array(cycles),
        np.exp2([row["pipeline"] for row in rows]),
        np.array(list(map(estimate_of, points))),
        np.array(list(map(bound_of_point, points))),
        tuple(point.config.digest for point in points),
        tuple(point_key(describe(point.layer)) for point in points),
        tuple(point.layer.operator for point in points))


def _point(place: str, asked: object) -> LayerPoint:
    try:
        given = json.loads(str(asked))
        return parse_point(given if isinstance(given, dict) else {})
    except (PointError, RecursionError) as error:
        raise MicrotronError(f"{place}: {error}") from None
    except ValueError:
        raise MicrotronError(f"{place}: asked is not JSON") from None


def _positive(place: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise MicrotronError(f"{place} is {value!r}, but must be a positive number")
    return number


def fit(data: TrainingData, *, count: int = 5, seed: int = 0, rounds: int = ROUNDS,
        tell: Tell = lambda doing: None) -> Fit:
    """A cost model of all data, judged by folds that hold out configurations, layers and both."""
    errors: dict[HeldOut, dict[str, Errors]] = {}
    curve: list[dict[str, object]] = []
    by_operator: dict[str, Errors] = {}
    for held_out in HeldOut:
        judged, predicted = [], []
        total = count * count if held_out is HeldOut.BOTH else count
        for number, (train, test) in enumerate(folds(
                held_out, data.configurations, data.layers, count, seed), 1):
            tell(f"{held_out.value} held out: fold {number} of {total}")
            trees = train_trees(data, train, seed, rounds)
            judged.append(test)
            predicted.append(data.pipelines[test] * np.exp2(
                trees.inplace_predict(data.features[test]).astype(float)))
        rows, found = np.concatenate(judged), np.concatenate(predicted)
        errors[held_out] = {
            MODEL: errors_of(found, data.cycles[rows]),
            PIPELINE: errors_of(data.pipelines[rows], data.cycles[rows]),
            ESTIMATE: errors_of(data.estimates[rows], data.cycles[rows]),
            ROOFLINE: errors_of(data.bounds[rows], data.cycles[rows])}
        curve = calibration(found, data.cycles[rows])
        operators = np.array(data.operators)[rows]
        by_operator = {name: errors_of(*(each[operators == name] for each in (
            found, data.cycles[rows]))) for name in np.unique(operators).tolist()}
    tell(f"fitting {len(data.cycles)} rows")
    trees = train_trees(data, np.arange(len(data.cycles)), seed, rounds)
    facts = {"sources": feature_sources(), "rows": len(data.cycles), "seed": seed,
             "configurations": len(set(data.configurations)), "layers": len(set(data.layers)),
             "errors": {held_out.value: {name: each.to_dict() for name, each in kinds.items()}
                        for held_out, kinds in errors.items()},
             "operators": {name: each.to_dict() for name, each in by_operator.items()}}
    return Fit(CostModel(trees, data.names, facts), errors, by_operator, curve)


def train_trees(data: TrainingData, rows: npt.NDArray[np.intp], seed: int, rounds: int) -> Trees:
    """Gradient-boosted trees for some rows."""
    library = import_xgboost()
    leaf = min(LEAF_ROWS, max(2.0, LEAF_SHARE * len(rows)))
    settings = {**SETTINGS, "min_child_weight": leaf, "seed": seed}
    trees: Trees = library.train(settings, library.DMatrix(
        data.features[rows], data.targets[rows], feature_names=list(data.names)), rounds)
    return trees
