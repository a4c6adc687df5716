"""What is wrong with a board, or with a design for it."""

from __future__ import annotations

from ...base.errors import MicrotronError


class BoardError(MicrotronError):
    """An unknown board, a bad board file, or a design that does not fit the part."""
