"""Checks of the arguments of public functions: a wrong one is refused in one line."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from .checked_values import quote
from .errors import MicrotronError


def check_type(name: str, value: object, kind: type, wanted: str) -> None:
    if not isinstance(value, kind):
        raise MicrotronError(f"{name} is {quote(value)}, but must be {wanted}")


def check_callable(name: str, value: object) -> None:
    """Refuse what is neither None nor can be called."""
    if value is not None and not callable(value):
        raise MicrotronError(f"{name} is {quote(value)}, but must be a function")


def check_path(name: str, value: str | PathLike[str]) -> Path:
    """A path, given as a string or as anything that stands for one."""
    if isinstance(value, str | PathLike):
        text = fspath(value)
        if isinstance(text, str) and "\0" not in text:
            return Path(text)
    raise MicrotronError(f"{name} is {quote(value)}, but must be the path of a file: a string or a "
                         f"pathlib.Path")
