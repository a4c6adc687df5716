"""Values that users hand over: integers of every kind, and how a message quotes what is wrong."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeAlias

PlainData: TypeAlias = dict[str, Any]   # what JSON and TOML know

SHOWN_LENGTH = 40               # characters of a value that a message quotes
LISTED = 8                      # names that a message lists
LONGEST_COMPARED = 60           # characters of names that are compared with others
MOST_COMPARED = 1000            # names
SHOWN_BITS = 128                # of an integer; Python refuses to print very long ones

_brief = reprlib.Repr()
_brief.maxlevel = 2
_brief.maxother = SHOWN_LENGTH


def integer(value: object) -> int | None:
    """A value as a plain integer, if it is an integer of any kind, such as one of NumPy's. None
    otherwise; a truth value does not count."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)        # type: ignore[arg-type]    # that is the question
    except TypeError:
        return None


def printable(text: str) -> str:
    """Text from anywhere, fit for a terminal: one line, without control characters, escape
    sequences and marks that change the direction of writing. They are spelled out, as \\x1b."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def show_name(name: object) -> str:
    """A name as messages use it: unchanged, if it is text, printable and not too long."""
    return printable(_truncate(name)) if isinstance(name, str) else quote(name)


def _truncate(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH - 1] + "…"


def list_names(names: Sequence[str]) -> str:
    """The first few of many names."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")


def quote(value: object) -> str:
    """A value as messages quote it: printable, on one line and not too long."""
    if isinstance(value, str):
        return repr(_truncate(value))
    if isinstance(value, int) and value.bit_length() > SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    text = " ".join(_brief.repr(value).split())
    return text if len(text) <= 2 * SHOWN_LENGTH else f"{text[:2 * SHOWN_LENGTH - 1]}…"


def near_misses(name: str, names: Iterable[str]) -> str:
    """What a message adds about names like one that is unknown; nothing if there are none."""
    from difflib import get_close_matches

    known = {each[:LONGEST_COMPARED].lower(): each for each in islice(names, MOST_COMPARED)}
    near = get_close_matches(name[:LONGEST_COMPARED].lower(), known, 3, 0.6)
    names = " or ".join(show_name(known[each]) for each in near)
    return f" (did you mean {names}?)" if near else ""
