"""Errors of the compiler."""

from __future__ import annotations

from ..isa.errors import MicrotronError


class CompileError(MicrotronError):
    """What was asked for cannot be compiled; the message says why and what would do."""
