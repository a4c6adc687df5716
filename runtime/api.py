"""What the package offers at its top, where that is more than a function of some module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Literal

from ..base.argument_checks import check_callable, check_path
from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..base.keywords import check_keywords
from ..isa.config import Config
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..sim.arguments import check_memory, check_type

if TYPE_CHECKING:
    from ..compiler.graph.graph import Graph
    from ..compiler.operators.description import Description
    from ..compiler.operators.form import Form
    from .models.kernel import Kernel
    from .models.model import Model
    from .reports.layers import Inspection

CostFunction = Callable[[Program], int]
ESTIMATE: Literal["estimate"] = "estimate"


@check_keywords
def compile(model: str | PathLike[str] | Graph, config: Config | str = "base", *,
            memory: MemoryTiming | None = None,
            shapes: Mapping[str, tuple[int, ...]] | None = None,
            values: Mapping[str, object] | None = None,
            states: Mapping[str, str] | None = None, batch: int = 1,
            require_accelerator: bool = False, optimize: bool = True,
            cost: CostFunction | Literal["estimate"] | None = None,
            schedules: Mapping[Description, tuple[int, object]] | None = None,
            observe: Callable[[str, Graph], None] | None = None,
            progress: Callable[[str], None] | None = None) -> Model:
    """Compile a network for a configuration.

    model       path of a .tflite or .onnx file, or a Graph
    config      a Config, the name of a preset, or the path of a .toml file
    memory      timing of the DRAM; the reference system unless given
    shapes      shapes of dynamic inputs: {"x": (1, 3, 224, 224)}
    values      inputs to fix as constants: {"rate": 16000}
    states      outputs that are inputs of the next inference: {"state_out": "state_in"}
    batch       images at once, for a model that takes one: its inputs have 1 along their first axis
    require_accelerator     fail if any operation falls back to the CPU
    optimize    False skips the graph passes
    cost        what schedules are ranked by: a function from a Program to cycles, or "estimate"
                for the analytic model alone; the cycle-exact simulator unless given
    schedules   form and knobs to begin with, by layer, as `microtron tune` finds them
    observe     called with the name of each pass and the graph after it
    progress    called with a line on what is being done

    Raises MicrotronError, in one line, for a model that cannot be read or compiled.
    """
    from .. import __version__
    from .models.compilation import ModelOptions, compile_model
    from .models.model import Model

    check_memory(memory)
    for name, function in (("observe", observe), ("progress", progress)):
        check_callable(name, function)
    options = ModelOptions(memory=memory or MemoryTiming(), shapes={} if shapes is None else shapes,
                           values={} if values is None else values,
                           states={} if states is None else states, batch=batch,
                           optimize=optimize,
                           require_accelerator=require_accelerator, cost=_cost(cost, memory),
                           schedules={} if schedules is None else schedules)
    return Model(**vars(compile_model(model, config, options, version=__version__,
                                      observe=observe, progress=progress)))


@check_keywords
def load(path: str | PathLike[str]) -> Model:
    """Load a model image that `Model.save` or `microtron compile` wrote.

    Programs and constants are mapped, not copied. Files from strangers are safe to load.
    """
    from .models.model import load_model
    return load_model(check_path("path", path))


@check_keywords
def inspect(model: Model, memory: MemoryTiming | None = None, *, mhz: float | None = None,
            limit: int | None = None, progress: Callable[[str], None] | None = None) -> Inspection:
    """Cost of a compiled network, layer by layer: where each runs and why, its exact cycles, its
    bound, its bytes.

    memory      timing of the DRAM; what the model was compiled for unless given
    mhz         clock of the accelerator, which turns cycles into seconds; 100 unless given
    limit       cycles of one program after which to give up
    progress    called with a line on what is being done

    Programs are simulated without data. What runs on the CPU is timed on this machine.
    """
    from .clock import Clock
    from .models.compiled_model import CompiledModel
    from .reports.layers import inspect_model

    check_type("model", model, CompiledModel, "a Model, as microtron.compile and load return it")
    check_memory(memory)
    check_callable("progress", progress)
    return inspect_model(model, memory, limit=limit, progress=progress,
                         clock=None if mhz is None else Clock(mhz, "given"))


@check_keywords
def compile_op(spec: Description, config: Config | str = "base", *,
               memory: MemoryTiming | None = None, form: Form | None = None, knobs: object = None,
               hide_latency: bool = True,
               cost: CostFunction | Literal["estimate"] | None = None) -> Kernel:
    """Compile one operator for a configuration.

        compile_op(Conv2d(height=56, width=56, channels_in=64, channels_out=64, pad=1), "base")

    spec        a description: Conv2d, Dense, Pool, …
    config      a Config, the name of a preset, or the path of a .toml file
    memory      timing of the DRAM; the reference system unless given
    form, knobs a schedule of `schedules_of`, instead of the best that is found
    hide_latency    False makes the engines take turns
    cost        what schedules are ranked by, as in `compile`

    The kernel has the `program`, the loop `nest`, and the `form` and `knobs` that were chosen.
    """
    from ..compiler.compile import compile_op as compile_kernel
    from .models.kernel import Kernel

    check_memory(memory)
    found = compile_kernel(spec, config, form=form, knobs=knobs, hide_latency=hide_latency,
                           cost=_cost(cost, memory), memory=memory)
    return Kernel(**vars(found))


@check_keywords
def simulated_cost(memory: MemoryTiming | None = None) -> CostFunction:
    """The cost function that `compile` uses by default: cycles of a program on the cycle-exact
    simulator with this memory. Results are cached on disk."""
    from ..sim.simulated_cost import SimulatedCost

    check_memory(memory)
    return SimulatedCost(memory or MemoryTiming())


def _cost(given: CostFunction | str | None, memory: MemoryTiming | None) -> CostFunction | None:
    """A cost function; None where the analytic model is to decide."""
    if given is None:
        return simulated_cost(memory)
    if given == ESTIMATE:
        return None
    if isinstance(given, str) or not callable(given):
        raise MicrotronError(f"cost is {quote(given)}, but must be a function from a Program to "
                             f"cycles, or {ESTIMATE!r}")
    return given
