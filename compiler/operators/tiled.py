"""The part of a template that convolutions share: boxes of the output, each in one step."""

from __future__ import annotations

from typing import Any

from ..expression.tensor import Tensor
from ..nest.nest import Scope
from ..schedule.schedule import Schedule


def tiled(form: Any, knobs: Any, *, one_by_one: bool = False,
          kept_parameters: int = 2) -> tuple[Schedule, Tensor, Tensor]:
    """A schedule in which sums, results and the output are computed box by box, with channel
    blocks outside; how a box is summed up is left to the template. Results are requantized and
    stored whole, or block by block. Returns it with the weights on the chip and the sums."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    parameters = plan.cache_read(form.parameters, Scope.ACC, inside)
    weights = plan.cache_read(form.weights, Scope.WGT, form.sums)
    sums, inside, output = (plan.renewed(each) for each in (form.sums, inside, form.output))
    plan[form.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, *groups, o, y, x, b, j = last.leaves
    split = [last.split(each, knobs.groups) for each in groups]
    o_far, o_near = last.split(o, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    last.reorder(*(far for far, _ in split), o_far, n, y_far, x_far,
                 *(near for _, near in split), o_near, y_near, x_near, b, j)
    for stage, axis in ((plan[sums], x_far), (plan[inside], o_near if one_by_one else x_far)):
        stage.compute_at(last, axis)
        stage.double_buffer(axis)
    plan[parameters].compute_at(last, o_far)
    plan[parameters].keep(kept_parameters)
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)
    for loaded in (form.padded, weights, parameters):
        plan[loaded].dma(plan[loaded].leaves[0])
    last.dma(y_near if one_by_one else last.leaves[last.leaves.index(x_far) + 1])
    return plan, weights, sums


def first_of_all(plan: Schedule, tensor: Tensor) -> None:
    """Load a tensor before whatever else is loaded inside the same loop."""
    plan.stages = {tensor: plan[tensor], **plan.stages}
