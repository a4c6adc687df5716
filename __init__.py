"""Microtron: a co-design kit for small tensor accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .isa.config import Config
    from .isa.program import Program
    from .isa.timing import MemoryTiming
    from .sim.simulate import Job, simulate, simulate_many

__version__ = "0.1.0"
__all__ = ["Job", "__version__", "compile_op", "simulate", "simulate_many", "simulated_cost"]


def compile_op(spec: Any, config: Config, *, memory: MemoryTiming | None = None,
               **options: Any) -> Any:
    """The kernel of an operator on a configuration, see `compiler.operation.compile_op`: with the
    schedule that is fastest, among a few, on the cycle-exact simulator with this memory."""
    from .compiler.compile import compile_op as compiled
    from .isa.timing import MemoryTiming

    memory = memory or MemoryTiming()
    return compiled(spec, config, memory=memory,
                    **{"cost": simulated_cost(memory), **options})


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
        from .sim import simulate as module
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
