"""One way to compile any operator: its description says which it is."""

from __future__ import annotations

from typing import Any

from ..isa.config import PRESETS, Config
from ..isa.memory_timing import MemoryTiming
from .errors import CompileError
from .operators.catalogue import operator_of
from .operators.choice import Cost
from .operators.form import Form
from .operators.kernel import Kernel, Options
from .operators.work import Bound, Work


def compile_op(spec: Any, config: Config | str, *, form: Form | None = None, knobs: Any = None,
               hide_latency: bool = True, cost: Cost | None = None,
               memory: MemoryTiming | None = None) -> Kernel:
    """The kernel of an operator on a configuration, which may be named: its `program`, its `nest`,
    and the `form` and `knobs` that were chosen.

        compile_op(Conv2d(height=56, width=56, channels_in=64, channels_out=64, pad=1), "base")

    With a `cost`, which says how many cycles a program takes, the schedule is the fastest of a few
    that were timed; otherwise estimates for this `memory` decide. `knobs`, and the `form` that they
    are for, may be given instead, such as those of another kernel. Without `hide_latency` engines
    take turns, to see what overlapping them is worth.
    """
    options = Options(form=form, knobs=knobs, hide_latency=hide_latency, cost=cost,
                      memory=memory or MemoryTiming())
    return operator_of(spec).compiled(spec, resolve_config(config), options)


def work_of(spec: Any, config: Config | str, memory: MemoryTiming | None = None) -> Work:
    """The work of an operator in the form of which the least cycles are possible."""
    config, timing = resolve_config(config), memory or MemoryTiming()
    return min((form.work for form in operator_of(spec).forms(spec, config)),
               key=lambda work: work.bound(config, timing).cycles)


def bound_of(spec: Any, config: Config | str, memory: MemoryTiming | None = None) -> Bound:
    """The least cycles that an operator takes on any schedule of any of its forms."""
    return work_of(spec, config, memory).bound(resolve_config(config), memory or MemoryTiming())


def resolve_config(config: Config | str) -> Config:
    """A configuration, or the preset of that name."""
    if isinstance(config, Config):
        return config
    if isinstance(config, str) and config in PRESETS:
        return PRESETS[config]
    raise CompileError(f"config is {config!r}, but must be a Config or one of "
                       f"{', '.join(PRESETS)}; isa.config_files.load_config reads files")
