"""Speed of the cycle-exact simulator against Verilator, on the same programs; and its memory.

The programs are a convolution, scheduled by hand and by the compiler, and whole networks as the
compiler makes them. Every program runs from its first to its last cycle on both, and everything is
compared: cycles, counters, starts and ends of instructions, and memory. Networks whose files are
not there are left out, and named.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Column, Outcome, Row, main, quantity
from convolution import convolution
from networks import sources

from microtron import __version__, compile_op, simulated_cost
from microtron.compiler.network.network import AcceleratorStep
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.isa.config import Config
from microtron.isa.config_files import load_config
from microtron.isa.instructions import Sync, SyncAction
from microtron.isa.program import Program
from microtron.isa.stream import encode
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.device import Address, Device
from microtron.runtime.devices.rtl import RtlDevice
from microtron.runtime.models.compilation import ModelOptions, compile_to_network
from microtron.sim.report import Report

RESNET = {"base": (56, 56, 64, 64)}         # a 3×3 convolution of ResNet-18; elsewhere a small one
SMALL = (8, 8, 2, 2)                        # rows, columns, and blocks of channels in and out
REPEATS, NETWORK_REPEATS, SLOW_REPEATS = 50, 7, 2      # the best counts
NETWORKS = ("resnet18", "mobilenet_v2", "vww_96_int8.tflite", "pretrainedResnet_quant.tflite",
            "kws_ref_model.tflite", "ad01_int8.tflite")
LONG = 10_000_000                           # cycles
MEBIBYTE = 1 << 20


def layer(name: str, config: Config) -> Program:
    """The layer as scheduled by hand."""
    return convolution(config, *_shape(name, config))[0]


def compile_layer(name: str, config: Config) -> Program:
    """The same as the compiler schedules it; its input and weights are zeros."""
    height, width, channels_in, channels_out = _shape(name, config)
    program: Program = compile_op(Conv2d(
        height=height, width=width, channels_in=channels_in, channels_out=channels_out,
        pad=(1, 1, 1, 1)), config).program
    return program


def _shape(name: str, config: Config) -> tuple[int, int, int, int]:
    if name in RESNET:
        return RESNET[name]
    height, width, blocks_in, blocks_out = SMALL
    return height, width, blocks_in * config.block_in, blocks_out * config.block_out


def compile_network(name: str, config: str) -> list[Program] | None:
    """The streams of a network, or None if its file is not here."""
    source = next((each for each in sources() if each.name == name), None)
    if source is None:
        print(f"{name} is left out: there is no shared/models beside the repository or above, and "
              f"$MICROTRON_MODELS names none", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        network = compile_to_network(source.file(Path(folder)), config,
                                     ModelOptions(cost=simulated_cost()), version=__version__)
    return [step.program for step in network.steps if isinstance(step, AcceleratorStep)]


def time_run(device: Device, program: Program, repeats: int) -> tuple[float, Report, bytes]:
    """The least processor time of a run, so that other load on the host counts for nobody; what
    it reported, and what the first one left in memory."""
    device.load(program)
    rng = np.random.default_rng(0)
    for each in program.segments:
        if each.data is None:
            device.write(Address(each.name), rng.integers(0, 256, each.size, np.uint8))
    best, memory = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        report = device.run()
        best = min(best, time.process_time() - start)
        memory = memory or memory_of(device, program)
    assert memory is not None, "repeated once or more"
    return best, report, memory


def memory_of(device: Device, program: Program) -> bytes:
    return b"".join(device.read(Address(each.name), each.size).tobytes()
                    for each in program.segments)


def measure(options: argparse.Namespace) -> Outcome:
    if options.alone:
        print(json.dumps(ALONE[options.alone](options.config)))
        sys.exit()
    config = load_config(options.config)
    rows = [*compare("by hand", [layer(options.config, config)], REPEATS, SLOW_REPEATS),
            *compare("compiled", [compile_layer(options.config, config)], REPEATS, SLOW_REPEATS)]
    for name in options.network or (NETWORKS if options.config in RESNET else ()):
        if programs := compile_network(name, options.config):
            rows += compare(name, programs, NETWORK_REPEATS, 1)
    return Outcome(
        benchmark="simulator", title="Programs on the cycle-exact simulator", rows=rows,
        columns=(Column("program", "program"), Column("what", ""), Column("cycles", "cycles"),
                 Column("seconds", "processor time", quantity("s")),
                 Column("cycles_per_second", "speed", quantity("cycles/s")),
                 Column("relative", "against Verilator", "{:.0f}×".format)),
        facts={"config": options.config, "equal": True, **starts(options.config),
               **longest(options.config), "load": round(os.getloadavg()[0], 2)})


def compare(name: str, programs: list[Program], repeats: int,
            slow_repeats: int) -> list[Row]:
    """Rows of the hardware and of its twin, which must do exactly the same."""
    config = programs[0].config
    expected = [time_run(RtlDevice(config), each, slow_repeats) for each in programs]
    verilator, cycles = _totals(expected)
    rows = [_row("Verilator", verilator, verilator, cycles)]
    for data, what in ((True, "cycle, with data"), (False, "cycle, timing only")):
        found = [time_run(CycleDevice(config, data=data), each, repeats) for each in programs]
        for (_, report, left), (_, right, memory) in zip(found, expected, strict=True):
            if not _agree(report, right):
                sys.exit(f"{name}: {what} takes {report.cycles} cycles and Verilator "
                         f"{right.cycles}, or counters or instructions differ")
            if data and left != memory:
                sys.exit(f"{name}: {what} leaves another memory than Verilator")
        rows.append(_row(what, _totals(found)[0], verilator, cycles))
    return [{"program": name, **row} for row in rows]


def _totals(runs: list[tuple[float, Report, bytes]]) -> tuple[float, int]:
    """Seconds and cycles of several programs."""
    return sum(seconds for seconds, _, _ in runs), sum(each.cycles or 0 for _, each, _ in runs)


def _row(what: str, seconds: float, verilator: float, cycles: int) -> Row:
    return {"what": what, "cycles": cycles, "seconds": seconds,
            "cycles_per_second": cycles / seconds, "relative": verilator / seconds}


def _agree(found: Report, expected: Report) -> bool:
    """In every counter, and in when every instruction starts and ends."""
    assert found.timeline is not None
    assert expected.timeline is not None
    return (found.counters == expected.counters
            and np.array_equal(found.timeline.start, expected.timeline.start)
            and np.array_equal(found.timeline.end, expected.timeline.end))


def starts(name: str) -> dict[str, float]:
    """Processor seconds to the end of the first simulation of a process: when it compiles, and
    when another one has."""
    with tempfile.TemporaryDirectory() as cache:
        first, again = (_run_in_process("first", name, MICROTRON_CACHE=cache) for _ in range(2))
    return {"first_use_seconds": first["seconds"], "cached_start_seconds": again["seconds"]}


def longest(name: str) -> dict[str, float]:
    """The most memory that a process needs for a long program."""
    return {f"long_{key}": value for key, value in _run_in_process("long", name).items()}


def _run_in_process(part: str, name: str, **environment: str) -> dict[str, float]:
    """What this script measures of a part in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--alone", part, "--config", name],
                          env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure_first_run(name: str) -> dict[str, float]:
    program = layer(name, load_config(name))
    start = time.process_time()
    from microtron import simulate
    simulate(program)
    return {"seconds": round(time.process_time() - start, 2)}


def measure_long_run(name: str) -> dict[str, float]:
    """The layer again and again, after a barrier, until it takes long enough; with data."""
    program = layer(name, load_config(name))
    device = CycleDevice(program.config)
    device.load(program)
    times = -(-LONG // (device.run().cycles or 1)) + 1      # later ones may be a little faster
    body = program.code[:-1]
    barrier, end = encode([Sync(action=SyncAction.BARRIER)]), encode([Sync()])
    device.load(replace(program, code=np.concatenate([*[body, barrier] * times, end]), labels={}))
    cycles = device.run().cycles or 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEBIBYTE
    return {"cycles": cycles, "peak_mebibytes": round(peak)}


ALONE: dict[str, Callable[[str], dict[str, float]]] = {"first": measure_first_run,
                                                       "long": measure_long_run}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", default="base", help="a preset or a file (default: base)")
    parser.add_argument("--network", action="append", metavar="NAME",
                        help="a network of benchmarks/networks.py; may be repeated; on base, "
                             "ResNet-18, MobileNetV2 and MLPerf Tiny's unless given")
    parser.add_argument("--quick", action="store_const", const="tiny", dest="config",
                        help="a small convolution on tiny")
    parser.add_argument("--alone", choices=ALONE, help=argparse.SUPPRESS)


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
