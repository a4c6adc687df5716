"""A cost model in two files: the trees as XGBoost writes them, and a schema that says what goes in
and what comes out.

    model.json          XGBoost's own JSON, which other tools load
    model.schema.json   names of the features in order, the target, where the model comes from

The trees predict log2(cycles / pipeline): what the simulation of steps in `pipeline/` leaves to be
learned.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..base.argument_checks import check_path
from ..base.atomic_files import write_together
from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..base.keywords import check_keywords
from ..base.source_digest import source_digest
from ..base.text_file import read_text
from ..compiler.compile import resolve_config
from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.choice import rank_candidates
from ..compiler.operators.description import Description
from ..isa.config import Config
from ..isa.memory_timing import MemoryTiming
from .features import features_of
from .points import LayerPoint, Schedule

FORMAT = "microtron cost model"
VERSION = 2
TARGET = "log2(cycles / pipeline)"
MOST_BYTES = 1 << 30        # of a file of trees
Floats = npt.NDArray[np.float64]


class Trees(Protocol):
    """What is used of a model of XGBoost."""

    def inplace_predict(self, data: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...

    def save_raw(self, raw_format: str) -> bytearray: ...


@dataclass(frozen=True, eq=False)
class CostModel:
    """Predicts cycles of layers on configurations that nobody has measured."""

    trees: Trees
    features: tuple[str, ...]
    facts: Mapping[str, object]         # of the data it was trained on, and how good it is

    def predict(self, config: Config | str, layer: Description, memory: MemoryTiming | None = None,
                schedule: Schedule | None = None) -> float:
        """Cycles of a layer on a configuration; with the schedule that estimates choose, unless
        one is given."""
        target, timing = resolve_config(config), memory or MemoryTiming()
        return float(self.predict_points([LayerPoint(
            layer, target, timing, schedule or best_schedule(layer, target, timing))])[0])

    def predict_points(self, points: Sequence[LayerPoint]) -> Floats:
        """Cycles of many points."""
        rows = [features_of(point) for point in points]
        ratios = self.trees.inplace_predict(matrix_of(rows, self.features)).astype(float)
        predicted: Floats = np.exp2([row["pipeline"] for row in rows] + ratios)
        return predicted

    @property
    def is_current(self) -> bool:
        """Whether features and estimates are computed as they were for the training."""
        return self.facts.get("sources") == feature_sources()

    def save(self, path: Path) -> None:
        """Write both files."""
        content = bytes(self.trees.save_raw("json"))
        schema = {"format": FORMAT, "version": VERSION, "target": TARGET,
                  "features": list(self.features), "sha256": hashlib.sha256(content).hexdigest(),
                  **self.facts}
        write_together({path: content,
                        schema_path(path): f"{json.dumps(schema, indent=1)}\n".encode()})


def best_schedule(layer: Description, config: Config, memory: MemoryTiming) -> Schedule:
    """The schedule with the best analytic estimate."""
    operator = operator_of(layer)
    best = rank_candidates(operator.template, operator.forms_of(layer, config), memory)[0]
    return Schedule(best.form.number, best.knobs)


@check_keywords
def load_cost_model(path: str | PathLike[str]) -> CostModel:
    """Read a cost model that `microtron fit` wrote."""
    file = check_path("path", path)
    schema = _read_schema(schema_path(file))
    try:
        if file.stat().st_size > MOST_BYTES:
            raise MicrotronError(f"{file}: has more than {MOST_BYTES} bytes")
        content = file.read_bytes()
    except OSError as error:
        raise MicrotronError(f"{file}: cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != schema["sha256"]:
        raise MicrotronError(f"{file}: not the file that {schema_path(file).name} belongs to")
    trees = import_xgboost().Booster()
    try:
        trees.load_model(bytearray(content))
    except ValueError as error:                 # XGBoost's own errors are
        raise MicrotronError(f"{file}: XGBoost cannot read it: {quote(str(error))}") from None
    features = schema["features"]
    assert isinstance(features, list), "checked with the schema"
    if trees.num_features() != len(features):
        raise MicrotronError(f"{file}: has {trees.num_features()} features, but its schema has "
                             f"{len(features)}")
    return CostModel(trees, tuple(features), {name: value for name, value in schema.items()
                                              if name not in REQUIRED})


def schema_path(path: Path) -> Path:
    return path.parent / f"{path.stem}.schema.json"


REQUIRED = {"format": str, "version": int, "target": str, "features": list, "sha256": str}


def _read_schema(path: Path) -> dict[str, object]:
    try:
        schema = json.loads(read_text(path))
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise MicrotronError(f"{path}: not the schema of a cost model: it is not JSON") from None
    if not isinstance(schema, dict) or schema.get("format") != FORMAT or any(
            not isinstance(schema.get(name), kind) for name, kind in REQUIRED.items()) or not all(
            isinstance(each, str) for each in schema["features"]):
        raise MicrotronError(f"{path}: not the schema of a cost model: it must have "
                             f"{', '.join(REQUIRED)}, and {FORMAT!r} as its format")
    if schema["version"] != VERSION or schema["target"] != TARGET:
        raise MicrotronError(f"{path}: version {schema['version']} that predicts "
                             f"{quote(schema['target'])}, but this Microtron reads version "
                             f"{VERSION} that predicts {TARGET!r}")
    return schema


def matrix_of(rows: Iterable[Mapping[str, float]],
              names: Sequence[str]) -> npt.NDArray[np.float32]:
    """Features in columns, in the order of the names. Others are left out; those that are missing
    are not a number."""
    return np.array([[row.get(name, np.nan) for name in names] for row in rows], np.float32)


def feature_sources() -> str:
    """A digest of the sources that features and estimates come from."""
    return source_digest("microtron.explore.features")[:16]


def import_xgboost() -> ModuleType:
    try:
        import xgboost
    except ImportError:
        raise MicrotronError("cost models need XGBoost, which is not installed: "
                             "pip install 'microtron[tune]'") from None
    found: ModuleType = xgboost
    return found
