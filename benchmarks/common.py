"""What the benchmark scripts share: timing, a table for people, one JSON object for scripts.

A script has a function that measures and returns an `Outcome`, and hands it to `main`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar

from microtron.base.checked_values import PlainData
from microtron.base.errors import MicrotronError

Result = TypeVar("Result")
Row: TypeAlias = PlainData
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"))


@dataclass(frozen=True)
class Column:
    """A column of the table: a key of every row, its heading, and how its values are written."""

    key: str
    title: str
    text: Callable[[Any], str] = str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a benchmark found. Rows go to the table and, whole, to JSON."""

    benchmark: str
    title: str
    columns: tuple[Column, ...]
    rows: list[Row]
    facts: dict[str, object] = field(default_factory=dict)  # true of all rows: config, size …
    details: tuple[str, ...] = ()       # lines for people, below the table


def best_of(function: Callable[[], Result], times: int = 3) -> tuple[float, Result]:
    """Seconds of the fastest of several calls, and what the last one returned."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def quantity(unit: str) -> Callable[[float], str]:
    """Writes numbers with three or four digits and a prefix: 4.71 GMAC/s."""
    def text(value: float) -> str:
        for scale, prefix in PREFIXES:
            if abs(value) >= scale:
                return f"{value / scale:.{2 if value / scale < 100 else 0}f} {prefix}{unit}"
        return f"{value:g} {unit}"
    return text


def factor(value: float) -> str:
    return f"{value:.2f}×"


def main(measure: Callable[[argparse.Namespace], Outcome], description: str,
         arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None) -> None:
    """The command line of a benchmark. `arguments` adds the script's own options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    arguments(parser)
    options = parser.parse_args()
    try:
        outcome = measure(options)
    except MicrotronError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        sys.exit(2)
    if options.json:
        print(json.dumps(as_json(outcome), ensure_ascii=False))
    else:
        print_table(outcome)


def as_json(outcome: Outcome) -> dict[str, object]:
    return {"benchmark": outcome.benchmark, "date": datetime.now(UTC).isoformat("T", "seconds"),
            "host": host(), "facts": outcome.facts, "rows": outcome.rows}


def host() -> dict[str, object]:
    """What a measurement depends on besides the program."""
    return {"machine": platform.machine(), "processors": os.cpu_count(),
            "python": platform.python_version(),
            **{name: version(name) for name in ("microtron", "numpy", "numba")}}


def print_table(outcome: Outcome) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=outcome.title, title_justify="left")
    for number, column in enumerate(outcome.columns):
        table.add_column(column.title, justify="right" if number else "left")
    for row in outcome.rows:
        table.add_row(*(column.text(row.get(column.key)) for column in outcome.columns))
    about = {**outcome.facts, **host(), "date": datetime.now(UTC).strftime("%Y-%m-%d")}
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in about.items()), style="dim")
    for line in outcome.details:
        print(line)
