"""Keywords of public functions and classes: a misspelt one is refused with the name that was
probably meant. Python says so itself from 3.13 on."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, Self, TypeAlias, TypeVar

from .errors import MicrotronError
from .near_misses import hint

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Declared: TypeAlias = Any       # what declares a field of a dataclass; the field has its own type


class KeywordError(MicrotronError, TypeError):
    """A keyword that a function does not have."""


def check_keywords(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A decorator: the function, which explains which keywords it has."""
    known = [name for name, each in inspect.signature(function).parameters.items()
             if each.kind != each.POSITIONAL_ONLY and name != "self"]

    @wraps(function)
    def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Returned:
        _check(f"{function.__name__}()", keywords, known)
        return function(*args, **keywords)
    return call


class KeywordsChecked:
    """A base of dataclasses whose constructors explain which keywords they have."""

    def __new__(cls, *_: object, **keywords: object) -> Self:
        if not keywords.keys() <= getattr(cls, "__dataclass_fields__", keywords).keys():
            _check(cls.__name__, keywords,
                   [each.name for each in dataclasses.fields(cls)])    # type: ignore[arg-type]
        return super().__new__(cls)


def _check(place: str, given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise KeywordError(f"{place} has no keyword {name!r}{hint(name, known)}")
