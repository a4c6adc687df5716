"""Errors of the compiler: what cannot be compiled, and what only a bug of ours can break."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from ..base.checked_values import quote
from ..base.errors import MicrotronError

REQUEST = "this is a bug in microtron: please report it, if you can with the model"


class CompileError(MicrotronError):
    """What was asked for cannot be compiled; the message says why and what would do."""


class InternalError(MicrotronError):
    """The compiler broke its own rules. The message names what it was working on."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}; {REQUEST}")
        self.what = what


class PassWarning(UserWarning):
    """A pass failed and was left out: results are right, and may take longer."""


@contextmanager
def attributed_to(place: str) -> Iterator[None]:
    """Give what only a bug can raise, such as a failed assertion, the name of what was being worked
    on. Errors that users can cause, and those of the system, pass as they are."""
    try:
        yield
    except (MicrotronError, OSError, MemoryError):
        raise
    except Exception as error:
        raise InternalError(place, summary(error)) from error


def summary(error: Exception) -> str:
    """An exception in a few words, with the line that raised it."""
    frame = extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    text = str(error) if isinstance(error, MicrotronError) else quote(str(error))
    return f"{type(error).__name__} in {place}" + (f", {text}" if str(error) else "")
