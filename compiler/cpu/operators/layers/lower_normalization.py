"""Operations that bring numbers to a common size: softmax and the norms."""

from __future__ import annotations

from math import prod

from ....expression.expression import Expression, both, largest, least, select, total
from ....expression.functions import square_root
from ....expression.tensor import Tensor, compute, reduce_axis
from ....graph.operation import normalize_axis
from ....graph.operations.layers.normalization import (
    BatchNorm,
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from ....graph.types import TensorType
from ... import functions
from ...registry import Operand, lowers
from ..lowering import Axes, each, real, with_axis, working
from ..sums import reduce_values
from .lower_reduction import Places


@lowers(Softmax)
def softmax(operation: Softmax, result: TensorType, x: Operand) -> Tensor:
    axis = normalize_axis(operation.axis, len(x.type.shape))
    powers, sums = _powers(x, axis, operation.beta)
    inverse = compute("inverse", sums.shape, lambda *i: 1 / sums[i])
    return each(operation, result, lambda i: (
        powers[i] * inverse[with_axis(i, axis, 0)]).cast(result.dtype))


@lowers(LogSoftmax)
def log_softmax(operation: LogSoftmax, result: TensorType, x: Operand) -> Tensor:
    axis = normalize_axis(operation.axis, len(x.type.shape))
    highest = _highest(x, axis, 1)
    _, sums = _powers(x, axis, 1, highest)
    logarithms = compute("logarithm", sums.shape, lambda *i: functions.ln(sums[i]))
    return each(operation, result, lambda i: (
        real(x, i) - highest[with_axis(i, axis, 0)]
        - logarithms[with_axis(i, axis, 0)]).cast(result.dtype))


def _highest(x: Operand, axis: int, beta: float) -> Tensor:
    places = Places(x, (axis,), keep=True)
    dtype = working(x.type.dtype)
    return reduce_values("highest", with_axis(x.type.shape, axis, 1), places.extents,
                         lambda i, r: places.at(i, r).cast(dtype), largest if beta >= 0 else least)


def _powers(x: Operand, axis: int, beta: float,
            highest: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """exp(beta × x), as shares of the largest along an axis, and their sums. Differences are
    multiplied, for products may be too large."""
    top = _highest(x, axis, beta) if highest is None else highest
    powers = compute("powers", x.type.shape, lambda *i: functions.exp(
        (real(x, i) - top[with_axis(i, axis, 0)]) * beta))
    sums = reduce_values("sums", with_axis(x.type.shape, axis, 1), [x.type.shape[axis]],
                         lambda i, r: powers[with_axis(i, axis, r[0])], total)
    return powers, sums


def _moments(x: Operand, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor]:
    """The means over some axes, and what differences to them are multiplied with to have a
    variance of 1; the axes have one index."""
    places = Places(x, axes, keep=True)
    count, dtype = prod(places.extents), working(x.type.dtype)
    shape = [1 if axis in places.gone else size for axis, size in enumerate(x.type.shape)]
    sums = reduce_values("sums", shape, places.extents, lambda i, r: places.at(i, r).cast(dtype),
                         total)
    means = compute("means", shape, lambda *i: sums[i] / count)

    def square(i: Axes, r: Axes) -> Expression:
        away = places.at(i, r).cast(dtype) - means[i]
        return away * away

    squares = reduce_values("squares", shape, places.extents, square, total)
    factors = compute("factors", shape,
                      lambda *i: 1 / square_root(squares[i] / count + epsilon))
    return means, factors


def _normalize(x: Operand, means: Tensor, factors: Tensor, i: Axes) -> Expression:
    there = tuple(0 if size == 1 else axis for axis, size in zip(i, means.shape, strict=True))
    return (real(x, i) - means[there]) * factors[there]


@lowers(LayerNorm)
def layer_norm(operation: LayerNorm, result: TensorType, x: Operand,
               *parameters: Operand) -> Tensor:
    first = normalize_axis(operation.axis, len(x.type.shape))
    means, factors = _moments(x, tuple(range(first, len(x.type.shape))), operation.epsilon)

    def element(i: Axes) -> Expression:
        value = _normalize(x, means, factors, i)
        for place, parameter in enumerate(parameters):
            other = real(parameter, i)
            value = value + other if place else value * other
        return value.cast(result.dtype)

    return each(operation, result, element)


@lowers(InstanceNorm)
def instance_norm(operation: InstanceNorm, result: TensorType, x: Operand, scale: Operand,
                  bias: Operand) -> Tensor:
    channel = normalize_axis(operation.channel_axis, len(x.type.shape))
    inside = tuple(axis for axis in range(1, len(x.type.shape)) if axis != channel)
    means, factors = _moments(x, inside, operation.epsilon)
    return each(operation, result, lambda i: (
        _normalize(x, means, factors, i) * real(scale, (i[channel],))
        + real(bias, (i[channel],))).cast(result.dtype))


@lowers(BatchNorm)
def batch_norm(operation: BatchNorm, result: TensorType, x: Operand, scale: Operand, bias: Operand,
               mean: Operand, variance: Operand) -> Tensor:
    channel = normalize_axis(operation.channel_axis, len(x.type.shape))
    factors = compute("factors", scale.type.shape, lambda *i: real(scale, i) / square_root(
        real(variance, i) + operation.epsilon))

    def element(i: Axes) -> Expression:
        c = (i[channel],)
        return ((real(x, i) - real(mean, c)) * factors[c] + real(bias, c)).cast(result.dtype)

    return each(operation, result, element)


@lowers(LocalResponseNorm)
def local_response_norm(operation: LocalResponseNorm, result: TensorType, x: Operand) -> Tensor:
    channel = normalize_axis(operation.channel_axis, len(x.type.shape))
    channels = x.type.shape[channel]
    before, after = (min(each, channels - 1) for each in (operation.before, operation.after))
    near = reduce_axis("near", before + after + 1)

    def square(*i: Expression) -> Expression:
        there = i[channel] + near - before
        value = real(x, with_axis(i, channel, there))
        return total(select(both(there >= 0, there < channels), value * value, 0), near)

    squares = compute("squares", x.type.shape, square)
    return each(operation, result, lambda i: (real(x, i) / _power(
        squares[i] * operation.alpha + operation.bias, operation.beta)).cast(result.dtype))


def _power(x: Expression, exponent: float) -> Expression:
    """Powers that are common without logarithms."""
    if exponent == 0.5:
        return square_root(x)
    if exponent == 0.75:
        root = square_root(x)
        return root * square_root(root)
    return functions.constant_power(x, exponent)
