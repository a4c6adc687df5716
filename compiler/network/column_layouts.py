"""Images of few channels, on arrays with different blocks: several columns in a tile of memory.

Memory has tiles of the larger block, which 8 or 16 channels leave half empty. Columns share such a
tile where everybody who writes or reads the image can take it so (`packed_columns.py`), and where
that is expected to be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ..errors import CompileError
from ..graph.graph import Graph
from ..operators.convolution.conv2d import Conv2d
from ..operators.convolution.packed_columns import most_columns
from ..operators.convolution.residual import ResidualConv2d
from ..operators.depthwise.depthwise import Depthwise
from .kernel_search import KernelSearch
from .network import Decision, Where
from .task import Task

PACKING = (Conv2d, ResidualConv2d, Depthwise)       # descriptions that take such images
INFEASIBLE = 1e30                                   # cycles of what does not fit


@dataclass
class ColumnLayouts:
    """How many columns of each tensor share a tile. Tensors that are added lie alike: `alike` has
    those that go together, by each of them."""

    columns: dict[str, int] = field(default_factory=dict)
    alike: dict[str, set[str]] = field(default_factory=dict)

    def apply(self, name: str, task: Task) -> Task:
        """A task with the layouts of what it reads and writes."""
        spec = task.spec
        if type(spec) not in PACKING:
            return task
        assert isinstance(spec, Conv2d), "these are all convolutions"
        return replace(task, spec=replace(
            spec, columns_in=self.columns.get(task.reads["data"], 1),
            columns_out=self.columns.get(name, 1)))

    def concern(self, name: str, task: Task) -> bool:
        """Whether a task writes or reads such a tensor."""
        return any(each in self.columns for each in (name, *task.reads.values()))

    def without(self, *names: str) -> ColumnLayouts:
        """The same, with a tile for each column of some tensors."""
        dropped = set().union(*(self.alike.get(each, set()) for each in names))
        return ColumnLayouts({name: count for name, count in self.columns.items()
                              if name not in dropped}, self.alike)


def choose_columns(graph: Graph, tasks: Mapping[str, Task], decisions: Mapping[str, Decision],
                   kernels: KernelSearch) -> ColumnLayouts:
    """The layouts that promise the fewest cycles: all that are possible, and then without those
    that cost more than they save."""
    if kernels.config.block_in == kernels.config.block_out:
        return ColumnLayouts()
    found = _candidates(graph, tasks, decisions, kernels.config)
    known: dict[object, float] = {}

    def cycles(layouts: ColumnLayouts, names: set[str]) -> float:
        specs = [layouts.apply(name, tasks[name]).spec for name in names]
        for spec in specs:
            if spec not in known:
                try:
                    known[spec] = kernels.estimate(spec)
                except CompileError:
                    known[spec] = INFEASIBLE
        return sum(known[spec] for spec in specs)

    for tensor in list(found.columns):
        if tensor in found.columns:
            touched = {name for name, task in tasks.items() if type(task.spec) in PACKING
                       and not found.alike[tensor].isdisjoint((name, *task.reads.values()))}
            other = found.without(tensor)
            if cycles(other, touched) < cycles(found, touched):
                found = other
    return found


def _candidates(graph: Graph, tasks: Mapping[str, Task], decisions: Mapping[str, Decision],
                config: Config) -> ColumnLayouts:
    """Tensors whose columns can share tiles, as far as each operator is concerned."""
    columns = {name: count for name, task in tasks.items()
               if _is_image(graph, tasks, decisions, name)
               and (count := _most_columns(task, config)) > 1}
    alike = {name: {name} for name in tasks}
    for name, task in tasks.items():
        if isinstance(task.spec, ResidualConv2d):
            together = alike[name] | alike.get(task.reads["residual"], {task.reads["residual"]})
            alike |= dict.fromkeys(together, together)
    return ColumnLayouts({name: count for name, count in columns.items()
                          if all(columns.get(each) == count for each in alike[name])}, alike)


def _is_image(graph: Graph, tasks: Mapping[str, Task], decisions: Mapping[str, Decision],
              name: str) -> bool:
    """Whether only operators that can take several columns in a tile write and read a tensor."""
    readers = dict(_readers(tasks, name))
    if name in graph.outputs or not readers or not all(
            type(tasks[each].spec) in PACKING for each in (name, *readers)):
        return False
    for each in graph.readers[name]:
        fused = decisions[each].where == Where.FUSED
        if (decisions[each].reason if fused else each) not in readers:
            return False
    return all(tasks[each].shapes[operand] == graph.type_of(name).shape
               for each, operand in readers.items())


def _most_columns(task: Task, config: Config) -> int:
    """How many columns of a result can share a tile."""
    spec = task.spec
    assert isinstance(spec, Conv2d), "others take no such images"
    count = 1 if spec.wide else most_columns(config, spec.channels_out)
    while spec.out_width % count:
        count //= 2
    return count


def _readers(tasks: Mapping[str, Task], tensor: str) -> Iterator[tuple[str, str]]:
    """The tasks that read a tensor, each with its operand."""
    for name, task in tasks.items():
        for operand, each in task.reads.items():
            if each == tensor:
                yield name, operand
