"""Errors of the compiler."""

from __future__ import annotations

from ..isa.errors import MicrotronError

SHOWN = 80                  # characters of a value in a message


class CompileError(MicrotronError):
    """What was asked for cannot be compiled; the message says why and what would do."""


def shown(value: object) -> str:
    """A value as a message shows it: cut short, and without those digits that Python refuses to
    print."""
    try:
        text = repr(value)
    except ValueError:
        text = f"of type {type(value).__name__} and too long to print"
    return text if len(text) <= SHOWN else f"{text[:SHOWN - 1]}…"
