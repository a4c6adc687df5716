"""Reads tables of TOML field by field. A complaint is one line with the file and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

from ...base.checked_values import PlainData, integer, quote
from ...base.near_misses import hint
from ...base.text_file import read_text
from .errors import BoardError


def read_toml(path: Path) -> PlainData:
    try:
        return tomllib.loads(read_text(path))
    except OSError as error:
        raise BoardError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BoardError(f"{path}: not UTF-8 text") from None
    except (ValueError, RecursionError) as error:       # also numbers and nesting without end
        reason, *_ = str(error).splitlines() or [type(error).__name__]
        raise BoardError(f"{path}: not TOML: {reason}") from None


def merge_tables(table: PlainData, changes: PlainData) -> PlainData:
    """A table with others of its values; tables in it are merged in the same way."""
    merged = dict(table)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(table.get(key), dict)
        merged[key] = merge_tables(table[key], value) if both else value
    return merged


class TomlTable:
    """One table, whose keys are known in advance."""

    def __init__(self, table: object, place: str, known: Collection[str] | None = None):
        if not isinstance(table, dict):
            raise BoardError(f"{place} is {quote(table)}, but must be a table")
        for key in table:
            if known is not None and key not in known:
                raise BoardError(f"{place}: there is no {quote(key)}{hint(key, known)}")
        self.table: Mapping[str, object] = table
        self.place = place

    def text(self, key: str, default: str | None = None,
             choices: Collection[str] | None = None) -> str:
        value = self._value(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise self.wrong(key, "must be a text")
        if choices is not None and value not in choices:
            raise BoardError(f"{self.place}: {key} is {quote(value)}{hint(value, choices)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; none unless given."""
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(key, "must be a list of texts")
        return tuple(value)

    def number(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = integer(self._value(key, default))
        if value is None or not low <= value <= high:
            raise self.wrong(key, f"must be an integer from {low:,} to {high:,}")
        return value

    def positive(self, key: str) -> float:
        value = self._value(key, None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise self.wrong(key, "must be a number above zero")
        return float(value)

    def inner(self, key: str, known: Collection[str] | None = None) -> TomlTable:
        """A table in this one; empty unless given."""
        return TomlTable(self.table.get(key, {}), f"{self.place}: {key}", known)

    def wrong(self, key: str, right: str) -> BoardError:
        return BoardError(f"{self.place}: {key} is {quote(self.table.get(key))}, but {right}")

    def _value(self, key: str, default: object) -> object:
        if key not in self.table and default is None:
            raise BoardError(f"{self.place}: {key} is missing")
        return self.table.get(key, default)
