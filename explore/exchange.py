"""Records as JSON lines, to hand them to others and to take theirs.

Each line is one record: what was asked, the digests of the sources, and what came out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ..base.atomic_files import write_atomically
from ..base.checked_values import quote
from .points import canonical
from .records import Record, RecordError, Records

PARTS = ("asked", "sources", "measured")
LONGEST_LINE = 1 << 20      # characters; a record has a few thousand


def export_records(records: Records, path: Path) -> int:
    """Write all records to a file, in the order in which they were added. How many there are."""
    lines = [f"{canonical({part: getattr(record, part) for part in PARTS})}\n".encode()
             for record in records]
    write_atomically(path, lines)
    return len(lines)


def import_records(records: Records, path: Path) -> tuple[int, int]:
    """Add the records of a file, all or none. How many it has, and how many of them are new."""
    found = list(read_lines(path))
    return len(found), records.add_all(found)


def read_lines(path: Path) -> Iterator[Record]:
    """The records of a file."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), 1):
                if line.strip():
                    yield _parse_line(f"{path}:{number}", line)
    except UnicodeDecodeError:
        raise RecordError(f"{path}: not JSON lines: it is not UTF-8 text") from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None


def _parse_line(place: str, line: str) -> Record:
    try:
        given = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise RecordError(f"{place}: {quote(line.strip())} is not a record in JSON") from None
    if not isinstance(given, dict) or given.keys() != set(PARTS) or not all(
            isinstance(each, dict) for each in given.values()):
        raise RecordError(f"{place}: {quote(given)} is not a record: it must be an object of "
                          f"{', '.join(PARTS)}, each an object")
    if not all(isinstance(each, str) for each in given["sources"].values()):
        raise RecordError(f"{place}: sources are {quote(given['sources'])}, but must be digests")
    return Record(given["asked"], given["sources"], given["measured"])


def _refuse_constant(name: str) -> object:
    raise ValueError(name)          # NaN and infinities are no JSON
