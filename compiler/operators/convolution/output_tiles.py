"""The part of a template that convolutions share: boxes of the output, each in one step."""

from __future__ import annotations

from typing import Any

from ....base.classes.dataclass import dataclass
from ...accelerator.selection.intrinsic import Intrinsic
from ...expression.expression import Axis
from ...expression.tensor import Tensor
from ...nest.nest import Scope
from ...schedule.schedule import Schedule, Stage


@dataclass(frozen=True)
class AluSteps:
    """What the ALU computes between sums and results: tensors in order, each with its intrinsic;
    the tensors loaded for them; and the parameters that all boxes share. Each step overwrites the
    last tensor that it reads."""

    steps: dict[Tensor, Intrinsic]
    wide: Tensor
    parameters: Tensor


def schedule_output_tiles(form: Any, knobs: Any, *, one_by_one: bool = False,
                          single_sums: bool = False, parameters_ahead: int = 0,
                          downwards: bool = False,
                          between: AluSteps | None = None) -> tuple[Schedule, Tensor, Tensor]:
    """A schedule in which sums, results and the output are computed box by box, with channel
    blocks in the outer loops; how the sums of a box are computed is left to the template. Results
    are requantized and stored as a whole, or block by block. Sums and results have two buffers
    each, or one. Boxes follow one another along rows, or `downwards`. Parameters come after the
    operands of the first sums, or ahead of them into so many buffers. Returns the schedule, the
    weights on the chip, and the sums."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, form.result_scope)
    parameters = _cache_parameters(plan, form.parameters, inside, between)
    if between is not None:
        _cache_parameters(plan, between.parameters, inside, between)      # once for all
    weights = plan.cache_read(form.weights, Scope.WGT, form.sums)
    sums, inside, output = (plan.replacement_of(each) for each in (form.sums, inside, form.output))
    plan[form.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, *groups, o, y, x, b, j = last.leaves
    split = [last.split(each, knobs.groups) for each in groups]
    o_far, o_near = last.split(o, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    boxes = (x_far, y_far) if downwards else (y_far, x_far)
    step = boxes[-1]
    last.reorder(*(far for far, _ in split), o_far, n, *boxes,
                 *(near for _, near in split), o_near, y_near, x_near, b, j)
    for stage, axis in ((plan[sums], step), (plan[inside], o_near if one_by_one else step)):
        stage.compute_at(last, axis)
        if not single_sums:
            stage.double_buffer(axis)
    plan[parameters].compute_at(last, o_far if parameters_ahead else step)
    plan[parameters].keep(parameters_ahead or 2)
    if not parameters_ahead:
        load_after(plan, parameters, sums)
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)
    for loaded in (form.padded, weights, parameters):
        plan[loaded].dma(plan[loaded].leaves[0])
    last.dma(y_near if one_by_one else last.leaves[last.leaves.index(step) + 1])
    if between is not None:
        _run_on_alu(plan, last, step, between)
    return plan, weights, sums


def _cache_parameters(plan: Schedule, parameters: Tensor, inside: Tensor,
                      between: AluSteps | None) -> Tensor:
    """Put parameters on the chip for all stages that read them, the last reader first."""
    steps = reversed(between.steps) if between is not None else ()
    readers = [plan.replacement_of(each) for each in (inside, *steps)]
    return plan.cache_read(parameters, Scope.ACC, *(
        each for each in readers if parameters in each.inputs()))


def _run_on_alu(plan: Schedule, last: Stage, axis: Axis, between: AluSteps) -> None:
    """Run the steps on a whole box, in place. Tensors loaded for them have two buffers."""
    wide = plan[between.wide]
    wide.scope = Scope.ACC
    wide.compute_at(last, axis)
    wide.double_buffer(axis)
    wide.dma(wide.leaves[0])
    for step, intrinsic in between.steps.items():
        each = plan[plan.replacement_of(step)]
        each.scope = Scope.ACC
        each.compute_at(last, axis)
        each.compute_in_place(next(
            source for source in each.tensor.inputs()
            if source in plan.stages and source.shape == each.tensor.shape))
        each.tensorize(each.leaves[-2], intrinsic.name)


def load_after(plan: Schedule, tensor: Tensor, other: Tensor) -> None:
    """Load a tensor after what another one needs that is computed in the same loop."""
    own = plan.stages.pop(tensor)
    plan.stages = {key: value for each, stage in plan.stages.items() for key, value in (
        ((each, stage), (tensor, own)) if each is other else ((each, stage),))}
