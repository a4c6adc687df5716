"""The store of measurements: one SQLite file to which records are only ever added.

A record has what was asked, what came out, and the digests of the sources that measured it, so
that it says by itself whether it still holds:

    valid       measured by these sources
    stale       measured by others: the answer may be another one today
    foreign     asked for something that this Microtron does not have

What is added is a transaction, in a write-ahead log: whoever is killed loses the points under way
and nothing else, and several processes may write at once. Asking the same of the same
sources again is no second record.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from ..base.argument_checks import check_path
from ..base.errors import MicrotronError
from ..base.source_digest import source_digest
from .points import (
    AREA,
    CLOCK,
    DEVICE,
    LAYER,
    NETWORK,
    UNIT,
    Json,
    PointError,
    canonical,
    check_point,
    point_key,
)

APPLICATION = 0x4D545243    # "MTRC", in the header of the file
VERSION = 1
PATIENCE = 60.0             # seconds to wait for another process that writes
SHORT = 16                  # hexadecimal digits of a digest of sources
SCHEMA = (
    """CREATE TABLE records (
        number INTEGER PRIMARY KEY,
        key TEXT NOT NULL,              -- digest of `asked`
        kind TEXT NOT NULL,
        asked TEXT NOT NULL,            -- JSON, as are the next two
        sources TEXT NOT NULL,          -- digests by name
        measured TEXT NOT NULL,
        checksum TEXT NOT NULL,         -- of the three texts
        UNIQUE (key, sources))""",
    *(f"""CREATE TRIGGER no_{action} BEFORE {action} ON records
          BEGIN SELECT RAISE(ABORT, 'records are only ever added'); END"""
      for action in ("UPDATE", "DELETE")),
    f"PRAGMA application_id={APPLICATION}",
    f"PRAGMA user_version={VERSION}")
StoredRow = tuple[str, str, str, str, str, str]     # a row of the table, but its number
# Which sources decide the outcome of each kind of point.
SOURCES = {LAYER: {"compiler": "microtron.compiler.compile", "simulator": "microtron.sim.simulate"},
           DEVICE: {"compiler": "microtron.compiler.compile", "hardware": "microtron.hw.top"},
           NETWORK: {"compiler": "microtron.runtime.models.compilation",
                     "simulator": "microtron.sim.simulate"},
           AREA: {"hardware": "microtron.hw.top"},
           CLOCK: {"hardware": "microtron.boards.build.bare"},
           UNIT: {}}        # its text and the tools are in the question


class State(Enum):
    VALID = "valid"
    STALE = "stale"
    FOREIGN = "foreign"


class RecordError(MicrotronError):
    """A store that is damaged, foreign or cannot be written."""


@dataclass(frozen=True)
class Record:
    """One measurement."""

    asked: Json
    sources: Mapping[str, str]
    measured: Json

    @property
    def key(self) -> str:
        return point_key(self.asked)

    @property
    def state(self) -> State:
        """Whether it holds for the sources of this Microtron."""
        try:
            if self.sources.keys() != current_sources(str(self.asked.get("kind"))).keys():
                return State.FOREIGN
            check_point(self.asked)
        except PointError:
            return State.FOREIGN
        return State.VALID if self.is_current else State.STALE

    @property
    def is_current(self) -> bool:
        return dict(self.sources) == current_sources(str(self.asked.get("kind")))

    def to_row(self) -> StoredRow:
        """As a store has it, which any process can make."""
        asked, sources, measured = map(canonical, (self.asked, self.sources, self.measured))
        return (hashlib.sha256(asked.encode()).hexdigest(), str(self.asked.get("kind")), asked,
                sources, measured, _checksum(asked, sources, measured))


@cache
def current_sources(kind: str) -> dict[str, str]:
    """Digests of the sources that measure points of a kind."""
    if kind not in SOURCES:
        raise PointError(f"kind is {kind!r}, but must be one of {', '.join(SOURCES)}")
    return {name: source_digest(module)[:SHORT] for name, module in SOURCES[kind].items()}


class Records:
    """A store, opened; use it in a `with` statement. A file that is not there yet is created."""

    def __init__(self, path: Path | str) -> None:
        self.path = check_path("path", path)
        with self._explain_errors():
            self._database = sqlite3.connect(self.path, PATIENCE, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def _prepare(self) -> None:
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")     # what is committed outlives us
        with self._transaction():
            if not self._pragma("application_id") and not self._tables():
                for statement in SCHEMA:
                    self._database.execute(statement)
        if self._pragma("application_id") != APPLICATION:
            raise RecordError(f"{self.path}: a SQLite file, but not a store of records")
        if self._pragma("user_version") != VERSION:
            raise RecordError(f"{self.path}: a store of version {self._pragma('user_version')}, "
                              f"but this Microtron reads version {VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def __len__(self) -> int:
        with self._explain_errors():
            number: int = self._database.execute("SELECT count(*) FROM records").fetchone()[0]
        return number

    def __iter__(self) -> Iterator[Record]:
        """All records, in the order in which they were added."""
        yield from self._select("ORDER BY number")

    def add(self, record: Record) -> bool:
        """Add a record, at once and for good. False if it is there already."""
        return self.add_all([record]) == 1

    def add_all(self, records: Iterable[Record]) -> int:
        """Add records in one transaction. How many of them are new."""
        return self.add_rows([each.to_row() for each in records])

    def add_rows(self, rows: Sequence[StoredRow]) -> int:
        """The same with records of which others have made rows."""
        with self._explain_errors(), self._transaction():
            before = self._database.total_changes
            self._database.executemany(
                "INSERT OR IGNORE INTO records (key, kind, asked, sources, measured, checksum) "
                "VALUES (?, ?, ?, ?, ?, ?)", rows)
            return self._database.total_changes - before

    def find(self, asked: Json) -> Json | None:
        """What came out, if these sources have measured this point."""
        sources = canonical(current_sources(str(asked.get("kind"))))
        found = list(self._select("WHERE key = ? AND sources = ?", point_key(asked), sources))
        return found[0].measured if found else None

    def keys_among(self, kind: str, keys: Iterable[str]) -> set[str]:
        """Those of some keys whose points these sources have measured."""
        sources = canonical(current_sources(kind))
        with self._explain_errors():
            return {key for key in keys if self._database.execute(
                "SELECT 1 FROM records WHERE key = ? AND sources = ?", (key, sources)).fetchone()}

    def _select(self, where: str, *values: str) -> Iterator[Record]:
        with self._explain_errors():
            for number, *texts, checksum in self._database.execute(
                    f"SELECT number, asked, sources, measured, checksum FROM records {where}",
                    values):
                if not all(isinstance(text, str) for text in texts) or _checksum(
                        *texts) != checksum:
                    raise RecordError(f"{self.path}: record {number} is damaged")
                yield Record(*map(json.loads, texts))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. Writers take turns from its beginning."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.rollback()
            raise
        self._database.commit()

    def _pragma(self, name: str) -> int:
        number: int = self._database.execute(f"PRAGMA {name}").fetchone()[0]
        return number

    def _tables(self) -> int:
        number: int = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return number

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:       # locked, full, not allowed, no such folder
            raise RecordError(f"{self.path}: cannot be used as a store of records: {error}"
                              ) from None
        except sqlite3.DatabaseError as error:
            raise RecordError(f"{self.path}: not a store of records, or a damaged one: {error}"
                              ) from None


def _checksum(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:SHORT]
