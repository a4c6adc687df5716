"""A part of a graph for the CPU: kernels in order, where their buffers lie, and their module.

Chains of element-wise nodes are one kernel: a node that one other reads is handed to it as an
expression. Constants are kept once, as they are; scratch buffers share memory over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from ...base.checked_values import show_name
from ...base.classes.dataclass import dataclass
from ...base.processor import Target
from ..errors import attributed_to
from ..expression.expression import walk
from ..expression.tensor import Tensor, compute, constant, topological_order
from ..graph.evaluate_graph import compute_node
from ..graph.graph import Graph
from ..graph.operation import Value
from ..graph.types import Array, TensorType
from ..nest.nest import Buffer
from ..schedule.lower import lower
from ..schedule.schedule import Schedule
from .code.emit_kernel import Kernel, Module
from .code.entry import Entry
from .default_schedule import default_schedule
from .kernels import Steps, steps_of
from .lower_node import as_expression, as_nest, check_lowered, drop_empty_operands
from .registry import LOWERINGS, Scheduled
from .scratch_plan import plan_scratch

RUN = "run"                 # the function that runs kernels one after the other
MOST_NODES = 500            # of an expression that is handed on


@dataclass(frozen=True, eq=False)
class Part:
    """Everything that it takes to run a part. Each kernel is a function of the module, and `RUN`
    runs them in a row. Numbers are places in the table that kernels get."""

    target: Target
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    constants: Mapping[int, Array]
    scratch: Mapping[int, int]          # place in the table → offset in scratch memory
    scratch_bytes: int
    types: Mapping[str, TensorType]     # of inputs and outputs
    module: Module

    @property
    def kernels(self) -> tuple[Entry, ...]:
        return tuple(self.module.entries)

    @property
    def text(self) -> str:
        """The module in LLVM's language."""
        return self.module.text(RUN)

    @property
    def places(self) -> int:
        """Entries of the table."""
        return len(self.inputs) + len(self.outputs) + len(self.constants) + len(self.scratch)


def compile_part(graph: Graph, target: Target) -> Part:
    """A graph, all of whose nodes the CPU computes."""
    builder = _Builder(graph, target)
    for name, node in graph.nodes.items():
        with attributed_to(show_name(node.origin or name)):
            builder.add(name)
    return builder.finish()


@dataclass
class _Builder:
    graph: Graph
    target: Target
    kernels: list[Kernel] = field(default_factory=list)
    scratch: list[Buffer] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)        # of tensors in memory
    tensors: dict[str, Tensor] = field(default_factory=dict)        # placeholders for these
    pending: dict[str, Tensor] = field(default_factory=dict)        # expressions, not in memory
    known: dict[Buffer, Array] = field(default_factory=dict)        # constants

    def add(self, name: str) -> None:
        node = self.graph.nodes[name]
        if node.type.size == 0:
            return                              # nothing to do
        operands = drop_empty_operands(self.graph, node.operation).operands()
        if all(self._constant(each) is not None or self.graph.type_of(each).size == 0
               for each in node.operation.operands()):
            self._fold(name)
            return
        check_lowered(name, node)
        if type(node.operation) not in LOWERINGS:
            for each in operands:
                self._in_memory(each)
            result = self._result(name)
            nest = as_nest(self.graph, name, result,
                           {each: self.buffers[each] for each in operands})
            self._take(steps_of(nest.body, self._kernel_name(), name))
            return
        found = self._lower(name, operands)
        if isinstance(found, Scheduled):
            waiting = any(each in self.pending for each in operands)
            for each in operands:
                self._in_memory(each)
            if waiting:             # then it is another expression that reads them from memory
                found = self._lower(name, operands)
            assert isinstance(found, Scheduled)
            schedule = Schedule(found.tensor)
            found.schedule(schedule, self.target)
            self._schedule(name, schedule)
        elif self._is_handed_on(name, found):
            self.pending[name] = found
        else:
            self._schedule(name, default_schedule(found, self.target))

    def _lower(self, name: str, operands: Iterable[str]) -> Tensor | Scheduled:
        return as_expression(self.graph, name, {each: self._tensor(each) for each in operands},
                             self.target)

    def _is_handed_on(self, name: str, tensor: Tensor) -> bool:
        """Whether just one other node reads it, which may compute it on the way."""
        readers = self.graph.readers.get(name, ())
        return name not in self.graph.outputs and len(readers) == 1 and (
            sum(1 for each in topological_order(tensor) if each.body is not None
                for _ in walk(each.body)) < MOST_NODES)

    def _constant(self, name: str) -> Array | None:
        buffer = self.buffers.get(name)
        return self.graph.array(name) if buffer is None else self.known.get(buffer)

    def _fold(self, name: str) -> None:
        """Everything that it reads is known: so is the result."""
        node = self.graph.nodes[name]
        values = []
        for each in node.operation.operands():
            type_, array = self.graph.type_of(each), self._constant(each)
            values.append(Value(type_, np.zeros(type_.shape, type_.dtype)
                                if array is None else array))
        array = compute_node(node, values)
        if name in self.graph.outputs:
            self._copy(name, array)
        else:
            self._keep(name, array)

    def _copy(self, name: str, array: Array) -> None:
        source = constant(f"{name}.value", array)
        self._schedule(name, default_schedule(
            compute(name, array.shape, lambda *i: source[i]), self.target))

    def _keep(self, name: str, array: Array) -> Buffer:
        buffer = Buffer(name, array.shape, array.dtype.name)
        self.buffers[name] = buffer
        self.known[buffer] = np.ascontiguousarray(array)
        return buffer

    def _in_memory(self, name: str) -> None:
        """See to it that a tensor is in memory."""
        if name in self.pending:
            self._schedule(name, default_schedule(self.pending.pop(name), self.target))
        elif name not in self.buffers:
            array, type_ = self.graph.array(name), self.graph.type_of(name)
            if array is not None:
                self._keep(name, array)
            else:
                self.buffers[name] = Buffer(name, type_.shape, type_.dtype)

    def _tensor(self, name: str) -> Tensor:
        """A tensor to read, in memory or not."""
        if name in self.pending:
            return self.pending[name]
        if name not in self.tensors:
            type_ = self.graph.type_of(name)
            # Not a `placeholder`, which has elements: of this, nothing may be there to read.
            self.tensors[name] = Tensor(name, type_.shape, type_.dtype)
        return self.tensors[name]

    def _result(self, name: str) -> Buffer:
        type_ = self.graph.type_of(name)
        buffer = Buffer(name, type_.shape, type_.dtype)
        self.buffers[name] = buffer
        if name not in self.graph.outputs:
            self.scratch.append(buffer)
        return buffer

    def _schedule(self, name: str, schedule: Schedule) -> None:
        """Compute a tensor as a schedule says."""
        nest = lower(schedule)
        given = [each for each in topological_order(*schedule.outputs) if each.body is None]
        renamed = {nest.outputs[0]: self._result(name)}
        names = {tensor: each for each, tensor in self.tensors.items()}
        for tensor, buffer in zip(given, nest.inputs, strict=True):
            if tensor.values is not None:
                renamed[buffer] = self._table(tensor)
            else:
                self._in_memory(names[tensor])
                renamed[buffer] = self.buffers[names[tensor]]
        self._take(steps_of(nest.body, self._kernel_name(), name), renamed)

    def _table(self, tensor: Tensor) -> Buffer:
        """A constant that a lowering made."""
        assert tensor.values is not None
        for buffer, array in self.known.items():
            if array is tensor.values:
                return buffer
        buffer = Buffer(tensor.name, tensor.shape, tensor.dtype)
        self.known[buffer] = tensor.values
        return buffer

    def _kernel_name(self) -> str:
        return f"kernel_{len(self.kernels)}"

    def _take(self, steps: Steps, renamed: Mapping[Buffer, Buffer] | None = None) -> None:
        for kernel in steps.kernels:
            self.kernels.append(kernel.with_buffers(renamed or {}))
        self.scratch += steps.scratch

    def finish(self) -> Part:
        graph = self.graph
        return assemble_part(
            self.target, self.kernels, self.known, self.scratch,
            {name: self.buffers[name] for name in graph.inputs if name in self.buffers},
            {name: self.buffers[name] for name in graph.outputs if graph.type_of(name).size},
            {name: graph.type_of(name) for name in (*graph.inputs, *graph.outputs)})


def assemble_part(target: Target, kernels: Sequence[Kernel], known: Mapping[Buffer, Array],
                  scratch: Sequence[Buffer], inputs: Mapping[str, Buffer],
                  outputs: Mapping[str, Buffer], types: Mapping[str, TensorType]) -> Part:
    """A part of its kernels: every buffer that they use gets a place."""
    used = dict.fromkeys(buffer for kernel in kernels for buffer in kernel.buffers)
    constants = [buffer for buffer in known if buffer in used]
    between = [buffer for buffer in scratch if buffer in used]
    order = [*inputs.values(), *outputs.values(), *constants, *between]
    places = {buffer: number for number, buffer in enumerate(order)}
    module = Module(target)
    for kernel in kernels:
        module.add(kernel, places)
    plan = plan_scratch(kernels, between)
    return Part(target, {name: places[each] for name, each in inputs.items()},
                {name: places[each] for name, each in outputs.items()},
                {places[each]: np.ascontiguousarray(known[each]) for each in constants},
                {places[each]: plan.offsets[each] for each in between}, plan.size, types,
                module)


def compile_function(output: Tensor, target: Target) -> Part:
    """A tensor as a part of its own; what it reads and it itself go by their names."""
    nest = lower(default_schedule(output, target))
    steps = steps_of(nest.body, "kernel_0", output.name)
    given = [each for each in topological_order(output) if each.body is None]
    return assemble_part(target, steps.kernels, {}, steps.scratch,
                         {each.name: each for each in nest.inputs}, {output.name: nest.outputs[0]},
                         {each.name: TensorType(each.shape, each.dtype)
                          for each in (*given, output)})
