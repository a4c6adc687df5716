"""Microtron: a co-design kit for small tensor accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.operation import compile_op
    from .sim.simulate import Job, simulate, simulate_many

__version__ = "0.1.0"
__all__ = ["Job", "__version__", "compile_op", "simulate", "simulate_many"]


def __getattr__(name: str) -> Any:
    """What the package offers at its top is imported when it is asked for."""
    if name in ("Job", "simulate", "simulate_many"):
        from .sim import simulate as module
        return getattr(module, name)
    if name == "compile_op":
        from .compiler.operation import compile_op
        return compile_op
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
