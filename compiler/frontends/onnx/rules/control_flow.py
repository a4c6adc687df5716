"""Control flow: one branch of an If, or both if its condition is computed, and every step of a
loop whose steps are known, as if it had been written out."""

from __future__ import annotations

from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.indexing import Expand
from ....graph.operations.data_movement.shape import Concat, Reshape
from ....graph.types import GraphError
from ..call import Call
from ..onnx_file import dtype_of
from ..operator_table import operator
from ..read_bodies import body_of, read_body
from .branches import select_branch
from .data_movement import build_slice

MOST_STEPS = 1 << 16        # of a loop


@operator("If", "then_branch else_branch")
def branch(call: Call) -> None:
    """The branch that the condition chooses; both, if it is known at run time only."""
    if call.known_values(0) is None:
        select_branch(call)
        return
    chosen = "then_branch" if call.number(0, "the condition") else "else_branch"
    body = body_of(call, chosen)
    for number, tensor in enumerate(read_body(call, body, [])):
        call.give_existing(tensor, number)


@operator("Loop", "body")
def loop(call: Call) -> None:
    """Every step, as long as the condition holds, which must be known before each."""
    body = body_of(call, "body")
    counts = call.integers(0, "the number of steps") if call.has(0) else (MOST_STEPS + 1,)
    carried = [call.tensor(each) for each in range(2, len(call))]
    if len(counts) != 1 or len(body.output) < 1 + len(carried):
        raise GraphError(f"a loop of {counts} steps with {len(carried)} tensors has a body of "
                         f"{len(body.output)} results")
    stacks: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    goes_on = call.tensor(1) if call.has(1) else call.scalar(True, "bool")
    step = 0
    while step < counts[0] and _holds(call, goes_on):
        if step >= MOST_STEPS:
            raise GraphError(f"a loop takes more than {MOST_STEPS} steps")
        results = read_body(call, body, [call.scalar(step, "int64"), goes_on, *carried])
        goes_on, carried, rest = results[0], results[1:len(carried) + 1], results[
            len(carried) + 1:]
        for stack, each in zip(stacks, rest, strict=True):
            stack.append(each)
        step += 1
    for number, tensor in enumerate(carried):
        call.give_existing(tensor, number)
    for number, (stack, value) in enumerate(zip(stacks, body.output[len(carried) + 1:],
                                                strict=True), start=len(carried)):
        _give_stack(call, stack, number, 0, value.type.tensor_type.elem_type)


def _holds(call: Call, condition: str) -> bool:
    known = call.reader.builder.array(condition)
    if known is None:
        raise call.reader.not_constant("whether a loop goes on", condition)
    return bool(known.all())


def _give_stack(call: Call, parts: list[str], number: int, axis: int, kind: int) -> None:
    """Results of all steps, joined along a new axis."""
    if number >= len(call.node.output) or not call.node.output[number]:
        return
    if not parts:
        call.give(Expand(x=call.scalar(0, dtype_of(kind)), shape=(0,)), number)
        return
    shape = call.type_of(parts[0]).shape
    place = normalize_axis(axis, len(shape) + 1)
    one = (*shape[:place], 1, *shape[place:])
    call.give(Concat(parts=tuple(call.reshape(each, one) for each in parts), axis=place), number)


@operator("Scan", "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
          "scan_output_directions", since=9)
def scan(call: Call) -> None:
    """Every step, with its part of each tensor that is scanned."""
    body, scanned = body_of(call, "body"), call.integer("num_scan_inputs", 0)
    states = len(call) - scanned
    if not 0 < scanned <= len(call) or len(body.output) < states:
        raise GraphError(f"{scanned} of {len(call)} operands are scanned, and the body gives "
                         f"{len(body.output)} results")
    stacked = len(body.output) - states
    axes = call.list("scan_input_axes") or (0,) * scanned
    backwards = call.list("scan_input_directions") or (0,) * scanned
    into = call.list("scan_output_axes") or (0,) * stacked
    turned = call.list("scan_output_directions") or (0,) * stacked
    if (len(axes), len(backwards), len(into), len(turned)) != (scanned, scanned, stacked, stacked):
        raise GraphError("there must be an axis and a direction for each scanned tensor")
    inputs = [call.tensor(states + each) for each in range(scanned)]
    steps = {call.type_of(each).shape[normalize_axis(axis, len(call.type_of(each).shape))]
             for each, axis in zip(inputs, axes, strict=True)}
    if len(steps) != 1 or not 0 < min(steps) <= MOST_STEPS:
        raise GraphError(f"tensors with {sorted(steps)} steps are scanned, but all must have as "
                         f"many, from 1 to {MOST_STEPS}")
    count = steps.pop()
    carried = [call.tensor(each) for each in range(states)]
    stacks: list[list[str]] = [[] for _ in range(stacked)]
    for step in range(count):
        parts = [_select_index(call, each, axis, count - 1 - step if back else step)
                 for each, axis, back in zip(inputs, axes, backwards, strict=True)]
        results = read_body(call, body, [*carried, *parts])
        carried = results[:states]
        for stack, each in zip(stacks, results[states:], strict=True):
            stack.append(each)
    for number, tensor in enumerate(carried):
        call.give_existing(tensor, number)
    for number, (stack, axis, back) in enumerate(zip(stacks, into, turned, strict=True),
                                                 start=states):
        _give_stack(call, stack[::-1] if back else stack, number, axis, 0)


def _select_index(call: Call, tensor: str, axis: int, index: int) -> str:
    """One index of an axis, without it."""
    shape = call.type_of(tensor).shape
    place = normalize_axis(axis, len(shape))
    part = call.move(build_slice(tensor, shape, {place: (index, index + 1, 1)}), tensor)
    return call.move(Reshape(x=part, shape=(*shape[:place], *shape[place + 1:])), part)
