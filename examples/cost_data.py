"""Gathers data for a cost model: layers × configurations × knobs × memories, a row for each.

    python examples/cost_data.py cost_data.csv
    python examples/cost_data.py cost_data.json --candidates 20 --processes 4

Every row has the layer, the configuration, the knobs and the memory that were tried, the work and
the three bounds of the layer, what the program does, and what it costs: exact cycles and all
counters.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from microtron import (
    PRESETS,
    Conv2d,
    Dense,
    Job,
    MemoryTiming,
    compile_op,
    schedules_of,
    simulate_many,
    work_of,
)

LAYERS: dict[str, Any] = {
    "3x3": Conv2d(height=14, width=14, channels_in=64, channels_out=64, pad=(1, 1, 1, 1)),
    "1x1": Conv2d(height=14, width=14, channels_in=64, channels_out=128, kernel=(1, 1)),
    "classifier": Dense(rows=1, inputs=128, outputs=100),
}
CONFIGS = {"small": PRESETS["small"], "base": PRESETS["base"],
           "base, 128 bits": replace(PRESETS["base"], bus_bits=128)}
MEMORIES = (MemoryTiming(), MemoryTiming(read_latency=100))
CANDIDATES = 6              # schedules of each layer on each configuration, unless told

Row = dict[str, Any]


def points(most: int) -> Iterator[tuple[Row, Job]]:
    """What is tried: how it is described, and the simulation that measures it."""
    rng = random.Random(0)
    for layer, spec in LAYERS.items():
        for name, config in CONFIGS.items():
            found = list(schedules_of(spec, config))
            for form, knobs in rng.sample(found, min(most, len(found))):
                kernel = compile_op(spec, config, form=form, knobs=knobs)
                for memory in MEMORIES:
                    work = work_of(spec, config, memory)
                    described = {
                        "layer": layer, "configuration": name,
                        **{f"knob_{key}": int(value) for key, value in asdict(knobs).items()},
                        **{f"work_{key}": value for key, value in asdict(work).items()},
                        **{f"bound_{key}": value
                           for key, value in asdict(work.bound(config, memory)).items()},
                        "instructions": len(kernel.program.code)}
                    yield described, Job(program=kernel.program, memory=memory,
                                         name=f"{layer} on {name}")


def gather(most: int, processes: int | None) -> list[Row]:
    """A row for each point."""
    described, jobs = zip(*points(most), strict=True)
    reports = simulate_many(jobs, processes=processes)
    return [{**about, **report.to_row()} for about, report in zip(described, reports, strict=True)]


def as_text(rows: list[Row], suffix: str) -> str:
    """The rows as JSON, or as CSV, in which layers without some knob leave it empty."""
    if suffix == ".json":
        return json.dumps(rows, indent=1)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(_columns(rows))), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _columns(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield from row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="to write: .csv or .json")
    parser.add_argument("--candidates", type=int, default=CANDIDATES,
                        help=f"schedules of each layer on each configuration ({CANDIDATES})")
    parser.add_argument("--processes", type=int, help="as many as processors unless given")
    options = parser.parse_args()
    if options.file.suffix not in (".csv", ".json"):
        parser.error(f"{options.file} must end with .csv or .json")
    rows = gather(options.candidates, options.processes)
    draft = options.file.with_suffix(".tmp")
    draft.write_text(as_text(rows, options.file.suffix), encoding="utf-8", newline="")
    draft.replace(options.file)         # whole, or as it was
    best = min(rows, key=lambda row: row["cycles"] / _bound(row))
    part = 100 * _bound(best) / best["cycles"]
    print(f"{options.file}: {len(rows)} rows; the best, {best['layer']} on "
          f"{best['configuration']}, reaches {part:.1f} % of its bound")


def _bound(row: Row) -> float:
    return float(max(row["bound_macs"], row["bound_memory"], row["bound_alu"]))


if __name__ == "__main__":
    main()
