"""A study of Optuna: in memory, or in a storage that several searchers share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from types import ModuleType
from typing import Protocol

from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ...isa.config import PRESETS
from ..points import canonical
from ..sampling import CONFIG_FIELDS, locate_config
from .question import Question

POPULATION = 32
WORST = 1e18                # what a trial is told that has no value


class Trial(Protocol):
    """What is used of Optuna's."""

    state: Enum
    params: Mapping[str, float]
    values: Sequence[float] | None

    def suggest_float(self, name: str, low: float, high: float) -> float: ...


class Study(Protocol):
    """What is used of Optuna's."""

    def ask(self) -> Trial: ...

    def tell(self, trial: Trial, values: Sequence[float]) -> object: ...

    def get_trials(self, *, deepcopy: bool) -> Sequence[Trial]: ...

    def enqueue_trial(self, params: Mapping[str, float]) -> None: ...


def open_study(question: Question, storage: str | None) -> Study:
    """The study of a question. Presets come first; a storage that has the study goes on with it."""
    optuna = import_optuna()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study: Study = optuna.create_study(
            directions=["minimize"] * len(question.objectives), storage=storage,
            study_name=None if storage is None else study_name(question), load_if_exists=True,
            sampler=optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=question.seed))
    except Exception as error:      # whatever its data base raises: nothing has been searched yet
        if storage is None:
            raise
        raise MicrotronError(f"--study is {quote(storage)}, which Optuna cannot open: "
                             f"{quote(str(error))}") from None
    if not study.get_trials(deepcopy=False):
        for row in filter(None, map(locate_config, PRESETS.values())):
            study.enqueue_trial(dict(zip(CONFIG_FIELDS, row, strict=True)))
    return study


def study_name(question: Question) -> str:
    """Different questions have different studies, so a storage may hold many."""
    budget = question.budget
    asked = {"tasks": [[task.digest, task.weight] for task in question.tasks],
             "board": budget.board.name, "memory": asdict(question.memory),
             "objectives": list(question.objectives), "areas": budget.model.weights,
             "cost model": None if question.model is None else dict(question.model.facts)}
    return f"microtron {hashlib.sha256(canonical(asked).encode()).hexdigest()[:16]}"


def begun_trials(study: Study) -> list[Trial]:
    """Trials that somebody has asked for, done or not."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name != "WAITING"]


def import_optuna() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise MicrotronError("searches of configurations need Optuna, which is not installed: "
                             "pip install 'microtron[explore]'") from None
    found: ModuleType = optuna
    return found
