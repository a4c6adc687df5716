"""Recurrent layers: each step's state follows from that of the step before.

What the inputs of all steps contribute to the gates is one matrix product, which is done before;
an operation here adds what the state contributes. Tensors are

    x         (step, batch, gate × hidden): what inputs and biases contribute
    weights   (gate × hidden, hidden), which are multiplied with the state
    state     (batch, hidden): the state before the first step
    lengths   (batch): int32 or int64, steps of each sequence; later ones leave its state as it is

and the result is the state after each step. With `reverse`, the last step comes first. Real numbers
are computed in 64 bits and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from math import isnan

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, operand, same_types
from ...types import Array, GraphError, Shape, TensorType
from ..pointwise.unary import _sigmoid


class Activation(Enum):
    """A function of each number of a gate."""

    SIGMOID = "sigmoid"
    TANH = "tanh"
    RELU = "relu"


FUNCTIONS: dict[Activation, Callable[[Array], Array]] = {
    Activation.SIGMOID: _sigmoid, Activation.TANH: np.tanh,
    Activation.RELU: lambda x: np.maximum(x, 0)}


@dataclass(frozen=True, kw_only=True)
class _Steps(Operation):
    """What all recurrent layers have in common."""

    x: str = operand()
    weights: str = operand()
    state: str = operand()
    lengths: str = operand()
    reverse: bool = False
    clip: float | None = None           # what a gate gets is within ± this

    def check_steps(self, gates: int, x: TensorType, weights: TensorType, state: TensorType,
                    lengths: TensorType) -> Shape:
        """Steps, batch and hidden numbers of a layer with so many gates."""
        if len(weights.shape) != 2 or len(x.shape) != 3:
            raise GraphError(f"the input has shape {x.shape} and weights {weights.shape}, but must "
                             f"have 3 and 2 axes")
        hidden, (steps, batch, _) = weights.shape[1], x.shape
        for name, type_, shape in (("the input", x, (steps, batch, gates * hidden)),
                                   ("weights", weights, (gates * hidden, hidden)),
                                   ("the state", state, (batch, hidden)),
                                   ("lengths", lengths, (batch,))):
            if type_.shape != shape:
                raise GraphError(f"{name} has shape {type_.shape}, but must have {shape}")
        if not x.is_float or lengths.dtype not in ("int32", "int64") or lengths.is_quantized:
            raise GraphError(f"the input is {x} and lengths are {lengths}, but must be real "
                             f"numbers and int32 or int64")
        if self.clip is not None and (isnan(self.clip) or self.clip <= 0):
            raise GraphError(f"clip is {self.clip}, but must be above zero")
        same_types({"the input": x, "weights": weights, "the state": state})
        return steps, batch, hidden

    def gate(self, kind: Activation, values: Array) -> Array:
        if self.clip is not None:
            values = np.clip(values, -self.clip, self.clip)
        return FUNCTIONS[kind](values)

    def steps(self, x: Value, lengths: Value) -> Iterator[tuple[int, Array, Array]]:
        """Each step in order, its part of the input, and which sequences still run, (batch, 1)."""
        count = x.array.shape[0] if x.array.size else 0
        for step in reversed(range(count)) if self.reverse else range(count):
            yield step, x.array[step].astype(np.float64), (step < lengths.array)[:, None]


@dataclass(frozen=True, kw_only=True)
class Recurrent(_Steps):
    """A plain layer: state = f(x + weights · state)."""

    activation: Activation = Activation.TANH

    def infer(self, x: TensorType, weights: TensorType, state: TensorType,
              lengths: TensorType) -> TensorType:
        return TensorType(self.check_steps(1, x, weights, state, lengths), x.dtype)

    def compute(self, result: TensorType, x: Value, weights: Value, state: Value,
                lengths: Value) -> Array:
        found = np.zeros(result.shape)
        now, factors = state.array.astype(np.float64), weights.array.astype(np.float64)
        for step, values, runs in self.steps(x, lengths):
            now = np.where(runs, self.gate(self.activation, values + now @ factors.T), now)
            found[step] = now
        return found


@dataclass(frozen=True, kw_only=True)
class Gru(_Steps):
    """A gated layer with gates z, r and h, in this order:

        z = f(x + weights · state)        r = f(x + weights · state)
        h = g(x + weights · (r × state)), or with `reset_after` g(x + r × (weights · state + bias))
        state = (1 − z) × h + z × state

    The bias is (hidden); others are in x already.
    """

    bias: str | None = operand(None)
    reset_after: bool = False
    activations: tuple[Activation, Activation] = (Activation.SIGMOID, Activation.TANH)

    def infer(self, x: TensorType, weights: TensorType, state: TensorType, lengths: TensorType,
              *bias: TensorType) -> TensorType:
        shape = self.check_steps(3, x, weights, state, lengths)
        for each in bias:
            if not self.reset_after or (each.shape, each.dtype) != (shape[2:], x.dtype):
                raise GraphError(f"there is a bias of {each}, but it must be {x.dtype} of shape "
                                 f"{shape[2:]}, and reset_after be set")
        return TensorType(shape, x.dtype)

    def compute(self, result: TensorType, x: Value, weights: Value, state: Value, lengths: Value,
                *bias: Value) -> Array:
        found = np.zeros(result.shape)
        hidden, (outer, inner) = result.shape[2], self.activations
        now, factors = state.array.astype(np.float64), weights.array.astype(np.float64)
        added = sum(each.array.astype(np.float64) for each in bias)
        for step, values, runs in self.steps(x, lengths):
            products = now @ factors[:2 * hidden].T
            update = self.gate(outer, values[:, :hidden] + products[:, :hidden])
            reset = self.gate(outer, values[:, hidden:2 * hidden] + products[:, hidden:])
            last = factors[2 * hidden:].T
            more = reset * (now @ last + added) if self.reset_after else (reset * now) @ last
            candidate = self.gate(inner, values[:, 2 * hidden:] + more)
            now = np.where(runs, (1 - update) * candidate + update * now, now)
            found[step] = now
        return found


@dataclass(frozen=True, kw_only=True)
class Lstm(_Steps):
    """A layer with a memory. Gates are i, o, f and c, in this order, and c stays for itself:

        i = f(x + weights · state + p × memory)       f likewise        c = g(x + weights · state)
        memory = f × memory + i × c
        o = f(x + weights · state + p × memory)       state = o × h(memory)

    `peepholes` are p for i, o and f, (3 × hidden). The result is (2, step, batch, hidden): states,
    then memories.
    """

    memory: str = operand()
    peepholes: str | None = operand(None)
    activations: tuple[Activation, Activation, Activation] = (
        Activation.SIGMOID, Activation.TANH, Activation.TANH)

    def infer(self, x: TensorType, weights: TensorType, state: TensorType, lengths: TensorType,
              memory: TensorType, *peepholes: TensorType) -> TensorType:
        shape = self.check_steps(4, x, weights, state, lengths)
        if memory != state:
            raise GraphError(f"the memory is {memory}, but must be {state} as the state is")
        for each in peepholes:
            if (each.shape, each.dtype) != ((3 * shape[2],), x.dtype):
                raise GraphError(f"peepholes are {each}, but must be {x.dtype} of shape "
                                 f"({3 * shape[2]},)")
        return TensorType((2, *shape), x.dtype)

    def compute(self, result: TensorType, x: Value, weights: Value, state: Value, lengths: Value,
                memory: Value, *peepholes: Value) -> Array:
        found, hidden = np.zeros(result.shape), result.shape[3]
        outer, inner, last = self.activations
        now, factors = state.array.astype(np.float64), weights.array.astype(np.float64)
        kept = memory.array.astype(np.float64)
        seen = [each.array.astype(np.float64).reshape(3, hidden) for each in peepholes]
        for step, values, runs in self.steps(x, lengths):
            i, o, f, c = np.split(values + now @ factors.T, 4, axis=1)
            for each in seen:
                i, f = i + each[0] * kept, f + each[2] * kept
            newer = self.gate(outer, f) * kept + self.gate(outer, i) * self.gate(inner, c)
            for each in seen:
                o = o + each[1] * newer
            now = np.where(runs, self.gate(outer, o) * FUNCTIONS[last](newer), now)
            kept = np.where(runs, newer, kept)
            found[0, step], found[1, step] = now, kept
        return found
