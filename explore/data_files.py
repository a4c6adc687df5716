"""Reads columns of data sets, from Parquet, CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..runtime.reports.table_files import check_ending, import_parquet

LONGEST_FIELD = 1 << 20     # characters


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
    except MicrotronError:              # says so itself, and is a ValueError
        raise
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (KeyError, TypeError):
        raise MicrotronError(f"{path}: has no column {name!r} in every row: not a data set of "
                             f"microtron dataset") from None
    except (ValueError, csv.Error, RecursionError) as error:
        raise MicrotronError(f"{path}: not a table: {quote(str(error))}") from None


def _parquet_column(path: Path, name: str) -> list[object]:
    import pyarrow

    if not path.is_file():
        raise MicrotronError(f"{path}: cannot be read: No such file")
    try:
        found: list[object] = import_parquet().read_table(path, columns=[name])[name].to_pylist()
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from None
    return found
