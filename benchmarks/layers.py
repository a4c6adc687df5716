"""Layers of known networks as compiled: cycles against the bound, with latency hidden and not.

The bound of a layer is the largest of three times: its tile products on the MAC array, its bytes
(what it reads and writes, each once) on the bus, and its vectors on the ALU, each at full speed.
Efficiency is the bound divided by the cycles, utilization the part of all multipliers' cycles that
the result needed: a depthwise convolution, which can use one row of the array, has a low one
however good its schedule. Where a layer is far from its bound, or further than on the reference
configuration, the table says where the cycles went.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace

import numpy as np
from cases.known_layers import LAYERS, Layer
from common import Column, Outcome, Result, Row, factor, main, quantity

from microtron import compile_op
from microtron.base.errors import MicrotronError
from microtron.compiler.compile import bound_of, work_of
from microtron.compiler.operators.kernel import Kernel
from microtron.isa.config import Config, base
from microtron.isa.config_files import load_config
from microtron.isa.instructions import INSTRUCTION_BYTES, Engine
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Program, engines_of
from microtron.runtime.reports.profile import Profile, profile
from microtron.sim.simulate import simulate

REFERENCE = base, MemoryTiming()
FAR = 0.9                   # below this part of the reference's efficiency, a layer is explained
LITTLE = 0.005              # of the cycles: not worth a word


def measure_layer(layer: Layer, config: Config, memory: MemoryTiming,
                  repeats: int) -> Row:
    """A row: what a layer needs, and what it takes."""
    seconds, kernel = _time(lambda: compile_op(layer.spec, config, memory=memory), repeats)
    found = profile(kernel.program, memory)
    serial = compile_op(layer.spec, config, memory=memory, hide_latency=False).program
    work = work_of(layer.spec, config, memory)
    least = work.bound(config, memory)
    row: Row = {
        "network": layer.network, "name": layer.name, "vta": layer.vta, "shape": layer.shape,
        "times": layer.times, "offloaded": layer.offloaded, "macs": work.macs,
        "bytes": work.bytes, "bound": least.cycles, "limit": least.limit,
        "cycles": found.report.cycles,
        "cycles_without_hiding": simulate(serial, memory=memory).cycles,
        "compile_seconds": seconds, "knobs": _knobs_of(kernel),
        "instructions": len(kernel.program.code), "gemm": _gemm(found),
        "where": where(kernel.program, found, least.memory)}
    row |= _ratios(row, config)
    row["reference"] = _reference(layer, config, memory)
    far = row["efficiency"] < FAR * (1 if row["reference"] is None else row["reference"])
    return {**row, "far": far, "note": explain(row["where"]) if far else ""}


def _time(function: Callable[[], Result], repeats: int) -> tuple[float, Result]:
    """Seconds of the processor in the fastest of some calls, and the result. Compiling is the work
    of one thread, so that other work on the machine does not count."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def _knobs_of(kernel: Kernel) -> Row:
    fold = asdict(kernel.form.fold) if hasattr(kernel.form, "fold") else {}
    return {**{f"fold_{name}": value for name, value in fold.items()}, **asdict(kernel.knobs)}


def _reference(layer: Layer, config: Config, memory: MemoryTiming) -> float | None:
    """The efficiency of the layer on the reference configuration; None if this is it."""
    if (config, memory) == REFERENCE:
        return None
    cycles = simulate(compile_op(layer.spec, base).program).cycles
    assert cycles is not None
    return bound_of(layer.spec, *REFERENCE).cycles / cycles


def _gemm(found: Profile) -> dict[str, int]:
    """Where GEMM's cycles went."""
    engine = next(each for each in found.engines if each.engine == "gemm")
    return {"working": engine.working, "queue": engine.queue, "idle": engine.idle,
            **{f"waits_for_{giver}": cycles for giver, cycles in engine.tokens.items()}}


def where(program: Program, found: Profile, needed: float) -> dict[str, float]:
    """Parts of all cycles: in which GEMM had not begun, waited for others, or had ended; in which
    the bus was busy; and of these, those for more than the `needed` ones: parameters, borders that
    are read twice, instructions."""
    report, config = found.report, program.config
    assert report.cycles is not None
    assert report.timeline is not None
    gemms = np.flatnonzero(engines_of(program) == Engine.GEMM)
    begun = int(report.timeline.start[gemms].min())
    ended = int(report.timeline.end[gemms].max())
    waits = {f"waits for {name.removeprefix('waits_for_')}": cycles
             for name, cycles in _gemm(found).items() if name.startswith("waits_for_")}
    waits["waits for load"] -= min(begun, waits["waits for load"])
    beats = (report.bytes + len(program.code) * INSTRUCTION_BYTES) / config.bus_bytes
    assert report.memory is not None
    busy = beats * report.memory.cycles_per_beat
    spent = {"before": begun, **waits, "after": report.cycles - ended, "bus": busy,
             "beyond": busy - needed}
    return {name: cycles / report.cycles for name, cycles in spent.items()}


def explain(spent: dict[str, float]) -> str:
    """In words: where the cycles of a layer went."""
    texts = {"before": "before the first product", "after": "after the last",
             **{name: f"gemm {name}" for name in spent if name.startswith("waits")}}
    parts = [f"{spent[name]:.0%} {text}" for name, text in texts.items() if spent[name] >= LITTLE]
    return (f"{', '.join(parts)}; bus busy {spent['bus']:.0%}, {spent['beyond']:.0%} "
            f"beyond the bound")


def _ratios(row: Row, config: Config) -> dict[str, float]:
    return {"utilization": row["macs"] / (row["cycles"] * config.macs_per_cycle),
            "efficiency": row["bound"] / row["cycles"],
            "efficiency_without_hiding": row["bound"] / row["cycles_without_hiding"],
            "gain": row["cycles_without_hiding"] / row["cycles"]}


def total(rows: Iterable[Row], name: str, times: Callable[[Row], int],
          config: Config) -> Row:
    """A row that sums others up, each as often as it occurs."""
    rows = [row for row in rows if times(row)]
    summed = {key: sum(row[key] * times(row) for row in rows) for key in (
        "macs", "bytes", "bound", "cycles", "cycles_without_hiding")}
    count = sum(times(row) for row in rows)
    return {"network": "total", "name": name, "vta": "", "shape": f"{count} layers",
            "times": count, "offloaded": 0, **summed, "limit": "", "knobs": {}, "gemm": {},
            "where": {}, "reference": None, "far": False, "note": "",
            "instructions": sum(row["instructions"] * times(row) for row in rows),
            "compile_seconds": sum(row["compile_seconds"] for row in rows),
            **_ratios(summed, config)}


def totals(rows: list[Row], config: Config) -> list[Row]:
    """For every network that was measured whole, and for what VTA runs of ResNet-18."""
    found = []
    names = {(row["network"], row["name"]) for row in rows}
    for network in dict.fromkeys(row["network"] for row in rows):
        layers = {(network, layer.name) for layer in LAYERS if layer.network == network}
        if layers <= names:
            own = [row for row in rows if row["network"] == network]
            found.append(total(own, network, lambda row: int(row["times"]), config))
            if any(row["offloaded"] for row in own):
                found.append(total(own, f"{network}, as VTA",
                                   lambda row: int(row["offloaded"]), config))
    return found


def select_layers(names: str) -> list[Layer]:
    """Layers by network or name, as in resnet18 or C2,C5,mobilenet."""
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in {each for layer in LAYERS for each in (layer.network, layer.name)}:
            raise MicrotronError(f"there is no layer or network {name!r}; there are "
                                 f"{', '.join(dict.fromkeys(each.network for each in LAYERS))} and "
                                 f"{', '.join(layer.name for layer in LAYERS)}")
    return [layer for layer in LAYERS
            if not wanted or layer.name in wanted or layer.network in wanted]


def measure(options: argparse.Namespace) -> Outcome:
    if options.all:
        from layer_sweep import sweep
        return sweep(options)
    config = load_config(options.config)
    if options.bus:
        config = replace(config, bus_bits=options.bus)
    memory = MemoryTiming(read_latency=options.latency)
    layers = select_layers(options.layers)
    simulate(compile_op(layers[0].spec, config, memory=memory).program)  # compiles the simulator
    rows = [measure_layer(layer, config, memory, options.repeats) for layer in layers]
    seconds = sorted(row["compile_seconds"] for row in rows)
    more = COLUMNS_MORE if options.verbose else ()
    reference = () if (config, memory) == REFERENCE else (
        Column("reference", "base", _percent),)
    return Outcome(
        benchmark="layers", title=f"Layers on {options.config}, {config.bus_bits}-bit bus, "
        f"{memory.read_latency} cycles of latency", rows=[*rows, *totals(rows, config)],
        columns=(Column("name", "layer"), Column("shape", "shape"), *more[:-1],
                 Column("cycles", "cycles", _format_integer),
                 Column("efficiency", "efficiency", _percent),
                 Column("utilization", "MACs used", _percent),
                 *reference, Column("efficiency_without_hiding", "in turns", _percent),
                 Column("compile_seconds", "compiled in", quantity("s")), *more[-1:],
                 Column("note", f"below {FAR:.0%}{' of base' if reference else ''}: where cycles "
                                f"went")),
        facts={"config": options.config, "bus_bits": config.bus_bits,
               "read_latency": memory.read_latency, "macs_per_cycle": config.macs_per_cycle,
               "median_compile_seconds": seconds[len(seconds) // 2]})


def _format_integer(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _knobs(knobs: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in knobs.items() if value)


COLUMNS_MORE = (
    Column("vta", "VTA's"), Column("times", "times"), Column("macs", "work", quantity("MAC")),
    Column("bytes", "memory", quantity("B")), Column("bound", "bound", _format_integer),
    Column("gain", "gain", factor), Column("knobs", "knobs", _knobs))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", default="base", help="a preset or a file (default: base)")
    parser.add_argument("--bus", type=int, default=0, help="another width of the bus, in bits")
    parser.add_argument("--latency", type=int, default=MemoryTiming().read_latency,
                        help="cycles until a read's first beat (default: 32)")
    parser.add_argument("--layers", default="", help="networks or names, as C2,C5 (default: all)")
    parser.add_argument("--repeats", type=int, default=2,
                        help="compilations of a layer, of which the fastest counts (default: 2)")
    parser.add_argument("--all", action="store_true",
                        help="layers of many other networks on base, and one of each kind on other "
                             "configurations")
    parser.add_argument("--resume", default="", metavar="FILE",
                        help="with --all: rows measured so far; new ones are added")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="with --all: stop after as many, with what there is")
    parser.add_argument("--only", default="",
                        help="with --all: cases whose configuration or layer contains this text")
    parser.add_argument("--verbose", action="store_true",
                        help="more columns: work, memory, bound, knobs; JSON always has them")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
