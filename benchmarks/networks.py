"""Whole networks as compiled: cycles against the bound and against the same layers compiled alone.

The bound of a network is the sum of its layers' bounds, each alone; a stream may be better where
one layer's loads hide behind another's products. `alone`, a factor in the table, is the sum of the
cycles of the same layers, each compiled as a program of its own, so that the seam's gain or loss is
a number. Each network is compiled in processes of its own; seconds are the processor's. `compile`
is all that the command `microtron compile` takes when it has compiled the network before, `anew`
when it keeps and finds nothing (MICROTRON_ANEW=1), except the simulator's own code. Python's
bytecode is there before, as in a package that is installed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from common import Column, Outcome, Row, factor, main, quantity

from microtron import __version__, compile_op, simulated_cost
from microtron.base.arrays import Array
from microtron.base.checked_values import list_names
from microtron.base.errors import MicrotronError
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.types import TensorType
from microtron.compiler.network.network import AcceleratorStep, Network
from microtron.compiler.operators.description import Description
from microtron.compiler.operators.layout import Layout
from microtron.isa.config import base
from microtron.isa.config_files import save_config
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.models.compilation import ModelOptions, compile_to_network
from microtron.runtime.models.compiled_host import CompiledBackend
from microtron.runtime.models.compiled_model import to_compiled_model
from microtron.runtime.models.host import Nodes, Pack, Unpack
from microtron.runtime.models.model import Model
from microtron.runtime.reports.layers import inspect_model
from microtron.runtime.times.measure import measure_times
from microtron.sim.simulate import simulate

Given = TypeVar("Given")
Found = TypeVar("Found")
ROOT = Path(__file__).resolve().parents[1]
USUAL = ("resnet18", "mobilenet_v2")            # of those that are generated; others if named
QUANTIZED = ("int8", "quant", "qdq", "qlinear", "kws_ref_model.tflite")
KIB = 1024
SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")       # batch, block_in, block_out


@dataclass(frozen=True)
class Source:
    """Where a network comes from: a file, or a function that writes it."""

    name: str
    path: Path | None = None
    write: Callable[[Path], None] | None = None

    def file(self, folder: Path) -> Path:
        """Its file, which is written if need be."""
        if self.path is not None:
            return self.path
        assert self.write is not None, "a network is a file, or somebody writes it"
        path = folder / f"{self.name}.onnx"
        self.write(path)
        return path


def sources() -> list[Source]:
    """All networks that there are: ours, real ones if they are here, and generated ones."""
    from models.catalogue import MODELS

    found = [Source("digits", ROOT / "examples" / "digits" / "digits.onnx")]
    found += [Source(path.name, path) for path in real_models()]
    return found + [Source(name, write=partial(_write_model, name)) for name in MODELS]


def _write_model(name: str, path: Path) -> None:
    from models.catalogue import MODELS
    MODELS[name](path)


def real_models() -> list[Path]:
    """Quantized models in $MICROTRON_MODELS, or in shared/models beside the repository or above."""
    named = os.environ.get("MICROTRON_MODELS")
    places = [Path(named)] if named else [each / "shared" / "models" for each in ROOT.parents]
    folder = next((each for each in places if (each / "MANIFEST.md").exists()), None)
    if folder is None:
        return []
    return sorted(path for path in (folder / "models").iterdir()
                  if any(word in path.name for word in QUANTIZED))


def select_networks(names: list[str]) -> list[Source]:
    """Networks by name, or the usual ones."""
    known = {each.name: each for each in sources()}
    if not names:
        return [each for each in known.values() if each.path is not None or each.name in USUAL]
    for name in names:
        if name not in known:
            raise MicrotronError(f"there is no network {name!r}; there are "
                                 f"{list_names(list(known))}")
    return [known[name] for name in names]


def config_file(name: str, folder: Path) -> str:
    """What stands for a configuration: a preset, a file, or one that is written for a shape such as
    1x32x16, which is `base` with other blocks."""
    shape = SHAPE.fullmatch(name)
    if shape is None:
        return name
    batch, block_in, block_out = map(int, shape.groups())
    path = folder / f"{name}.toml"
    save_config(replace(base, batch=batch, block_in=block_in, block_out=block_out), path)
    return str(path)


def measure_network(source: Source, name: str) -> Row:
    """A row: what a network takes. In a process of its own, so that its memory is its own."""
    with tempfile.TemporaryDirectory() as folder:
        path, config = source.file(Path(folder)), config_file(name, Path(folder))
        _, anew, _, again = (_command_seconds(path, config, each, Path(folder) / "bytecode")
                             for each in ("1", "1", "0", "0"))
        before = _peak()
        options = ModelOptions(cost=simulated_cost())
        network = compile_to_network(path, config, options, version=__version__)
        peak = _peak()
    model = Model(**vars(to_compiled_model(network, options.memory)))
    totals = inspect_model(model, time_host=partial(measure_times, threads=1)).totals()
    alone = sum_layer_cycles(network, options.memory)
    run_seconds, cpu = _run_seconds(model)
    return {"network": source.name, "config": name, **totals, "alone": alone,
            "seam": alone / totals["cycles"] if totals["cycles"] else None,
            "cpu_share": totals["cpu_macs"] / max(totals["macs"], 1),
            "compile_seconds": again, "compile_anew_seconds": anew, "compile_bytes": peak,
            "start_bytes": before,
            "run_seconds": run_seconds, "cpu_seconds": sum(cpu.values()),
            "cpu_node_seconds": cpu["nodes"], "cpu_move_seconds": cpu["moves"]}


def _command_seconds(path: Path, config: str, anew: str, bytecode: Path) -> float:
    """Seconds of the processor for `microtron compile` in a process of its own, which keeps
    Python's bytecode for the next."""
    environment = {**os.environ, "MICROTRON_ANEW": anew, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "microtron", "compile", str(path), "--config", config,
                        "-o", f"{folder}/model.mt"], check=True, stdout=subprocess.DEVNULL,
                       env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB


def sum_layer_cycles(network: Network, memory: MemoryTiming) -> int:
    """The sum of the cycles of a network's layers, each in a program of its own."""
    known: dict[Description, int] = {}
    total = 0
    for step in network.steps:
        for layer in step.layers if isinstance(step, AcceleratorStep) else ():
            if layer.spec not in known:
                program = compile_op(layer.spec, network.config, memory=memory).program
                known[layer.spec] = simulate(program, memory=memory).cycles or 0
            total += known[layer.spec]
    return total


def _run_seconds(model: Model) -> tuple[float, dict[str, float]]:
    """Seconds of the processor for an exact run with data, and those that the CPU's half of it
    takes, compiled, with one thread. The first run, which may compile, does not count, nor does
    other work on the machine."""
    rng = np.random.default_rng(0)
    inputs = {name: _random(rng, type_) for name, type_ in model.inputs.items()}
    backend = TimedBackend()
    with model.session("cycle", backend=backend) as session:
        session.run(inputs)
        backend.seconds = dict.fromkeys(backend.seconds, 0.0)
        start = time.process_time()
        session.run(inputs)
        return time.process_time() - start, backend.seconds


class TimedBackend:
    """Compiled kernels, and the seconds that they take: for nodes, and to move tensors in and out
    of tiles."""

    name = "timed"

    def __init__(self) -> None:
        self.backend = CompiledBackend(threads=1)
        self.seconds = {"nodes": 0.0, "moves": 0.0}

    def nodes(self, part: Graph) -> Nodes:
        return self._time("nodes", self.backend.nodes(part))

    def pack(self, layout: Layout, type_: TensorType) -> Pack:
        return self._time("moves", self.backend.pack(layout, type_))

    def unpack(self, layout: Layout, type_: TensorType) -> Unpack:
        return self._time("moves", self.backend.unpack(layout, type_))

    def _time(self, kind: str, work: Callable[[Given], Found]) -> Callable[[Given], Found]:
        def run(given: Given) -> Found:
            start = time.process_time()
            found = work(given)
            self.seconds[kind] += time.process_time() - start
            return found
        return run


def _random(rng: np.random.Generator, type_: TensorType) -> Array:
    if type_.is_float:
        return rng.normal(0, 1, type_.shape).astype(type_.dtype)
    if type_.is_quantized:
        return rng.integers(*type_.range, type_.shape, endpoint=True).astype(type_.dtype)
    return rng.integers(0, 2, type_.shape).astype(type_.dtype)      # words, or truth values


def measure(options: argparse.Namespace) -> Outcome:
    jobs = [(source, config) for source in select_networks(options.network)
            for config in options.config]
    return Outcome(
        benchmark="networks", title="Networks as compiled", rows=list(_rows(jobs)),
        facts={"memory": "the reference system's"}, columns=(
            Column("network", "network", lambda name: str(name)[:24]), Column("config", "config"),
            Column("programs", "programs"), Column("cycles", "cycles", quantity("")),
            Column("accelerator_efficiency", "of bound", _percent),
            Column("accelerator_utilization", "use", _percent), Column("seam", "alone", _gain),
            Column("cpu_nodes", "cpu"), Column("bytes", "DRAM", quantity("B")),
            Column("compile_seconds", "compile", quantity("s")),
            Column("compile_anew_seconds", "anew", quantity("s")),
            Column("run_seconds", "run", quantity("s")),
            Column("cpu_seconds", "of it CPU", quantity("s"))))


def _rows(jobs: Iterable[tuple[Source, str]]) -> Iterable[Row]:
    context = multiprocessing.get_context("spawn")
    for source, config in jobs:
        with ProcessPoolExecutor(1, mp_context=context) as process:
            yield process.submit(measure_network, source, config).result()


def _percent(part: float | None) -> str:
    return "" if part is None else f"{part:.1%}"


def _gain(part: float | None) -> str:
    return "" if part is None else factor(part)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--network", action="append", default=[], metavar="NAME",
                        help="a network; may be repeated; the usual ones unless given")
    parser.add_argument("--config", action="append", metavar="NAME", default=None,
                        help="a preset, a .toml file, or base with other blocks, such as 1x32x16; "
                             "may be repeated; base unless given")


def _measure(options: argparse.Namespace) -> Outcome:
    options.config = options.config or ["base"]
    return measure(options)


if __name__ == "__main__":
    main(_measure, "Cycles, memory and compile time of whole networks.", _arguments)
