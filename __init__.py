"""Microtron: a co-design kit for small tensor accelerators."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.graph.graph import Graph
    from .compiler.operators.description import Description
    from .compiler.operators.form import Form
    from .isa.config import Config
    from .isa.memory_timing import MemoryTiming
    from .isa.program import Program
    from .runtime.models.kernel import Kernel
    from .runtime.models.model import Model
    from .sim.parallel import Job, simulate_many
    from .sim.simulate import simulate

__version__ = "0.1.0"
__all__ = ["Job", "Model", "__version__", "compile", "compile_op", "load", "simulate",
           "simulate_many", "simulated_cost"]


def compile(model: str | PathLike[str] | Graph, config: Config | str = "base",
            **options: Any) -> Model:
    """A model compiled for a configuration, and ready to run.

    model       the path of a .tflite or .onnx file, or a Graph
    config      a Config, or the name of a preset or of a file

    Options:

    memory      how memory will behave, a MemoryTiming; the reference system's unless given
    shapes      of inputs that a model file leaves open: {"x": (1, 3, 224, 224)}
    values      constants that take the place of inputs: {"rate": 16000}
    require_accelerator     refuse a model of which the CPU would have to compute something
    optimize    False leaves out the passes over the graph
    cost        cycles of a program; the cycle-exact simulator with this memory unless given
    observe     a function that gets the name of each pass and the graph after it
    progress    a function that gets what is being done
    """
    from dataclasses import fields

    from .base.errors import MicrotronError
    from .runtime.models.compilation import ModelOptions, compile_model
    from .runtime.models.model import Model

    watching = {name: options.pop(name, None) for name in ("observe", "progress")}
    known = [each.name for each in fields(ModelOptions)]
    for name in options:
        if name not in known:
            raise MicrotronError(f"compile has no option {name!r}; it has "
                                 f"{', '.join([*known, *watching])}")
    options = {name: value for name, value in options.items()
               if value is not None or name not in ("memory", "shapes", "values", "cost")}
    options.setdefault("cost", simulated_cost(options.get("memory")))
    return Model(**vars(compile_model(model, config, ModelOptions(**options),
                                      version=__version__, **watching)))


def load(path: str | PathLike[str]) -> Model:
    """The model in an image that `Model.save` or `microtron compile` wrote."""
    from .runtime.models.model import load_model
    return load_model(path)


def compile_op(spec: Description, config: Config | str, *, form: Form | None = None,
               knobs: Any = None, hide_latency: bool = True,
               cost: Callable[[Program], int] | None = None,
               memory: MemoryTiming | None = None) -> Kernel:
    """An operator compiled for a configuration, or the preset of that name, and ready to run; see
    `compiler.compile.compile_op`. Unless another `cost` is given, its schedule is the fastest,
    among a few, on the cycle-exact simulator with this memory."""
    from .compiler.compile import compile_op as compiled
    from .runtime.models.kernel import Kernel

    found = compiled(spec, config, form=form, knobs=knobs, hide_latency=hide_latency,
                     cost=cost or simulated_cost(memory), memory=memory)
    return Kernel(**vars(found))


def simulated_cost(memory: MemoryTiming | None = None) -> Callable[[Program], int]:
    """What the compiler asks for the cycles of a program: the simulator, with this memory, which
    knows those of programs that it has seen before."""
    from .isa.memory_timing import MemoryTiming
    from .sim.simulated_cost import SimulatedCost
    return SimulatedCost(memory or MemoryTiming())


def __getattr__(name: str) -> Any:
    """What the package offers at its top is imported when it is asked for."""
    if name in ("Job", "simulate", "simulate_many"):
        from .sim import parallel as module
        return getattr(module, name)
    if name == "Model":
        from .runtime.models.model import Model
        return Model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
