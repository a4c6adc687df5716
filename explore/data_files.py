"""Tables in files, by their ending: Parquet, CSV or JSON lines. They are written whole or not at
all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.atomic_files import write_atomically
from ..base.checked_values import quote
from ..base.errors import MicrotronError

if TYPE_CHECKING:
    from types import ModuleType

ENDINGS = (".parquet", ".csv", ".jsonl")
LONGEST_FIELD = 1 << 20     # characters
Row = Mapping[str, object]


def check_ending(path: Path) -> None:
    """Refuse a file that no table can be written to, before anything is measured."""
    if path.suffix not in ENDINGS:
        raise MicrotronError(f"{path} must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if path.suffix == ".parquet":
        _parquet()


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows; a column that some of them lack is empty there."""
    check_ending(path)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        write_atomically(path, _as_parquet(rows, names))
    elif path.suffix == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(path, text.getvalue().encode())
    else:
        write_atomically(path, (f"{json.dumps(_without_nan(row))}\n".encode() for row in rows))


def read_column(path: Path, name: str) -> list[object]:
    """One column of a table."""
    check_ending(path)
    try:
        if path.suffix == ".parquet":
            return _parquet_column(path, name)
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                csv.field_size_limit(LONGEST_FIELD)
                return [row[name] for row in csv.DictReader(file)]
            return [json.loads(line)[name] for line in file if line.strip()]
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (KeyError, TypeError):
        raise MicrotronError(f"{path}: has no column {name!r} in every row: not a data set of "
                             f"microtron dataset") from None
    except (ValueError, csv.Error, RecursionError) as error:
        raise MicrotronError(f"{path}: not a table: {quote(str(error))}") from None


def _as_parquet(rows: Sequence[Row], names: Sequence[str]) -> bytes:
    import pyarrow

    parquet, buffer = _parquet(), io.BytesIO()
    columns = {name: [row.get(name) for row in rows] for name in names}
    parquet.write_table(pyarrow.table(columns), buffer, compression="zstd")
    return buffer.getvalue()


def _parquet_column(path: Path, name: str) -> list[object]:
    import pyarrow

    if not path.is_file():
        raise MicrotronError(f"{path}: cannot be read: No such file")
    try:
        found: list[object] = _parquet().read_table(path, columns=[name])[name].to_pylist()
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from None
    return found


def _parquet() -> ModuleType:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MicrotronError("Parquet files need pyarrow, which is not installed: pip install "
                             "'microtron[tune]', or write .csv or .jsonl") from None
    found: ModuleType = parquet
    return found


def _without_nan(row: Row) -> dict[str, object]:
    return {name: None if value != value else value for name, value in row.items()}
