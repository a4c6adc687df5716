"""What marked loops of a stage become: loops with a mark, or what a converter makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from ..expression.expression import Axis, Element, Expression, Reduction, both
from ..expression.intervals import conjuncts
from ..nest.nest import DMA, Assign, Loop, LoopKind, Marked, Statement, When
from ..nest.perfect_loops import PerfectLoops
from .assignments import assign_first_value, first_value_of, locate_target
from .located import Located, locate_element, rename_axes
from .lowering_state import Lowering
from .stage_loops import Frame


def convert(state: Lowering, marked: Marked) -> Statement:
    return marked if state.converter is None else state.converter.convert(marked)


def convert_perfect(state: Lowering, intrinsic: str, axes: list[Axis], guards: list[Expression],
                    assign: Assign, kinds: Mapping[Axis, LoopKind], *,
                    starts: bool = False) -> Statement | None:
    """What marked loops around one assignment become, if that is known without the loops."""
    if state.converter is None:
        return None
    threads = [axis for axis in axes if kinds.get(axis) == LoopKind.THREADS]
    conditions = [each for guard in guards for each in conjuncts(guard)]
    return state.converter.convert_perfect(
        intrinsic, PerfectLoops(axes, threads, conditions, assign), starts=starts)


def convert_stage(state: Lowering, frame: Frame, loops: list[Axis]) -> Statement | None:
    """What marked loops around a body become, if that is known without an assignment."""
    converter, intrinsic = state.converter, frame.intrinsic
    if converter is None or intrinsic is None or intrinsic[1] == DMA or frame.guards:
        return None
    target = locate_target(state, frame)
    if target is None:
        return None

    def locate(element: Element) -> Located | None:
        return locate_element(element, frame.values, state.parts[element.tensor],
                              state.buffers[element.tensor])

    return converter.convert_stage(intrinsic[1], frame.body, loops, target, locate)


def convert_start(state: Lowering, frame: Frame, loops: list[Axis], guards: list[Expression],
                  renamed: Mapping[Axis, Axis], body: Reduction) -> Statement:
    """What marked loops become that give sums what they start from."""
    assert frame.intrinsic is not None
    name, target = frame.intrinsic[1], locate_target(state, frame)
    if state.converter is not None and target is not None and not guards:
        found = state.converter.convert_start(name, first_value_of(body), loops,
                                              rename_axes(target, renamed))
        if found is not None:
            return found
    statement = assign_first_value(state, frame, renamed, body)
    inner: Statement = When(both(*guards), statement) if guards else statement
    return convert_perfect(state, name, loops, guards, statement, {}, starts=True) or convert(
        state, Marked(name, wrap_in_loops(inner, loops), starts=True))


def wrap_in_loops(statement: Statement, axes: list[Axis],
                  kinds: Mapping[Axis, LoopKind] | None = None) -> Statement:
    """Loops over some axes, the first one outside."""
    for axis in reversed(axes):
        statement = Loop(axis, statement, (kinds or {}).get(axis, Loop.kind))
    return statement
