"""A schedule through all of the compiler: passes, a proof that the nest is sound, emission."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ...isa.program import Program
from ..errors import CompileError
from ..expression.expression import Axis, Constant, Expression
from ..nest.nest import DMA, Marked, Nest, Statement
from ..nest.perfect_loops import MismatchError, PerfectLoops
from ..nest.verify_nest import verify_nest
from ..schedule.located import Located
from ..schedule.lower import lower
from ..schedule.lowering_state import Locate
from ..schedule.schedule import Schedule
from .emission.emit import emit
from .selection.form_transfers import form_marked, form_perfect, form_transfers
from .selection.intrinsic import Intrinsic, Intrinsics, collect_intrinsics, find_intrinsic
from .selection.stage_tiles import invoke_stage, start_stage
from .selection.tensorize import match, tensorize, tensorize_marked


@dataclass(frozen=True)
class Selection:
    """Transfers and intrinsics in the place of marked loops."""

    intrinsics: Intrinsics

    def convert(self, marked: Marked) -> Statement:
        """Of any loops; refuses those that are none."""
        return (form_marked(marked) if marked.intrinsic == DMA
                else tensorize_marked(marked, self.intrinsics))

    def convert_perfect(self, intrinsic: str, loops: PerfectLoops, *,
                        starts: bool) -> Statement | None:
        """Of loops around one assignment; None for those that are none."""
        try:
            return form_perfect(loops) if intrinsic == DMA else match(
                loops, find_intrinsic(intrinsic, self.intrinsics), starts=starts)
        except MismatchError:
            return None

    def convert_stage(self, intrinsic: str, body: Expression, loops: Sequence[Axis],
                      target: Located, locate: Locate) -> Statement | None:
        """Of loops around a body, if they are plain."""
        return invoke_stage(find_intrinsic(intrinsic, self.intrinsics), body, loops, target, locate)

    def convert_start(self, intrinsic: str, value: Constant, loops: Sequence[Axis],
                      target: Located) -> Statement | None:
        """Of loops that give sums what they start from, if they are plain."""
        return start_stage(find_intrinsic(intrinsic, self.intrinsics), int(value.value), loops,
                           target)


def lower_to_intrinsics(plan: Schedule, config: Config,
                        intrinsics: Iterable[Intrinsic] = ()) -> Nest:
    """The nest of a schedule, all of it transfers and intrinsics. `intrinsics` are those besides
    the accelerator's own."""
    known = collect_intrinsics(config, intrinsics)
    try:
        nest = form_transfers(lower(plan, Selection(known)))
        verify_nest(nest)
    except CompileError:
        nest = lower_step_by_step(plan, known)     # says what is wrong first, by what comes first
    return nest


def lower_step_by_step(plan: Schedule, intrinsics: Intrinsics) -> Nest:
    """The same, one pass after the other."""
    tensorized = tensorize(lower(plan), intrinsics)
    nest = form_transfers(tensorized)
    try:
        verify_nest(nest)
    except CompileError:
        verify_nest(tensorized)             # if that is where it comes from
        raise
    return nest


def build(plan: Schedule, config: Config, intrinsics: Iterable[Intrinsic] = (), *,
          hide_latency: bool = True) -> tuple[Nest, Program]:
    """The nest and the program of a schedule."""
    own = tuple(intrinsics)
    nest = lower_to_intrinsics(plan, config, own)
    return nest, emit(nest, config, own, hide_latency=hide_latency)
