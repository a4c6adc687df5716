"""Microtron: a co-design kit for small tensor accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.operators.description import Description
    from .compiler.operators.form import Form
    from .isa.config import Config
    from .isa.program import Program
    from .isa.timing import MemoryTiming
    from .runtime.kernel import Kernel
    from .sim.many import Job, simulate_many
    from .sim.simulate import simulate

__version__ = "0.1.0"
__all__ = ["Job", "__version__", "compile_op", "simulate", "simulate_many", "simulated_cost"]


def compile_op(spec: Description, config: Config | str, *, form: Form | None = None,
               knobs: Any = None, hide_latency: bool = True,
               cost: Callable[[Program], int] | None = None,
               memory: MemoryTiming | None = None) -> Kernel:
    """An operator compiled for a configuration, or the preset of that name, and ready to run; see
    `compiler.compile.compile_op`. Unless another `cost` is given, its schedule is the fastest,
    among a few, on the cycle-exact simulator with this memory."""
    from .compiler.compile import compile_op as compiled
    from .runtime.kernel import Kernel

    found = compiled(spec, config, form=form, knobs=knobs, hide_latency=hide_latency,
                     cost=cost or simulated_cost(memory), memory=memory)
    return Kernel(**vars(found))


def simulated_cost(memory: MemoryTiming | None = None) -> Callable[[Program], int]:
    """What the compiler asks for the cycles of a program: the simulator, with this memory."""
    def cycles(program: Program) -> int:
        from .sim.simulate import simulate

        found = simulate(program, memory=memory).cycles
        assert found is not None, "the simulator counts cycles"
        return found
    return cycles


def __getattr__(name: str) -> Any:
    """What the package offers at its top is imported when it is asked for."""
    if name in ("Job", "simulate", "simulate_many"):
        from .sim import many as module
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
