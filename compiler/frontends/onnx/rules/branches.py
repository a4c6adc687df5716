"""Both branches of an If whose condition is known at run time only.

    y = If(c, then: f(x), else: g(x))       becomes     a = f(x)
                                                        b = g(x)
                                                        y = Where(c, a, b)

Operations have no side effects, so that computing what is not chosen costs time and nothing else.
One thing could end an inference: an index from data that is outside its axis. In a branch such
indices are 0 while the other one is chosen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .....base.checked_values import show_name
from ....graph.graph import Node
from ....graph.operations.data_movement.indexing import Gather, GatherElements, GatherNd
from ....graph.operations.data_movement.scatter import ScatterElements, ScatterNd
from ....graph.operations.pointwise.logic import Not, Where
from ....graph.types import GraphError
from ..call import Call
from ..read_bodies import body_of, read_body
from ..reader import NotConstantError

INDEXED = (Gather, GatherNd, GatherElements, ScatterNd, ScatterElements)


def select_branch(call: Call) -> None:
    """The results of the branch that is chosen, of two that are computed."""
    tensor, type_ = call.tensor(0), call.type(0)
    if type_.dtype != "bool" or type_.size != 1:
        raise GraphError(f"the condition is {type_}, but must be a single bool")
    condition = call.reshape(tensor, ())
    try:
        results = [_read(call, "then_branch", condition),
                   _read(call, "else_branch", call.add(Not(x=condition)))]
        _select(call, condition, *results)
    except GraphError as error:             # a constant condition would do with one of them
        why = call.reader.not_constant("the condition", tensor)
        more = error.inputs if isinstance(error, NotConstantError) else ()
        raise NotConstantError(f"{why}: {error}",
                               tuple(dict.fromkeys((*why.inputs, *more)))) from None


def _read(call: Call, name: str, is_chosen: str) -> list[str]:
    """The results of a branch."""
    builder = call.reader.builder
    before = len(builder.nodes)
    results = read_body(call, body_of(call, name), [])
    names = list(builder.nodes)[before:]
    nodes = {each: builder.nodes.pop(each) for each in names}
    for each, node in nodes.items():
        builder.nodes[each] = _with_safe_indices(call, node, is_chosen)
    return results


def _with_safe_indices(call: Call, node: Node, is_chosen: str) -> Node:
    """A node whose indices from data are 0 while its branch is not chosen."""
    operation = node.operation
    if not isinstance(operation, INDEXED) or operation.indices in call.reader.builder.constants:
        return node
    zero = call.constant(np.zeros((), call.type_of(operation.indices).dtype))
    safe = call.add(Where(condition=is_chosen, left=operation.indices, right=zero))
    return replace(node, operation=replace(operation, indices=safe))


def _select(call: Call, condition: str, one: list[str], other: list[str]) -> None:
    if not len(one) == len(other) >= len(call.node.output):
        raise GraphError(f"branches give {len(one)} and {len(other)} results, but "
                         f"{len(call.node.output)} are wanted")
    for number, (left, right) in enumerate(zip(one, other, strict=True)):
        if number >= len(call.node.output) or not call.node.output[number]:
            continue
        types = call.type_of(left), call.type_of(right)
        if types[0] != types[1]:
            raise GraphError(f"branches give {types[0]} and {types[1]} as "
                             f"{show_name(call.node.output[number])}, but which is known at run "
                             f"time only, so that both must be the same")
        if left == right:
            call.give_existing(left, number)
        else:
            call.give_moved(Where(condition=condition, left=left, right=right), left, number)
