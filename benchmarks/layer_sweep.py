"""Layers of many networks on `base` and on other configurations: `layers.py --all`.

A sweep takes minutes. With `--resume FILE` each row is written as it is measured, and the next run
goes on where this one stopped. The file says nothing about the compiler that measured it: start a
new one after a change.

Bounds count bytes and products of channels that exist. In memory, and on the array, channels fill
whole tiles: a layer of 24 channels moves 32, and groups of 4 channels use a quarter of a product.
The column "of tiles" compares with what whole tiles take.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from math import exp, log, prod
from pathlib import Path

from cases.other_layers import CONFIGURATIONS, OTHER_LAYERS, REFERENCE, OtherLayer, cases
from common import Column, Outcome, Row

from microtron import compile_op
from microtron.base.errors import MicrotronError
from microtron.compiler.compile import work_of
from microtron.compiler.operators.depthwise.grouped import GroupedForm, tile_products
from microtron.compiler.operators.form import Form, blocks_of
from microtron.isa.config import Config
from microtron.isa.instructions import INSTRUCTION_BYTES
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.reports.profile import profile

LONG = 5000                 # cycles from which a layer counts in the geometric mean
LOW = 0.8                   # of the bound: below, the table says where cycles went
SLOW_SECONDS = 2            # between lines that say how far the sweep is


def measure_case(name: str, layer: OtherLayer) -> Row:
    """A row: cycles of a layer on a configuration, its bound, and how busy each engine was."""
    config, memory = CONFIGURATIONS[name]
    row: Row = {"config": name, "layer": layer.name}
    start = time.process_time()
    try:
        kernel = compile_op(layer.spec, config, memory=memory)
    except MicrotronError as error:
        return {**row, "refused": str(error)}
    seconds = time.process_time() - start
    found = profile(kernel.program, memory)
    bound = work_of(layer.spec, config, memory).bound(config, memory)
    cycles = found.report.cycles
    assert cycles is not None
    moved = found.report.bytes + len(kernel.program.code) * INSTRUCTION_BYTES
    busy = {each.engine: each.working / cycles for each in found.engines
            if each.engine in ("gemm", "alu")}
    busy["bus"] = moved * memory.cycles_per_beat / config.bus_bytes / cycles
    tiles = max(bound.alone, least_traffic(kernel.form, config, memory),
                least_products(kernel.form, config))
    return {**row, "cycles": cycles, "bound": bound.alone, "limit": bound.limit,
            "efficiency": bound.alone / cycles, "of_tiles": min(1.0, tiles / cycles),
            "busy": busy, "compile_seconds": seconds,
            "instructions": len(kernel.program.code), "form": kernel.form.note,
            "knobs": str(kernel.knobs)}


def least_traffic(form: Form, config: Config, memory: MemoryTiming) -> float:
    """Cycles of the bus for the tensors of a form as they lie in memory, each moved once. Where a
    form reads a part of its input alone, the bound that counts bytes is the better one."""
    spec = form.spec
    kernel, stride = (getattr(spec, each, (1, 1)) for each in ("kernel", "stride"))
    if any(taps < step for taps, step in zip(kernel, stride, strict=True)):
        return 0
    bits = {"weights": config.wgt_bits}
    size = sum(prod(shape) * bits.get(name, 8) / 8 for name, shape in form.shapes.items()
               if name != "parameters")
    return size * memory.cycles_per_beat / config.bus_bytes


def least_products(form: Form, config: Config) -> int:
    """Tile products of a convolution in groups, whose bound counts single products."""
    if not isinstance(form, GroupedForm):
        return 0
    spec = form.spec
    return (blocks_of(spec.images, config.batch) * prod(spec.out_shape) * prod(spec.kernel)
            * tile_products(spec, config, form.merged))


def explain(row: Row) -> str:
    """Why a row is low, in words; nothing for others."""
    if "refused" in row:
        return str(row["refused"])
    if row["efficiency"] >= LOW:
        return ""
    why = "short" if row["cycles"] < LONG else ""
    if row["of_tiles"] - row["efficiency"] > 0.05:
        why = f"{why}{', ' if why else ''}tiles are partly empty"
    shares = ", ".join(f"{name} {share:.0%}" for name, share in row["busy"].items())
    return f"{why}{'; ' if why else ''}busy: {shares}"


def geometric_mean(values: Iterable[float]) -> float:
    logs = [log(each) for each in values]
    return exp(sum(logs) / len(logs)) if logs else float("nan")


def summarize(rows: list[Row]) -> list[str]:
    """A line for each configuration."""
    lines = []
    for name in CONFIGURATIONS:
        all_rows = [row for row in rows if row["config"] == name and "cycles" in row]
        own = [row for row in all_rows if row["cycles"] >= LONG] if name == REFERENCE else all_rows
        if own:
            lines.append(
                f"{name}: {geometric_mean(row['efficiency'] for row in own):.1%} of the bound, "
                f"{geometric_mean(row['of_tiles'] for row in own):.1%} of whole tiles, in the "
                f"geometric mean of {len(own)} layers"
                f"{f' above {LONG:,} cycles' if name == REFERENCE else ''}; "
                f"{sum(row['efficiency'] < LOW for row in own)} below {LOW:.0%}, "
                f"lowest {min(row['efficiency'] for row in own):.1%}")
    return lines


def load_rows(path: str) -> list[Row]:
    """What an earlier run has measured."""
    if not path or not Path(path).exists():
        return []
    try:
        return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines() if line]
    except (OSError, ValueError) as error:
        raise MicrotronError(f"{path}: not rows of a sweep: {error}") from None


def sweep(options: argparse.Namespace) -> Outcome:
    """Measure what is not in the file yet, as long as there is time."""
    rows = load_rows(options.resume)
    known = {(row["config"], row["layer"]) for row in rows}
    wanted = [each for each in cases() if options.only in each[0] or options.only in each[1].name]
    if not wanted:
        raise MicrotronError(f"--only {options.only!r}: no configuration or layer contains it")
    left = [each for each in wanted if (each[0], each[1].name) not in known]
    end, told = time.monotonic() + options.seconds, time.monotonic()
    for number, (name, layer) in enumerate(left):
        if time.monotonic() > end:
            print(f"{len(left) - number} of {len(wanted)} cases are left", file=sys.stderr)
            break
        rows.append(measure_case(name, layer))
        if options.resume:
            with Path(options.resume).open("a", encoding="utf-8") as file:
                print(json.dumps(rows[-1], ensure_ascii=False), file=file)
        if time.monotonic() > told + SLOW_SECONDS:
            told = time.monotonic()
            print(f"{number + 1} of {len(left)}: {name}, {layer.name}", file=sys.stderr)
    names = {(name, layer.name) for name, layer in wanted}
    rows = [row for row in rows if (row["config"], row["layer"]) in names]
    return Outcome(
        benchmark="layers --all", title=f"{len(OTHER_LAYERS)} layers of other networks",
        rows=[{**row, "note": explain(row)} for row in rows], details=tuple(summarize(rows)),
        columns=(Column("config", "configuration"), Column("layer", "layer"),
                 *(_optional(*each) for each in (
                     ("cycles", "cycles", "{:,}"), ("bound", "bound", "{:,.0f}"),
                     ("limit", "limit", "{}"), ("efficiency", "efficiency", "{:.1%}"),
                     ("of_tiles", "of tiles", "{:.1%}"))),
                 Column("note", f"below {LOW:.0%}")),
        facts={"summary": summarize(rows)} if options.json else {})


def _optional(key: str, title: str, form: str) -> Column:
    """A column that refused layers do not fill."""
    return Column(key, title, lambda value: "" if value is None else form.format(value))
