"""Which nodes the accelerator takes, perhaps several at once, and why not the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...base.checked_values import show_name
from ..errors import CompileError, attributed_to
from ..graph.graph import Graph
from ..graph.operations.data_movement.shape import Reshape
from ..graph.operations.pointwise.quantize import Dequantize, Quantize, Reinterpret, Rescale
from ..graph.operations.pointwise.unary import Cast
from ..operators.convolution.residual import ResidualConv2d
from ..operators.depthwise.depthwise import Depthwise
from ..operators.depthwise.separable import Separable
from ..operators.description import Description
from ..operators.elementwise.lanewise import Lanewise
from .fusion import conv_separable_tasks, fused_tasks, lookup_tasks
from .layers import LayerCompiler
from .network import Decision, Where
from .task import Task, task_of
from .tensor_views import find_views

# What gives the same numbers in another form.
CONVERSIONS = (Quantize, Dequantize, Rescale, Reinterpret, Cast, Reshape)
SHOWN = 3                   # reasons that a refusal lists

WORTH_JOINING = 0.9         # of the bounds of two layers, the bound of both where a third is added


def tasks_of(graph: Graph,
             compiler: LayerCompiler) -> tuple[dict[str, Task], dict[str, Decision]]:
    """What the accelerator takes, perhaps several nodes at once, and why not the rest. Reshapes
    that only the accelerator reads are views."""
    tasks: dict[str, Task] = {}
    decisions: dict[str, Decision] = {}
    for name in graph.nodes:
        try:
            with attributed_to(title(graph, name)):
                tasks[name] = task_of(graph, name, compiler.config)
        except CompileError as error:
            decisions[name] = Decision(Where.CPU, str(error))
        else:
            decisions[name] = Decision(Where.ACCELERATOR)
    views = find_views(graph, tasks)
    in_case = {name: tasks.pop(name) for name in views & set(tasks)}     # views cannot be
    apart = _fuse(graph, compiler, tasks, decisions)
    waiting = list(tasks)
    for number, name in enumerate(waiting):
        compiler.say(f"compiling {title(graph, name)} ({number + 1} of {len(waiting)})")
        try:
            with attributed_to(title(graph, name)):
                compiler.kernel(standalone_description(compiler, tasks[name], graph))
        except CompileError as error:
            if name in apart:                   # no room for both: each for itself
                tasks |= apart[name]
                decisions |= dict.fromkeys(apart[name], Decision(Where.ACCELERATOR))
                waiting += apart[name]
            else:
                del tasks[name]
                decisions[name] = Decision(Where.CPU, str(error))
            apart.pop(name, None)
    tasks |= in_case
    decisions |= dict.fromkeys(views, Decision(Where.VIEW))
    _see_views(graph, decisions)
    return tasks, decisions


def title(graph: Graph, name: str) -> str:
    """What messages call a node: as the model does, if it does."""
    return show_name(graph.nodes[name].origin or name)


def _fuse(graph: Graph, compiler: LayerCompiler, tasks: dict[str, Task],
          decisions: dict[str, Decision]) -> dict[str, dict[str, Task]]:
    """Make one task of several nodes where it is expected to take fewer cycles than they do apart.
    Returns the tasks that they were, by the node that stands for all."""
    apart: dict[str, dict[str, Task]] = {}
    for name, part, task in list(lookup_tasks(graph, tasks)):       # which costs nothing
        if part in tasks:
            apart[name] = {each: tasks[each] for each in (name, part)}
            tasks[name] = task
            del tasks[part]
            decisions[part] = Decision(Where.FUSED, name)
    candidates = list(fused_tasks(graph, tasks))
    residuals = {part: (tasks[name], task) for name, part, task in candidates
                 if isinstance(task.spec, ResidualConv2d)}

    def least(each: Task) -> float:
        return compiler.least(standalone_description(compiler, each, graph))

    for name, part, task in candidates:
        if any(each in apart or each not in tasks for each in (name, part)):
            continue                            # together with others already
        before = {each: tasks[each] for each in (name, part)}
        try:
            with attributed_to(title(graph, name)):
                together = compiler.estimate(task.spec)
                separate = sum(compiler.estimate(standalone_description(compiler, each, graph))
                               for each in before.values())
        except CompileError:
            continue                            # does not fit, together or alone
        faster = together < separate
        if isinstance(task.spec, Separable):
            faster = (faster and name not in residuals) or _takes_less(
                least, task, list(before.values()), residuals.get(name))
        if faster:
            apart[name], tasks[name] = before, task
            del tasks[part]
            decisions[part] = Decision(Where.FUSED, name)
    for name, part, task in list(conv_separable_tasks(graph, tasks)):
        try:
            with attributed_to(title(graph, name)):
                compiler.estimate(task.spec)
        except CompileError:
            continue                            # does not fit
        if least(task) < WORTH_JOINING * (least(tasks[name]) + least(tasks[part])):
            apart[name] = {**apart[name], part: tasks[part]}
            tasks[name] = task
            del tasks[part]
            decisions[part] = Decision(Where.FUSED, name)
    return apart


def _takes_less(least: Callable[[Task], float], task: Task, before: list[Task],
                residual: tuple[Task, Task] | None) -> bool:
    """Whether a depthwise and a pointwise convolution keep the busiest engine busy for less time
    together: what both wait for at their beginning, other layers of a stream hide. If an addition
    follows, it could be part of the second instead: `residual` is it alone and so."""
    together = least(task)
    if residual is not None:
        addition, joined = residual
        together += least(addition)
        before = [each for each in before if isinstance(each.spec, Depthwise)] + [joined]
    return together < sum(least(each) for each in before)


def _see_views(graph: Graph, decisions: dict[str, Decision]) -> None:
    """Reshapes that only the accelerator reads, perhaps through others, are nothing to do."""
    for name in reversed(list(graph.nodes)):
        if isinstance(graph.nodes[name].operation, Reshape):
            readers = graph.readers.get(name, ())
            outside = name in graph.outputs or any(
                decisions[each].where == Where.CPU for each in readers)
            decisions[name] = (Decision(Where.CPU, "its result is an output, or read on the CPU")
                               if outside else Decision(Where.VIEW))


def standalone_description(compiler: LayerCompiler, task: Task, graph: Graph) -> Description:
    """The description of a task that reads tensors in layouts of its own."""
    if not isinstance(task.spec, Lanewise):
        return task.spec
    tensor = next(iter(task.reads.values()))
    return compiler.spec_of(task, compiler.natural(graph.type_of(tensor).shape))


def check_all(graph: Graph, decisions: Mapping[str, Decision]) -> None:
    """Refuse a network of which the CPU computes something, but for conversions at its edges."""
    ignored = conversions_at_edges(graph)
    reasons: dict[str, list[str]] = {}
    for name, decision in decisions.items():
        if decision.where == Where.CPU and name not in ignored:
            node = graph.nodes[name]
            reasons.setdefault(decision.reason, []).append(
                f"{show_name(node.origin or name)} ({node.operation.title()})")
    if not reasons:
        return
    count = sum(map(len, reasons.values()))
    found = sorted(reasons.items(), key=lambda each: -len(each[1]))
    lines = [f"{len(nodes)} for: {reason}, as {nodes[0]}" for reason, nodes in found[:SHOWN]]
    more = f"; and {len(found) - SHOWN} more reasons" if len(found) > SHOWN else ""
    raise CompileError(f"the accelerator does not take {count} of {len(graph.nodes)} nodes: "
                       f"{'; '.join(lines)}{more}")


def conversions_at_edges(graph: Graph) -> set[str]:
    """Nodes between an input, or an output, and the network proper that give the same numbers in
    another type, scale or shape: whoever feeds the accelerator can do without them."""
    inputs: set[str] = set()
    for name, node in graph.nodes.items():
        if isinstance(node.operation, CONVERSIONS) and all(
                each in graph.inputs or each in inputs or each in graph.constants
                for each in node.operation.operands()):
            inputs.add(name)
    outputs: set[str] = set()
    for name, node in reversed(list(graph.nodes.items())):
        if isinstance(node.operation, CONVERSIONS) and all(
                each in outputs for each in graph.readers.get(name, ())):
            outputs.add(name)
    return inputs | outputs
