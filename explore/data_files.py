"""Reads columns of data sets, from Parquet, CSV or JSON lines, and models of configurations."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from ..base.argument_checks import check_path
from ..base.checked_values import PlainData, quote
from ..base.errors import MicrotronError
from ..base.text_file import read_text
from ..isa.config import Config
from ..runtime.reports.table_files import check_ending, import_parquet
from .points import PointError, parse_config

LONGEST_FIELD = 1 << 20     # characters
LARGEST_WEIGHT = 1e30       # of a model; neither infinite nor none at all


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


def is_table_of(kind: str, path: Path) -> bool:
    """Whether a table is of points of this kind."""
    return f'"kind":"{kind}"' in str(next(iter(read_column(path, "asked")), ""))


def read_measured(path: Path, names: Sequence[str], kind: str, families: Sequence[str]
                  ) -> Iterator[tuple[Config, str, list[float]]]:
    """Configuration, family and measured columns of each row of a table of `microtron dataset`
    with --area or --clock, which is the kind."""
    columns = [read_column(path, name) for name in ("asked", *names)]
    for number, (asked, *values) in enumerate(zip(*columns, strict=True), 1):
        yield _parse_row(f"{path}: row {number}", asked, values, kind, families)


def _parse_row(place: str, asked: object, values: Sequence[object], kind: str,
               families: Sequence[str]) -> tuple[Config, str, list[float]]:
    try:
        given = json.loads(str(asked))
        family, config = given["family"], parse_config(given.get("config"))
        numbers = [float(str(each)) for each in values]
        is_kind = given.get("kind") == kind
    except PointError as error:
        raise MicrotronError(f"{place}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_kind = False
    if not is_kind:
        raise MicrotronError(f"{place}: not a row of microtron dataset --{kind}")
    if family not in families or not all(0 < each < 1e9 for each in numbers):
        raise MicrotronError(f"{place}: family is {quote(family)} and the {kind} {numbers}, but "
                             f"must be one of {', '.join(families)} and positive numbers")
    return config, family, numbers


def read_model(path: str | PathLike[str], name: str, version: int) -> tuple[Path, PlainData]:
    """The JSON object that `microtron fit` wrote for a model of a name: "area model", …"""
    file = check_path("path", path)
    try:
        given = json.loads(read_text(file))
    except OSError as error:
        raise MicrotronError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise MicrotronError(f"{file}: not {_a(name)}: it is not JSON") from None
    if not isinstance(given, dict) or (given.get("format"), given.get("version")) != (
            f"microtron {name}", version):
        raise not_a_model(file, name, version)
    return file, given


def not_a_model(path: Path, name: str, version: int) -> MicrotronError:
    return MicrotronError(f"{path}: not {_a(name)} of version {version}")


def are_weights(given: object) -> bool:
    """Whether these are finite numbers by name."""
    return isinstance(given, dict) and all(
        isinstance(each, float | int) and not isinstance(each, bool) and abs(each) < LARGEST_WEIGHT
        for each in given.values())


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
