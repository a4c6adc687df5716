"""Layers of known networks as compiled: cycles against the bound, with latency hidden and not.

The bound of a layer is the larger of two times: its products at full speed of the MAC array, and
its bytes (what it reads and writes, each once) at full speed of the bus.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from common import Column, Outcome, Result, factor, main, quantity
from networks import LAYERS, Layer

from microtron.isa.config import Config
from microtron.isa.config_files import load_config
from microtron.isa.errors import MicrotronError
from microtron.isa.timing import MemoryTiming
from microtron.runtime.profile import Profile, profile
from microtron.sim.simulate import simulate


def measured(layer: Layer, config: Config, memory: MemoryTiming, repeats: int) -> dict[str, Any]:
    """A row: what a layer needs, and what it takes."""
    work = layer.work
    seconds, (program, knobs) = _timed(lambda: work.compile(config, hide_latency=True), repeats)
    found = profile(program, memory)
    serial, _ = work.compile(config, hide_latency=False)
    least = work.bound(config, memory)
    row = {"network": layer.network, "name": layer.name, "vta": layer.vta, "shape": work.shape,
           "times": layer.times, "offloaded": layer.offloaded, "macs": work.macs,
           "bytes": work.bytes, "bound": least.cycles, "limit": least.limit,
           "cycles": found.report.cycles,
           "cycles_without_hiding": simulate(serial, memory=memory).cycles,
           "compile_seconds": seconds, "knobs": knobs, "instructions": len(program.code),
           "gemm": _gemm(found)}
    return {**row, **_ratios(row)}


def _timed(function: Callable[[], Result], repeats: int) -> tuple[float, Result]:
    """Seconds of the processor in the fastest of some calls, and the result. Compiling is the work
    of one thread, so that other work on the machine does not count."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def _gemm(found: Profile) -> dict[str, int]:
    """Where GEMM's cycles went: the explanation, if the bound is far."""
    engine = next(each for each in found.engines if each.engine == "gemm")
    return {"working": engine.working, "queue": engine.queue, "idle": engine.idle,
            **{f"waits_for_{giver}": cycles for giver, cycles in engine.tokens.items()}}


def _ratios(row: dict[str, Any]) -> dict[str, float]:
    return {"efficiency": row["bound"] / row["cycles"],
            "efficiency_without_hiding": row["bound"] / row["cycles_without_hiding"],
            "gain": row["cycles_without_hiding"] / row["cycles"]}


def total(rows: Iterable[dict[str, Any]], name: str, times: Callable[[dict[str, Any]], int],
          ) -> dict[str, Any]:
    """A row that sums others up, each as often as it occurs."""
    rows = [row for row in rows if times(row)]
    summed = {key: sum(row[key] * times(row) for row in rows) for key in (
        "macs", "bytes", "bound", "cycles", "cycles_without_hiding")}
    count = sum(times(row) for row in rows)
    return {"network": "total", "name": name, "vta": "", "shape": f"{count} layers",
            "times": count, "offloaded": 0, **summed, "limit": "", "knobs": {}, "gemm": {},
            "instructions": sum(row["instructions"] * times(row) for row in rows),
            "compile_seconds": sum(row["compile_seconds"] for row in rows), **_ratios(summed)}


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every network that was measured whole, and for what VTA runs of ResNet-18."""
    found = []
    names = {(row["network"], row["name"]) for row in rows}
    for network in dict.fromkeys(row["network"] for row in rows):
        layers = {(network, layer.name) for layer in LAYERS if layer.network == network}
        if layers <= names:
            own = [row for row in rows if row["network"] == network]
            found.append(total(own, network, lambda row: int(row["times"])))
            if any(row["offloaded"] for row in own):
                found.append(total(own, f"{network}, as VTA", lambda row: int(row["offloaded"])))
    return found


def chosen(names: str) -> list[Layer]:
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
    config = load_config(options.config)
    if options.bus:
        config = replace(config, bus_bits=options.bus)
    memory = MemoryTiming(read_latency=options.latency)
    layers = chosen(options.layers)
    profile(layers[0].work.compile(config, hide_latency=True)[0])   # compiles the simulator
    rows = [measured(layer, config, memory, options.repeats) for layer in layers]
    seconds = sorted(row["compile_seconds"] for row in rows)
    return Outcome(
        benchmark="layers", title=f"Layers on {options.config}, {config.bus_bits}-bit bus, "
        f"{memory.read_latency} cycles of latency", rows=[*rows, *totals(rows)],
        columns=(Column("name", "layer"), Column("vta", "VTA's"), Column("shape", "shape"),
                 Column("times", "times"), Column("macs", "work", quantity("MAC")),
                 Column("bytes", "memory", quantity("B")), Column("bound", "bound", _whole),
                 Column("cycles", "cycles", _whole), Column("efficiency", "efficiency", _percent),
                 Column("cycles_without_hiding", "not hidden", _whole),
                 Column("efficiency_without_hiding", "efficiency", _percent),
                 Column("gain", "gain", factor),
                 Column("compile_seconds", "compiled in", quantity("s")),
                 Column("knobs", "knobs", _knobs)),
        facts={"config": options.config, "bus_bits": config.bus_bits,
               "read_latency": memory.read_latency, "macs_per_cycle": config.macs_per_cycle,
               "median_compile_seconds": seconds[len(seconds) // 2]})


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _knobs(knobs: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in knobs.items() if value)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", default="base", help="a preset or a file (default: base)")
    parser.add_argument("--bus", type=int, default=0, help="another width of the bus, in bits")
    parser.add_argument("--latency", type=int, default=MemoryTiming().read_latency,
                        help="cycles until a read's first beat (default: 32)")
    parser.add_argument("--layers", default="", help="networks or names, as C2,C5 (default: all)")
    parser.add_argument("--repeats", type=int, default=2,
                        help="compilations of a layer, of which the fastest counts (default: 2)")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
