"""Which nodes the accelerator takes, perhaps several at once, and why not the rest."""

from __future__ import annotations

from collections.abc import Mapping

from ...isa.config import Config
from ..errors import CompileError, attributed_to
from ..graph.graph import Graph
from ..graph.operations.data_movement.shape import Reshape, Transpose
from ..graph.operations.pointwise.quantize import Dequantize, Quantize, Reinterpret, Rescale
from ..graph.operations.pointwise.unary import Cast
from .axis_views import MOVES
from .column_layouts import choose_columns
from .fusion import fuse_tasks
from .kernel_search import KernelSearch
from .network import Decision, Where
from .select_operator import task_of
from .task import Task
from .tensor_views import find_views

# What gives the same numbers in another form.
CONVERSIONS = (Quantize, Dequantize, Rescale, Reinterpret, Cast, Reshape)
SHOWN = 3                   # reasons that a refusal lists


def place_nodes(graph: Graph, kernels: KernelSearch,
                channel_axis: int | None) -> tuple[dict[str, Task], dict[str, Decision]]:
    """What the accelerator takes, perhaps several nodes at once, and why not the rest. Reshapes
    and transposes that only the accelerator reads through are views."""
    tasks, decisions = _find_tasks(graph, kernels.config, channel_axis)
    views = find_views(graph, tasks)
    in_case = {name: tasks.pop(name) for name in views & set(tasks)}     # views cannot be
    apart = fuse_tasks(graph, kernels, tasks, decisions)
    _compile_tasks(graph, kernels, tasks, decisions, apart)
    tasks |= in_case
    decisions |= dict.fromkeys(views, Decision(Where.VIEW))
    _place_moves(graph, tasks, decisions)
    return tasks, decisions


def _find_tasks(graph: Graph, config: Config,
                channel_axis: int | None) -> tuple[dict[str, Task], dict[str, Decision]]:
    """Nodes that the accelerator has operators for, each by itself."""
    tasks: dict[str, Task] = {}
    decisions: dict[str, Decision] = {}
    for name in graph.nodes:
        try:
            with attributed_to(graph.title(name)):
                tasks[name] = task_of(graph, name, config, channel_axis)
        except CompileError as error:
            decisions[name] = Decision(Where.CPU, str(error))
        else:
            decisions[name] = Decision(Where.ACCELERATOR)
    return tasks, decisions


def _compile_tasks(graph: Graph, kernels: KernelSearch, tasks: dict[str, Task],
                   decisions: dict[str, Decision], apart: dict[str, dict[str, Task]]) -> None:
    """Compile every task by itself, and leave to the CPU what finds no room. `apart` has the tasks
    that were fused, by the node that stands for all."""
    columns = choose_columns(graph, tasks, decisions, kernels)
    tasks |= {name: columns.apply(name, task) for name, task in tasks.items()}
    waiting = list(tasks)
    for number, name in enumerate(waiting):
        if name not in tasks:
            continue                            # was waiting twice
        kernels.say(f"compiling {graph.title(name)} ({number + 1} of {len(waiting)})")
        try:
            with attributed_to(graph.title(name)):
                kernels.kernel(tasks[name].spec)
        except CompileError as error:
            if columns.concern(name, tasks[name]):      # no room: a tile for each column
                columns = columns.without(name, *tasks[name].reads.values())
                changed = {each: columns.apply(each, task) for each, task in tasks.items()}
                waiting += [each for each, task in changed.items() if task.spec != tasks[each].spec]
                tasks |= changed
                continue
            if name in apart:                   # no room for both: each for itself
                tasks |= {each: columns.apply(each, task) for each, task in apart[name].items()}
                decisions |= dict.fromkeys(apart[name], Decision(Where.ACCELERATOR))
                waiting += apart[name]
            else:
                del tasks[name]
                decisions[name] = Decision(Where.CPU, str(error))
            apart.pop(name, None)


def _place_moves(graph: Graph, tasks: Mapping[str, Task], decisions: dict[str, Decision]) -> None:
    """Reshapes and transposes that only the accelerator reads, perhaps through others, are nothing
    to do: a task reads what lies before them. Transposes that one reads itself are the CPU's."""
    read = {tensor for task in tasks.values() for tensor in task.reads.values()}
    for name in reversed(list(graph.nodes)):
        operation = graph.nodes[name].operation
        if isinstance(operation, MOVES) and name not in read:
            readers = graph.readers.get(name, ())
            outside = name in graph.outputs or any(
                decisions[each].where == Where.CPU for each in readers)
            reason = (decisions[name].reason if isinstance(operation, Transpose) else
                      "its result is an output, or read on the CPU")
            decisions[name] = Decision(Where.CPU, reason) if outside else Decision(Where.VIEW)


def check_all(graph: Graph, decisions: Mapping[str, Decision]) -> None:
    """Refuse a network of which the CPU computes something, but for conversions at its edges."""
    ignored = conversions_at_edges(graph)
    reasons: dict[str, list[str]] = {}
    for name, decision in decisions.items():
        if decision.where == Where.CPU and name not in ignored:
            reasons.setdefault(decision.reason, []).append(
                f"{graph.title(name)} ({graph.nodes[name].operation.title()})")
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
    another type, scale or shape: the host can feed the accelerator without them."""
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
