"""Recurrent layers, each direction on its own. What the inputs contribute is one matrix product for
all steps."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ....graph.operation import Operation
from ....graph.operations.data_movement.indexing import Expand
from ....graph.operations.data_movement.shape import Concat, Transpose
from ....graph.operations.layers.matmul import MatMul
from ....graph.operations.layers.recurrent import Activation, Gru, Lstm, Recurrent
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.logic import Compare, CompareKind, Where
from ....graph.types import GraphError, Shape
from ..call import Call
from ..operator_table import operator
from .data_movement import build_slice

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
ACTIVATIONS = {"Sigmoid": Activation.SIGMOID, "Tanh": Activation.TANH, "Relu": Activation.RELU}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
ATTRIBUTES = ("activation_alpha activation_beta activations clip direction hidden_size "
              "input_forget layout linear_before_reset")


@dataclass
class Layer:
    """A node, its operands with the steps first, and its sizes."""

    call: Call
    x: str                      # (step, batch, input)
    steps: int
    batch: int
    hidden: int
    directions: tuple[bool, ...]
    batch_first: bool

    def part(self, number: int, direction: int) -> str:
        """The part of an operand that belongs to a direction."""
        call = self.call
        shape = call.type(number).shape
        if not shape or shape[0] != len(self.directions):
            raise GraphError(f"operand {number} has shape {shape}, but must have "
                             f"{len(self.directions)} directions first")
        return self.select_index(call.plain_operand(number), direction)

    def select_index(self, tensor: str, index: int) -> str:
        """One index of the first axis."""
        shape = self.call.type_of(tensor).shape
        one = self.call.add(build_slice(tensor, shape, {0: (index, index + 1, 1)}))
        return self.call.reshape(one, shape[1:])

    def slice_list(self, tensor: str, start: int, stop: int) -> str:
        """Some numbers of a list."""
        shape = self.call.type_of(tensor).shape
        return self.call.add(build_slice(tensor, shape, {0: (start, stop, 1)}))

    def state(self, number: int, direction: int) -> str:
        """A state before the first step: zeros, unless it is given."""
        call, shape = self.call, (self.batch, self.hidden)
        if not call.has(number):
            dtype = call.type_of(self.x).dtype
            return call.add(Expand(x=call.scalar(0, dtype), shape=shape))
        if not self.batch_first:
            return self.part(number, direction)
        given = call.plain_operand(number)
        if len(call.type_of(given).shape) != 3:
            raise GraphError(f"operand {number} has shape {call.type_of(given).shape}, but must "
                             f"have 3 axes")
        return self.select_index(call.add(Transpose(x=given, order=(1, 0, 2))), direction)

    def lengths(self) -> str:
        """The steps of each sequence: all, unless given."""
        if self.call.has(4):
            return self.call.cast(self.call.plain_operand(4), "int32")
        full = self.call.scalar(min(self.steps, (1 << 31) - 1), "int32")
        return self.call.add(Expand(x=full, shape=(self.batch,)))


@operator("RNN GRU LSTM", ATTRIBUTES, since=7)
def recurrent(call: Call) -> None:
    kind = call.node.op_type
    layer = _layer(call)
    names = _activations(call, kind, len(layer.directions))
    states, memories = [], []
    for number, reverse in enumerate(layer.directions):
        found = call.add(_direction(layer, number, reverse, names[number]))
        if kind == "LSTM":
            memories.append(layer.select_index(found, 1))
            found = layer.select_index(found, 0)
        states.append(found)
    _give_all(layer, states)
    for number, each in ((1, states), (2, memories)):
        if number < len(call.node.output) and call.node.output[number]:
            _give_last(layer, each, number)


def _layer(call: Call) -> Layer:
    """What all three have in common."""
    x, shape = call.plain_operand(0), call.type(0).shape
    weights = call.type(1).shape
    if len(shape) != 3 or len(weights) != 3 or len(call.type(2).shape) != 3:
        raise GraphError(f"the input has shape {shape} and weights {weights}, but must have 3 axes")
    hidden = call.type(2).shape[2]
    if call.integer("hidden_size", hidden) != hidden:
        raise GraphError(f"hidden_size is {call.integer('hidden_size', hidden)}, but the recurrent "
                         f"weights have {hidden}")
    if call.flag("input_forget"):
        raise GraphError("input_forget is not supported")
    batch_first = call.flag("layout")
    if batch_first:
        x = call.add(Transpose(x=x, order=(1, 0, 2)))
    steps, batch, _ = call.type_of(x).shape
    if not steps:
        raise GraphError("there are no steps")
    directions = DIRECTIONS[call.text("direction", "forward", " ".join(DIRECTIONS))]
    return Layer(call, x, steps, batch, hidden, directions, batch_first)


def _activations(call: Call, kind: str, directions: int) -> list[tuple[Activation, ...]]:
    """The functions of each direction."""
    count = len(FUNCTIONS[kind])
    words = call.texts("activations") or FUNCTIONS[kind] * directions
    if len(words) != count * directions or not all(word in ACTIVATIONS for word in words):
        raise GraphError(f"activations are {', '.join(words)}, but must be {count * directions} of "
                         f"{', '.join(ACTIVATIONS)}")
    found = [ACTIVATIONS[word] for word in words]
    return [tuple(found[start:start + count]) for start in range(0, len(found), count)]


def _direction(layer: Layer, number: int, reverse: bool,
               activations: tuple[Activation, ...]) -> Operation:
    """The states of one direction."""
    call = layer.call
    kind, gates = call.node.op_type, GATES[call.node.op_type]
    clip = call.real("clip", 0) or None
    reset_after = kind == "GRU" and bool(call.integer("linear_before_reset", 0))
    bias, extra = _biases(layer, number, gates, reset_after)
    weights = call.add(Transpose(x=layer.part(1, number), order=(1, 0)))
    x = call.add(MatMul(left=layer.x, right=weights, bias=bias))
    recurrent, state, lengths = layer.part(2, number), layer.state(5, number), layer.lengths()
    if kind == "RNN":
        return Recurrent(x=x, weights=recurrent, state=state, lengths=lengths, reverse=reverse,
                         clip=clip, activation=activations[0])
    if kind == "GRU":
        return Gru(x=x, weights=recurrent, state=state, lengths=lengths, reverse=reverse, clip=clip,
                   bias=extra, reset_after=reset_after, activations=(activations[0],
                                                                     activations[1]))
    return Lstm(x=x, weights=recurrent, state=state, lengths=lengths, reverse=reverse, clip=clip,
                memory=layer.state(6, number),
                peepholes=layer.part(7, number) if call.has(7) else None,
                activations=(activations[0], activations[1], activations[2]))


def _biases(layer: Layer, number: int, gates: int,
            reset_after: bool) -> tuple[str | None, str | None]:
    """What is added to the input's part, and what a gated layer adds before its last gate is
    reset."""
    call, hidden = layer.call, layer.hidden
    if not call.has(3):
        return None, None
    both = layer.part(3, number)
    if call.type_of(both).shape != (2 * gates * hidden,):
        raise GraphError(f"the bias has shape {call.type_of(both).shape}, but must have "
                         f"({2 * gates * hidden},)")
    first, second = (layer.slice_list(both, gates * hidden * each, gates * hidden * (each + 1))
                     for each in (0, 1))
    extra = None
    if reset_after:
        extra = layer.slice_list(second, 2 * hidden, 3 * hidden)
        zeros = call.constant(np.zeros(hidden, call.type_of(both).dtype))
        second = call.add(Concat(parts=(layer.slice_list(second, 0, 2 * hidden), zeros), axis=0))
    return call.add(Binary(kind=BinaryKind.ADD, left=first, right=second)), extra


def _give_all(layer: Layer, states: list[str]) -> None:
    """The states of all steps, zero after the end of a sequence: (step, direction, batch, hidden),
    or with the batch first."""
    call = layer.call
    if not call.node.output[0]:
        return
    shape: Shape = (layer.steps, 1, layer.batch, layer.hidden)
    joined = call.add(Concat(parts=tuple(call.reshape(each, shape) for each in states), axis=1))
    if call.has(4):
        step = call.reshape(call.numbers(layer.steps), (layer.steps, 1, 1, 1))
        length = call.reshape(call.cast(call.plain_operand(4), "int64"), (layer.batch, 1))
        runs = call.add(Compare(kind=CompareKind.LESS, left=step, right=length))
        joined = call.add(Where(condition=runs, left=joined,
                                right=call.scalar(0, call.type_of(joined).dtype)))
    order = (2, 0, 1, 3) if layer.batch_first else (0, 1, 2, 3)
    call.give(Transpose(x=joined, order=order))


def _give_last(layer: Layer, states: list[str], number: int) -> None:
    """The states after the last step: (direction, batch, hidden), or with the batch first."""
    call = layer.call
    ends = [call.reshape(layer.select_index(each, 0 if reverse else layer.steps - 1),
                         (1, layer.batch, layer.hidden))
            for each, reverse in zip(states, layer.directions, strict=True)]
    joined = call.add(Concat(parts=tuple(ends), axis=0))
    call.give(Transpose(x=joined, order=(1, 0, 2) if layer.batch_first else (0, 1, 2)), number)
