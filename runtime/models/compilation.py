"""From a model file, or a graph, to a compiled model: read, simplify, compile, and note where it
came from."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from os import PathLike
from pathlib import Path
from typing import Any

from ...base.checked_values import integer, printable, quote, show_name
from ...base.classes.dataclass import dataclass
from ...base.errors import ImageError, MicrotronError
from ...compiler.errors import InternalError, PassWarning, attributed_to
from ...compiler.frontends.declare_states import declare_states
from ...compiler.frontends.given_inputs import number_array
from ...compiler.frontends.read_model import read_model
from ...compiler.graph.graph import Graph
from ...compiler.graph.set_batch import set_batch
from ...compiler.graph.types import GraphError
from ...compiler.network.compile_network import compile_network
from ...compiler.network.kernel_search import Schedules
from ...compiler.network.network import Network
from ...compiler.operators.choice import Cost
from ...compiler.passes.pipeline import run_passes
from ...isa.config import Config
from ...isa.config_files import load_config
from ...isa.memory_timing import MemoryTiming
from ...sim.arguments import check_type
from .compiled_model import CompiledModel, to_compiled_model
from .model_checks import check_model

PIECE = 1 << 20             # bytes of a file that are read at once

Observer = Callable[[str, Graph], None]             # a pass, and the graph after it
Progress = Callable[[str], None]                    # what is being done now


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How to compile a model, whatever it is."""

    memory: MemoryTiming = field(default_factory=MemoryTiming)  # it will run with
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)     # of inputs left open
    values: Mapping[str, Any] = field(default_factory=dict)     # constants in place of inputs
    states: Mapping[str, str] = field(default_factory=dict)     # outputs, and inputs they become
    batch: int = 1                          # images at once, of a model that takes one
    require_accelerator: bool = False       # refuse what the CPU would have to compute
    optimize: bool = True                   # run the passes; a graph may have been through them
    cost: Cost | None = None                # cycles of a program; without it, estimates decide
    schedules: Schedules = field(default_factory=dict)      # to begin with, by description

    def __post_init__(self) -> None:
        check_type("memory", self.memory, MemoryTiming, "a MemoryTiming")
        for name in ("require_accelerator", "optimize"):
            check_type(name, getattr(self, name), bool, "True or False")
        if self.cost is not None and not callable(self.cost):
            raise MicrotronError(f"cost is {quote(self.cost)}, but must be a function of a program")
        check_type("shapes", self.shapes, Mapping, "a mapping from names of inputs to shapes")
        object.__setattr__(self, "shapes", {name: _shape(name, each)
                                            for name, each in self.shapes.items()})
        check_type("values", self.values, Mapping, "a mapping from names of inputs to numbers")
        object.__setattr__(self, "values", {name: number_array(name, each)
                                            for name, each in self.values.items()})
        check_type("schedules", self.schedules, Mapping,
                   "a mapping from descriptions to forms and knobs")
        check_type("states", self.states, Mapping, "a mapping from names of outputs to inputs")
        for output, name in self.states.items():
            for each in (output, name):
                check_type(f"a name in states ({quote(each)})", each, str, "text")

    def text(self) -> str:
        """All options in one line, for the provenance of an image."""
        timing = ",".join(f"{name}={int(value)}" for name, value in asdict(self.memory).items())
        shapes = "".join(f" shape:{name}={','.join(map(str, shape))}"
                         for name, shape in sorted(self.shapes.items()))
        values = "".join(f" value:{name}={','.join(map(str, array.ravel().tolist()))}"
                         for name, array in sorted(self.values.items()))
        states = "".join(f" state:{output}={name}" for output, name in sorted(self.states.items()))
        return (f"memory:{timing} optimize={int(self.optimize)} "
                f"require_accelerator={int(self.require_accelerator)} "
                f"timed={int(self.cost is not None)}"
                f"{f' schedules={len(self.schedules)}' if self.schedules else ''}"
                f"{shapes}{values}{states}"
                f"{'' if self.batch == 1 else f' batch={self.batch}'}")


def _shape(name: str, shape: object) -> tuple[int, ...]:
    if isinstance(shape, tuple | list):
        extents = [integer(each) for each in shape]
        if all(each is not None and each > 0 for each in extents):
            return tuple(each or 0 for each in extents)
    raise MicrotronError(f"the shape of {show_name(name)} is {quote(shape)}, but must be whole "
                         "numbers from 1 on, as in (1, 3, 224, 224)")


def compile_model(model: str | PathLike[str] | Graph, config: Config | str,
                  options: ModelOptions, *, version: str, observe: Observer | None = None,
                  progress: Progress | None = None) -> CompiledModel:
    """A model for a configuration, which may be named. `observe` gets every graph on the way,
    `progress` what is being done."""
    network = compile_to_network(model, config, options, version=version, observe=observe,
                                 progress=progress)
    if progress is not None:
        progress("checking the compiled model")
    compiled = to_compiled_model(network, options.memory)
    try:
        check_model(compiled)
    except ImageError as error:
        raise InternalError("the compiled model", str(error)) from error
    return compiled


def compile_to_network(model: str | PathLike[str] | Graph, config: Config | str,
                       options: ModelOptions, *, version: str, observe: Observer | None = None,
                       progress: Progress | None = None) -> Network:
    """The same before it is reduced to what runs: with graph, decisions and reports."""
    say, see = progress or _ignore_progress, observe or _ignore_graph
    target = load_config(config) if isinstance(config, str) else config
    check_type("config", target, Config, "a Config, or a preset's or file's name")
    provenance = {"microtron": version, "config": target.digest,
                  "options": printable(options.text())}
    if isinstance(model, Graph):
        if options.shapes or options.values:
            raise MicrotronError("shapes and values are for models that are read from a file: a "
                                 "graph has its own")
        graph = model
        provenance["model"] = printable(graph.name) or "a graph"
    elif isinstance(model, str | PathLike):
        path = Path(model)
        say(f"reading {path.name}")
        graph = read_model(path, options.shapes, options.values)
        provenance |= {"model": printable(path.name), "sha256": file_digest(path)}
    else:
        raise MicrotronError(f"model is {quote(model)}, but must be a Graph or the path of a "
                             f".tflite or .onnx file")
    if options.states:
        graph = declare_states(graph, options.states)
    try:
        graph = set_batch(graph, options.batch)
    except GraphError as error:
        raise GraphError(f"{show_name(provenance['model'])}: {error}") from None
    see("graph", graph)
    if options.optimize:
        say("simplifying")
        failed: list[str] = []

        def note_skipped(name: str, error: InternalError) -> None:
            failed.append(name)
            warnings.warn(f"{error}; compiling without this pass", PassWarning, stacklevel=2)

        graph = run_passes(graph, see, note_skipped)
        if failed:
            provenance["left_out"] = ", ".join(failed)
    with attributed_to(show_name(provenance["model"])):
        return compile_network(
            graph, target, cost=options.cost, memory=options.memory,
            require_accelerator=options.require_accelerator, provenance=provenance,
            schedules=options.schedules,
            progress=say)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _ignore_progress(doing: str) -> None:
    """Ignore progress."""


def _ignore_graph(name: str, graph: Graph) -> None:
    """Ignore a graph."""
