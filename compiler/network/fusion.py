"""Several nodes as one layer, where that is faster: a convolution and what follows it, the average
of the whole image, a 1 × 1 convolution or a residual addition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from ..errors import CompileError, attributed_to
from ..graph.graph import Graph
from ..graph.operations.data_movement.shape import Reshape
from ..graph.operations.layers.window import Conv
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.operations.pointwise.quantize import Lookup
from ..operators.convolution.conv2d import Conv2d
from ..operators.convolution.residual import ResidualConv2d
from ..operators.depthwise.conv_separable import MIXED, WINDOW, ConvSeparable
from ..operators.depthwise.depthwise import Depthwise
from ..operators.depthwise.separable import Separable
from ..operators.description import TABLE_OPERATORS, Epilogue
from ..operators.elementwise.elementwise import Elementwise
from ..operators.pool.conv_global_average import AveragedConv2d
from ..operators.pool.pool import Kind, Pool
from .kernel_search import KernelSearch
from .network import Decision, Where
from .task import Settings, Task

WORTH_JOINING = 0.9         # of the bounds of two layers, the bound of both where a third is added


def fuse_tasks(graph: Graph, kernels: KernelSearch, tasks: dict[str, Task],
               decisions: dict[str, Decision]) -> dict[str, dict[str, Task]]:
    """Make one task of several nodes where it is expected to take fewer cycles than they do apart.
    Returns the tasks that they were, by the node that stands for all."""
    apart: dict[str, dict[str, Task]] = {}

    def fuse(name: str, part: str, task: Task) -> None:
        apart[name] = {**apart.get(name, {name: tasks[name]}), part: tasks[part]}
        tasks[name] = task
        del tasks[part]
        decisions[part] = Decision(Where.FUSED, name)

    for name, part, task in list(_lookup_tasks(graph, tasks)):
        if part in tasks:                       # a table after another costs nothing
            fuse(name, part, task)
    candidates = [*_average_tasks(graph, tasks), *_separable_tasks(graph, tasks),
                  *_residual_tasks(graph, tasks)]
    residuals = {part: (tasks[name], task) for name, part, task in candidates
                 if isinstance(task.spec, ResidualConv2d)}
    for name, part, task in candidates:
        with attributed_to(graph.title(name)):
            if all(each in tasks and each not in apart for each in (name, part)) and _is_faster(
                    kernels, task, [tasks[name], tasks[part]], residuals.get(name)):
                fuse(name, part, task)
    for name, part, task in list(_conv_separable_tasks(graph, tasks)):
        with attributed_to(graph.title(name)):
            if _is_worth_joining(kernels, task, [tasks[name], tasks[part]]):
                fuse(name, part, task)
    return apart


def _is_faster(kernels: KernelSearch, task: Task, before: list[Task],
               residual: tuple[Task, Task] | None) -> bool:
    """Whether tasks together are estimated to take fewer cycles than apart, and fit. A depthwise
    and a pointwise convolution may also keep the busiest engine busy for less time together: what
    both wait for at their beginning, other layers of a stream hide. If an addition follows, it
    could be part of the second instead: `residual` is it alone and so. An average adds on the ALU
    where it is joined: with few lanes, the bound tells that this is slower in a stream."""
    try:
        faster = kernels.estimate(task.spec) < sum(kernels.estimate(each.spec) for each in before)
    except CompileError:
        return False                            # does not fit, together or alone
    together = kernels.bound_of(task.spec)
    if isinstance(task.spec, AveragedConv2d):
        return faster and together <= sum(kernels.bound_of(each.spec) for each in before)
    if not isinstance(task.spec, Separable) or (faster and residual is None):
        return faster
    if residual is not None:
        addition, joined = residual
        together += kernels.bound_of(addition.spec)
        before = [each for each in before if isinstance(each.spec, Depthwise)] + [joined]
    return together < sum(kernels.bound_of(each.spec) for each in before)


def _is_worth_joining(kernels: KernelSearch, task: Task, before: list[Task]) -> bool:
    """Whether the bound of tasks together is well below the sum of theirs, and they fit."""
    try:
        kernels.estimate(task.spec)
    except CompileError:
        return False
    return kernels.bound_of(task.spec) < WORTH_JOINING * sum(
        kernels.bound_of(each.spec) for each in before)


def _lookup_tasks(graph: Graph, tasks: Mapping[str, Task]) -> Iterator[tuple[str, str, Task]]:
    """Lookups that the node before them can do: the lookup, that node, and the task of both."""
    for name, task in tasks.items():
        if not isinstance(graph.nodes[name].operation, Lookup):
            continue
        chosen = task.reads["left"]
        spec = tasks[chosen].spec if chosen in tasks else None
        if isinstance(spec, Epilogue) and spec.operator in TABLE_OPERATORS and (
                not spec.wide and not spec.lookup and _only_reader(graph, chosen) == name):
            assert isinstance(task.spec, Elementwise)
            yield name, chosen, replace(tasks[chosen], spec=replace(spec, lookup=task.spec.lookup))


def _residual_tasks(graph: Graph, tasks: Mapping[str, Task]) -> Iterator[tuple[str, str, Task]]:
    """Additions that may be done with a convolution before them: the addition, the convolution,
    and the task of both. Of two convolutions, the one that does more hides the addition better."""
    for name, task in tasks.items():
        operation = graph.nodes[name].operation
        if not isinstance(operation, Binary) or operation.kind != BinaryKind.ADD:
            continue
        candidates = [(side, each) for side, each in (("left", operation.left),
                                                      ("right", operation.right))
                      if each in tasks and _can_join(graph, each, tasks[each], name, task)]
        if candidates and operation.left != operation.right:
            side, chosen = max(candidates, key=lambda pair: tasks[pair[1]].spec.macs)  # type: ignore[attr-defined]
            yield name, chosen, _fuse_addition(tasks[chosen], task, side)


def _can_join(graph: Graph, conv: str, task: Task, name: str, addition: Task) -> bool:
    """A plain convolution that rounds as the addition does."""
    return (_is_plain(graph, conv, task) and type(addition.spec) is Elementwise
            and _only_reader(graph, conv) == name
            and isinstance(task.spec, Conv2d) and task.spec.rounding == addition.spec.rounding)


def _is_plain(graph: Graph, conv: str, task: Task) -> bool:
    """A plain convolution, whose results have 8 bits."""
    return type(task.spec) is Conv2d and not task.spec.wide and isinstance(
        graph.nodes[conv].operation, Conv)


def _only_reader(graph: Graph, tensor: str) -> str | None:
    """The node that alone reads a tensor, as it is computed or through reshapes that nobody else
    reads and that give its shape back. A task reads the tensor before all reshapes, so counting
    the readers of that tensor alone would overlook those of the reshapes."""
    shape, name = graph.type_of(tensor).shape, tensor
    while name not in graph.outputs and graph.uses[name] == 1:
        reader, = graph.readers[name]
        if not isinstance(graph.nodes[reader].operation, Reshape):
            return reader if graph.type_of(name).shape == shape else None
        name = reader
    return None


def _fuse_addition(conv: Task, addition: Task, side: str) -> Task:
    """The task of a convolution and an addition of which it is one side."""
    spec, add = conv.spec, addition.spec
    assert isinstance(spec, Conv2d)
    assert isinstance(add, Elementwise)
    other = "right" if side == "left" else "left"
    joined = ResidualConv2d(**_fields_of(spec) | {
        "zero_point_conv": spec.zero_point_out, "low_conv": spec.low, "high_conv": spec.high,
        "scale_conv": getattr(add, f"scale_{side}"),
        "scale_residual": getattr(add, f"scale_{other}"),
        "zero_point_residual": getattr(add, f"zero_point_{other}"),
        "scale_out": add.scale_out, "zero_point_out": add.zero_point_out, "low": add.low,
        "high": add.high})
    return Task(joined, {"data": conv.reads["data"], "residual": addition.reads[other]},
                conv.constants, conv.axes,
                {"data": conv.shapes["data"], "residual": addition.shapes[other]})


def _average_tasks(graph: Graph, tasks: Mapping[str, Task]) -> Iterator[tuple[str, str, Task]]:
    """Averages of all that a convolution computes."""
    for name, task in tasks.items():
        average = task.spec
        if not isinstance(average, Pool) or average.kind != Kind.AVERAGE or (
                average.kernel != (average.height, average.width) or any(average.pad)):
            continue
        chosen = task.reads["data"]
        conv = tasks.get(chosen)
        if conv is not None and _is_plain(graph, chosen, conv) and conv.axes == task.axes and (
                _only_reader(graph, chosen) == name):
            yield name, chosen, _fuse_average(conv, average)


def _fuse_average(conv: Task, average: Pool) -> Task:
    """The task of a convolution and the average of its image."""
    spec = conv.spec
    assert isinstance(spec, Conv2d)
    return replace(conv, spec=AveragedConv2d(**_fields_of(spec) | {
        "zero_point_conv": spec.zero_point_out, "low_conv": spec.low, "high_conv": spec.high,
        "rounding_conv": spec.rounding, "scale_conv": average.scale_in,
        "zero_point_average": average.zero_point_in, "scale_out": average.scale_out,
        "zero_point_out": average.zero_point_out, "low": average.low, "high": average.high,
        "rounding": average.rounding}))


def _separable_tasks(graph: Graph, tasks: Mapping[str, Task]) -> Iterator[tuple[str, str, Task]]:
    """1 × 1 convolutions of what a depthwise one computes."""
    for name, task in tasks.items():
        spec, chosen = task.spec, task.reads.get("data", "")
        if type(spec) is not Conv2d or spec.planes > 1 or spec.lookup or spec.wide or (
                any(spec.pad) or (*spec.kernel, *spec.stride) != (1, 1, 1, 1)):
            continue
        first = tasks.get(chosen)
        if first is not None and type(first.spec) is Depthwise and first.spec.planes == 1 and (
                not first.spec.lookup and first.axes == task.axes
                and _only_reader(graph, chosen) == name):
            yield name, chosen, _separable(first, task)


def _separable(first: Task, second: Task) -> Task:
    """The task of a depthwise convolution and a 1 × 1 convolution after it."""
    depthwise, mixing = first.spec, second.spec
    assert isinstance(depthwise, Depthwise)
    assert isinstance(mixing, Conv2d)
    constants = {**first.constants, **{f"mixed_{name}": each
                                       for name, each in second.constants.items()}}
    constants["mixed_weights"] = constants["mixed_weights"][:, :, 0, 0]
    return replace(first, constants=constants, spec=Separable(**_fields_of(depthwise) | {
        "channels_mixed": mixing.channels_out, "zero_point_between": depthwise.zero_point_out,
        "low_between": depthwise.low, "high_between": depthwise.high,
        "rounding_between": depthwise.rounding, "zero_point_out": mixing.zero_point_out,
        "low": mixing.low, "high": mixing.high, "rounding": mixing.rounding}))


def _conv_separable_tasks(graph: Graph,
                          tasks: Mapping[str, Task]) -> Iterator[tuple[str, str, Task]]:
    """Separable convolutions of what a plain one computes, which may be computed with it."""
    for name, task in tasks.items():
        chosen = task.reads.get("data", "")
        conv = tasks.get(chosen)
        if isinstance(task.spec, Separable) and conv is not None and (
                _is_plain(graph, chosen, conv) and conv.axes == task.axes
                and _leads_only_to(graph, chosen, name)
                and conv.spec.planes == 1 and task.spec.multiplier == 1):   # type: ignore[attr-defined]
            yield name, chosen, _conv_separable(conv, task)


def _leads_only_to(graph: Graph, conv: str, name: str) -> bool:
    """Whether a convolution is read by a window alone, and this by a 1 × 1 convolution alone."""
    window = _only_reader(graph, conv)
    return window is not None and _only_reader(graph, window) == name


def _conv_separable(conv: Task, rest: Task) -> Task:
    """The task of a convolution and a separable one after it."""
    first, second = conv.spec, rest.spec
    assert isinstance(first, Conv2d)
    assert isinstance(second, Separable)
    constants = {**conv.constants, **{
        name if name.startswith(MIXED) else WINDOW + name: each
        for name, each in rest.constants.items()}}
    return replace(conv, constants=constants, spec=ConvSeparable(**_fields_of(first) | {
        "zero_point_conv": first.zero_point_out, "low_conv": first.low, "high_conv": first.high,
        "rounding_conv": first.rounding, "window": second.kernel, "window_stride": second.stride,
        "window_dilation": second.dilation, "window_pad": second.pad, **{
            name: getattr(second, name) for name in (
                "zero_point_between", "low_between", "high_between", "rounding_between",
                "channels_mixed", "zero_point_out", "low", "high", "rounding")}}))


def _fields_of(spec: Conv2d) -> Settings:
    """The fields of a convolution."""
    return {each.name: getattr(spec, each.name) for each in fields(Conv2d)}
