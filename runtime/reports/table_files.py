"""Tables in files, by their ending: Parquet, CSV or JSON lines. They are written whole or not at
all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.atomic_files import write_atomically
from ...base.errors import MicrotronError

if TYPE_CHECKING:
    from types import ModuleType

ENDINGS = (".parquet", ".csv", ".jsonl")
Row = Mapping[str, object]


def check_ending(path: Path) -> None:
    """Refuse a file that no table can be written to, before anything is measured."""
    if path.suffix not in ENDINGS:
        raise MicrotronError(f"{path} must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if path.suffix == ".parquet":
        import_parquet()


def flatten(row: Row) -> dict[str, object]:
    """A row of plain cells: what is inside of a mapping has both names, a list is JSON."""
    return dict(_cells("", row))


def _cells(prefix: str, row: Row) -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _cells(f"{prefix}{name}_", value)
        else:
            yield f"{prefix}{name}", json.dumps(value) if isinstance(value, list | tuple) else value


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


def _as_parquet(rows: Sequence[Row], names: Sequence[str]) -> bytes:
    import pyarrow

    parquet, buffer = import_parquet(), io.BytesIO()
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    parquet.write_table(pyarrow.table(columns), buffer, compression="zstd")
    return buffer.getvalue()


def _column(cells: Sequence[object]) -> object:
    """An Arrow array; of text, where cells have several types."""
    import pyarrow

    try:
        return pyarrow.array(cells)
    except pyarrow.ArrowException:
        return pyarrow.array([None if each is None else str(each) for each in cells])


def import_parquet() -> ModuleType:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MicrotronError("Parquet files need pyarrow, which is not installed: pip install "
                             "'microtron[tune]', or write .csv or .jsonl") from None
    found: ModuleType = parquet
    return found


def _without_nan(row: Row) -> dict[str, object]:
    return {name: None if value != value else value for name, value in row.items()}
