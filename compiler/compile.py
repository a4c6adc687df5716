"""One way to compile any operator: its description says which it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base.checked_values import quote
from ..base.keywords import check_keywords
from ..isa.config import Config
from ..isa.config_files import load_config
from ..isa.memory_timing import MemoryTiming
from .errors import CompileError
from .operators.catalogue import operator_of
from .operators.choice import Cost, candidates
from .operators.description import Description
from .operators.form import Form
from .operators.kernel import Kernel, Options
from .operators.work import Bound, Work


def compile_op(spec: Description, config: Config | str, *, form: Form | None = None,
               knobs: object = None, hide_latency: bool = True, cost: Cost | None = None,
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
                      memory=memory or MemoryTiming(), alone=True)
    return operator_of(spec).compile_spec(spec, resolve_config(config), options)


@check_keywords
def schedules_of(spec: Description, config: Config | str) -> Iterator[tuple[Form, object]]:
    """Every schedule of an operator that fits a configuration, as a pair of a form and its knobs:
    the design space of a tuner. The most promising form comes first. `compile_op` takes both.

        for form, knobs in schedules_of(layer, "base"):
            kernel = compile_op(layer, "base", form=form, knobs=knobs)
    """
    operator = operator_of(spec)
    for form in operator.forms_of(spec, resolve_config(config), alone=True):
        for knobs in candidates(operator.template, form):
            yield form, knobs


@check_keywords
def work_of(spec: Description, config: Config | str, memory: MemoryTiming | None = None) -> Work:
    """The least work of an operator: MACs, tile products, bytes and ALU passes, in the form with
    the lowest bound."""
    config, timing = resolve_config(config), _timing(memory)
    forms: Iterable[Form] = operator_of(spec).forms_of(spec, config, alone=True)
    return min((form.work for form in forms), key=lambda work: work.bound(config, timing).cycles)


@check_keywords
def bound_of(spec: Description, config: Config | str, memory: MemoryTiming | None = None) -> Bound:
    """The least cycles of an operator on any schedule: `cycles`, and `macs`, `memory` and `alu`, of
    which it is the largest. `limit` names that one."""
    return work_of(spec, config, memory).bound(resolve_config(config), _timing(memory))


def resolve_config(config: Config | str) -> Config:
    """A configuration, given as such, by the name of a preset or as a file."""
    if isinstance(config, Config):
        return config
    if isinstance(config, str):
        return load_config(config)
    raise CompileError(f"config is {quote(config)}, but must be a Config, or a preset's or file's "
                       f"name")


def _timing(memory: MemoryTiming | None) -> MemoryTiming:
    if memory is not None and not isinstance(memory, MemoryTiming):
        raise CompileError(f"memory is {quote(memory)}, but must be a MemoryTiming")
    return memory or MemoryTiming()
