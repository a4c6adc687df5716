"""Hints for words that are not known: what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from .checked_values import SHOWN_LENGTH


def near(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that resembles a known one."""
    found = difflib.get_close_matches(word[:SHOWN_LENGTH].lower(), list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""


def hint(word: str, known: Collection[str]) -> str:
    """The end of a message about a word that is not known: a near one, or all there are."""
    return near(word, known) or (f"; known are {', '.join(known)}" if known else
                                 "; there are none")
