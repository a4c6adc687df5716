"""A schedule through all of the compiler: a list of passes, each verified, and the emission."""

from __future__ import annotations

from collections.abc import Iterable

from ..isa.config import Config
from ..isa.program import Program
from .dma import form_transfers
from .emit import emit
from .intrinsic import Intrinsic, accelerator_intrinsics
from .lower import lower
from .nest import Nest
from .nest_verify import verify_nest
from .schedule import Schedule
from .tensorize import tensorize


def accelerated(plan: Schedule, config: Config, intrinsics: Iterable[Intrinsic] = ()) -> Nest:
    """The nest of a schedule, all of it transfers and intrinsics. `intrinsics` are those beside
    the accelerator's own."""
    known = accelerator_intrinsics(config) | {each.name: each for each in intrinsics}
    nest = lower(plan)
    for change in (lambda nest: tensorize(nest, known), form_transfers):
        nest = change(nest)
        verify_nest(nest)
    return nest


def build(plan: Schedule, config: Config, intrinsics: Iterable[Intrinsic] = (), *,
          hide_latency: bool = True) -> tuple[Nest, Program]:
    """The nest and the program of a schedule."""
    nest = accelerated(plan, config, intrinsics)
    return nest, emit(nest, config, hide_latency=hide_latency)
