"""Points a second of several workers against one process: a fresh data set for each, in a
temporary folder, and whether the records are the same.

    python benchmarks/tuning.py --workers 2 --points 4000

Times begin when the pool is there: starting workers takes some seconds once. `processor` is the
time of all processes, the command's and the workers', which other work on the machine does not
change; a machine of as many processors as workers is done no sooner than after that time divided
by them.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from common import Column, Outcome, Row, factor

from microtron.explore.dataset import Design, collect
from microtron.explore.distributed.pool import compile_code, open_pool
from microtron.explore.layer_sources import sample_layers
from microtron.explore.records import Records
from microtron.explore.sampling import sample_configs, sample_memories

SEED = 34
SAMPLES = 256               # of layers and configurations
SCHEDULES, MEMORIES = 4, 2


def compare_workers(options: argparse.Namespace) -> Outcome:
    """A row for one process, and one for the workers."""
    compile_code()
    with TemporaryDirectory() as folder:
        counts = (1, options.workers)
        stores = [Path(folder) / f"{count}.records" for count in counts]
        rows = [measure_rate(count, options.points, store)
                for count, store in zip(counts, stores, strict=True)]
        same = contents(stores[0]) == contents(stores[1])
    for row in rows:
        row["gain"] = row["rate"] / rows[0]["rate"]
        row["possible"] = row["workers"] * rows[0]["processor"] / row["processor"]
    return Outcome(
        benchmark="tuning", title="Exact points a second",
        columns=(Column("workers", "workers"), Column("points", "points"),
                 Column("seconds", "seconds", "{:.1f}".format),
                 Column("processor", "processor seconds", "{:.1f}".format),
                 Column("own", "of which the command's", "{:.1f}".format),
                 Column("rate", "points a second", "{:.1f}".format),
                 Column("gain", "gain", factor),
                 Column("possible", "by processor time", factor)),
        rows=rows, facts={"points": options.points, "same records": same},
        details=(f"the records are {'the same' if same else 'NOT the same'}",
                 f"{3600 * rows[-1]['rate']:,.0f} points an hour"))


def measure_rate(workers: int, points: int, store: Path) -> Row:
    """A data set by so many workers."""
    design = Design(configs=sample_configs(SAMPLES, SEED), layers=sample_layers(SAMPLES, SEED),
                    memories=sample_memories(MEMORIES, SEED), schedules=SCHEDULES, seed=SEED)
    children = processor_time(resource.RUSAGE_CHILDREN)
    with open_pool(workers) as pool:
        begin, own = time.monotonic(), processor_time(resource.RUSAGE_SELF)
        done = collect(design, store, points=points, pool=pool)
        seconds = time.monotonic() - begin
        own = processor_time(resource.RUSAGE_SELF) - own
    # Workers count from their start on, imports included: their time is known when they have ended.
    children = processor_time(resource.RUSAGE_CHILDREN) - children
    return {"workers": workers, "points": done.measured, "seconds": seconds, "own": own,
            "processor": own + children, "rate": done.measured / seconds}


def processor_time(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def contents(store: Path) -> list[str]:
    """All records, in an order of their own."""
    with Records(store) as records:
        return sorted(repr((each.asked, each.sources, each.measured)) for each in records)
