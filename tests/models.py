"""Real models and operator suites, which live beside the repository and may be absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def found_models() -> Path | None:
    """The folder of models: $MICROTRON_MODELS, or shared/models beside the repository or above."""
    named = os.environ.get("MICROTRON_MODELS")
    places = [Path(named)] if named else [each / "shared" / "models" for each in ROOT.parents]
    return next((place for place in places if (place / "MANIFEST.md").exists()), None)


MODELS = found_models()
needs_models = pytest.mark.skipif(
    MODELS is None, reason="there is no folder ../shared/models, nor $MICROTRON_MODELS")


def model_path(name: str) -> Path:
    """A model by its name, such as ad01_int8.tflite."""
    assert MODELS is not None
    return MODELS / "models" / name


def golden_path(name: str) -> Path:
    """Inputs and right outputs of a model: inN_sK, refN_sK and optN_sK."""
    assert MODELS is not None
    return MODELS / "golden" / f"{name}.npz"


def suite(name: str) -> Path:
    """A folder of single-operator models."""
    assert MODELS is not None
    return MODELS / "suites" / name


def model_names(ending: str) -> list[str]:
    """The models whose names end in this, if there are any here."""
    if MODELS is None:
        return []
    return sorted(path.name for path in (MODELS / "models").glob(f"*{ending}"))
