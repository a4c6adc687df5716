"""A schedule through all of the compiler: a list of passes, each verified, and the emission."""

from __future__ import annotations

from collections.abc import Iterable

from ...isa.config import Config
from ...isa.program import Program
from ..nest.nest import Nest
from ..nest.verify_nest import verify_nest
from ..schedule.lower import lower
from ..schedule.schedule import Schedule
from .emission.emit import emit
from .selection.form_transfers import form_transfers
from .selection.intrinsic import Intrinsic, collect_intrinsics
from .selection.tensorize import tensorize


def lower_to_intrinsics(plan: Schedule, config: Config,
                        intrinsics: Iterable[Intrinsic] = ()) -> Nest:
    """The nest of a schedule, all of it transfers and intrinsics. `intrinsics` are those besides
    the accelerator's own."""
    known = collect_intrinsics(config, intrinsics)
    nest = lower(plan)
    for change in (lambda nest: tensorize(nest, known), form_transfers):
        nest = change(nest)
        verify_nest(nest)
    return nest


def build(plan: Schedule, config: Config, intrinsics: Iterable[Intrinsic] = (), *,
          hide_latency: bool = True) -> tuple[Nest, Program]:
    """The nest and the program of a schedule."""
    own = tuple(intrinsics)
    nest = lower_to_intrinsics(plan, config, own)
    return nest, emit(nest, config, own, hide_latency=hide_latency)
