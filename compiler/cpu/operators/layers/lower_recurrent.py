"""Recurrent layers: each step's state follows from that of the step before."""

from __future__ import annotations

from collections.abc import Callable

from ....expression.expression import Axis, Expression, Select, maximum, minimum
from ....graph.operations.layers.recurrent import Activation, Gru, Lstm, Recurrent, _Steps
from ....graph.types import TensorType
from ....nest.nest import Buffer, LoopKind, Nest, Statement, make_sequence
from ... import functions
from ...registry import BufferOperand, lowers_to_nest
from ..lowering import working
from ..nest_builders import assign, at, loop_over, nest_of, with_buffer

LANES = 8                       # partial sums of a product with the state, side by side
Element = Callable[[Expression, Expression], Expression]        # of a sequence and a hidden number


class Layer:
    """What all layers have in common: sums of the state times weights, gates, and steps."""

    def __init__(self, operation: _Steps, shape: tuple[int, ...], dtype: str, x: BufferOperand,
                 weights: BufferOperand, state: BufferOperand, lengths: BufferOperand):
        self.operation = operation
        self.steps, self.batch, self.hidden = shape[-3:]
        self.dtype, self.wide = dtype, working(dtype)
        self.x, self.weights, self.state, self.lengths = x, weights, state, lengths

    def gate(self, kind: Activation, value: Expression) -> Expression:
        if self.operation.clip is not None:
            value = minimum(maximum(value, -self.operation.clip), self.operation.clip)
        return activate(kind, value)

    def input(self, step: Expression, n: Expression, gate: int, h: Expression) -> Expression:
        return at(self.x.buffer, step, n, h + gate * self.hidden).cast(self.wide)

    def products(self, sums: Buffer, source: Buffer, gates: range) -> Statement:
        """sums[n, g × hidden + h] = the state of n, in `source`, times the weights of some
        gates."""
        first = gates.start * self.hidden

        def row(axes: tuple[Axis, ...]) -> Statement:
            n, r = axes
            return with_buffer("parts", (LANES,), self.wide, lambda parts: make_sequence(
                loop_over((LANES,), lambda lane: assign(parts, lane, 0), LoopKind.VECTORIZED),
                *self._add_products(parts, source, n, r + first),
                assign(sums, (n, r + first), _sum(parts))))

        return loop_over((self.batch, len(gates) * self.hidden), row)

    def _add_products(self, parts: Buffer, source: Buffer, n: Expression,
                      row: Expression) -> list[Statement]:
        chunks, rest = divmod(self.hidden, LANES)

        def add(lane: Expression, k: Expression) -> Statement:
            weight = at(self.weights.buffer, row, k).cast(self.wide)
            return assign(parts, (lane,), at(parts, lane) + at(source, n, k) * weight)

        found = []
        if chunks:
            found.append(loop_over((chunks,), lambda chunk: loop_over(
                (LANES,), lambda lane: add(lane[0], chunk[0] * LANES + lane[0]),
                LoopKind.VECTORIZED)))
        if rest:
            found.append(loop_over((rest,), lambda lane: add(lane[0], lane[0] + chunks * LANES)))
        return found

    def each(self, target: Buffer, element: Element) -> Statement:
        return loop_over((self.batch, self.hidden),
                         lambda axes: assign(target, axes, element(*axes)))

    def begin(self, target: Buffer, source: BufferOperand) -> Statement:
        return self.each(target, lambda n, h: at(source.buffer, n, h).cast(self.wide))

    def runs(self, step: Expression, n: Expression) -> Expression:
        """Whether a sequence has this step."""
        return step.cast("int64") < at(self.lengths.buffer, n).cast("int64")

    def each_step(self, body: Callable[[Expression], Statement]) -> Statement:
        return loop_over((self.steps,), lambda axes: body(
            self.steps - 1 - axes[0] if self.operation.reverse else axes[0]))

    def buffer(self, name: str, body: Callable[[Buffer], Statement], gates: int = 1) -> Statement:
        return with_buffer(name, (self.batch, gates * self.hidden), self.wide, body)


def activate(kind: Activation, value: Expression) -> Expression:
    match kind:
        case Activation.SIGMOID:
            return functions.sigmoid(value)
        case Activation.TANH:
            return functions.tanh(value)
    return maximum(value, 0)


def _sum(parts: Buffer) -> Expression:
    """In pairs, as vectors are added."""
    terms: list[Expression] = [at(parts, lane) for lane in range(LANES)]
    while len(terms) > 1:
        terms = [one + other for one, other in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


@lowers_to_nest(Recurrent)
def recurrent(operation: Recurrent, result: TensorType, target: Buffer, x: BufferOperand,
              weights: BufferOperand, state: BufferOperand, lengths: BufferOperand) -> Nest:
    layer = Layer(operation, result.shape, result.dtype, x, weights, state, lengths)

    def body(now: Buffer, sums: Buffer) -> Statement:
        def step(t: Expression) -> Statement:
            def element(n: Expression, h: Expression) -> Expression:
                value = layer.gate(operation.activation, layer.input(t, n, 0, h) + at(sums, n, h))
                return Select(layer.runs(t, n), value, at(now, n, h))

            return make_sequence(
                layer.products(sums, now, range(1)), layer.each(now, element),
                loop_over((layer.batch, layer.hidden), lambda axes: assign(
                    target, (t, *axes), at(now, *axes).cast(result.dtype))))

        return make_sequence(layer.begin(now, state), layer.each_step(step))

    whole = layer.buffer("now", lambda now: layer.buffer("sums", lambda sums: body(now, sums)))
    return nest_of(target, whole, x, weights, state, lengths)


@lowers_to_nest(Gru)
def gru(operation: Gru, result: TensorType, target: Buffer, x: BufferOperand,
        weights: BufferOperand, state: BufferOperand, lengths: BufferOperand,
        *bias: BufferOperand) -> Nest:
    layer = Layer(operation, result.shape, result.dtype, x, weights, state, lengths)
    outer, inner = operation.activations
    hidden = layer.hidden

    def body(now: Buffer, sums: Buffer, update: Buffer, reset: Buffer) -> Statement:
        def step(t: Expression) -> Statement:
            def gate(number: int) -> Element:
                return lambda n, h: layer.gate(outer, layer.input(t, n, number, h)
                                               + at(sums, n, h + number * hidden))

            def candidate(n: Expression, h: Expression) -> Expression:
                more: Expression = at(sums, n, h + 2 * hidden)
                if operation.reset_after:
                    for each in bias:
                        more = more + at(each.buffer, h).cast(layer.wide)
                    more = at(reset, n, h) * more
                value = layer.gate(inner, layer.input(t, n, 2, h) + more)
                share = at(update, n, h)
                mixed = (1 - share) * value + share * at(now, n, h)
                return Select(layer.runs(t, n), mixed, at(now, n, h))

            gates = [layer.each(update, gate(0)), layer.each(reset, gate(1))]
            if operation.reset_after:
                before = [layer.products(sums, now, range(3)), *gates]
            else:
                before = [layer.products(sums, now, range(2)), *gates,
                          layer.each(reset, lambda n, h: at(reset, n, h) * at(now, n, h)),
                          layer.products(sums, reset, range(2, 3))]
            return make_sequence(*before, layer.each(now, candidate), loop_over(
                (layer.batch, hidden), lambda axes: assign(
                    target, (t, *axes), at(now, *axes).cast(result.dtype))))

        return make_sequence(layer.begin(now, state), layer.each_step(step))

    whole = layer.buffer("now", lambda now: layer.buffer("sums", lambda sums: layer.buffer(
        "update", lambda update: layer.buffer("reset", lambda reset: body(
            now, sums, update, reset))), 3))
    return nest_of(target, whole, x, weights, state, lengths, *bias)


@lowers_to_nest(Lstm)
def lstm(operation: Lstm, result: TensorType, target: Buffer, x: BufferOperand,
         weights: BufferOperand, state: BufferOperand, lengths: BufferOperand,
         memory: BufferOperand, *peepholes: BufferOperand) -> Nest:
    layer = Layer(operation, result.shape, result.dtype, x, weights, state, lengths)
    outer, inner, last = operation.activations
    hidden = layer.hidden

    def body(now: Buffer, kept: Buffer, sums: Buffer) -> Statement:
        def step(t: Expression) -> Statement:
            def gate(number: int, kind: Activation, seen: Expression | None, peephole: int,
                     n: Expression, h: Expression) -> Expression:
                value = layer.input(t, n, number, h) + at(sums, n, h + number * hidden)
                for each in peepholes if seen is not None else ():
                    assert seen is not None
                    value = value + at(each.buffer, h + peephole * hidden).cast(
                        layer.wide) * seen
                return layer.gate(kind, value)

            def newer(n: Expression, h: Expression) -> Expression:
                old = at(kept, n, h)
                value = gate(2, outer, old, 2, n, h) * old + (
                    gate(0, outer, old, 0, n, h) * gate(3, inner, None, 0, n, h))
                return Select(layer.runs(t, n), value, old)

            def output(n: Expression, h: Expression) -> Expression:
                memory = at(kept, n, h)
                value = gate(1, outer, memory, 1, n, h) * activate(last, memory)
                return Select(layer.runs(t, n), value, at(now, n, h))

            return make_sequence(
                layer.products(sums, now, range(4)), layer.each(kept, newer),
                layer.each(now, output),
                loop_over((layer.batch, hidden), lambda axes: make_sequence(
                    assign(target, (0, t, *axes), at(now, *axes).cast(result.dtype)),
                    assign(target, (1, t, *axes), at(kept, *axes).cast(result.dtype)))))

        return make_sequence(layer.begin(now, state), layer.begin(kept, memory),
                             layer.each_step(step))

    whole = layer.buffer("now", lambda now: layer.buffer("kept", lambda kept: layer.buffer(
        "sums", lambda sums: body(now, kept, sums), 4)))
    return nest_of(target, whole, x, weights, state, lengths, memory, *peepholes)
