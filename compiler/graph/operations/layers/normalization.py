"""Operations that bring numbers to a common size: softmax and the norms. All are of real numbers,
computed in 64 bits and rounded once."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, normalize_axis, operand
from ...types import Array, GraphError, TensorType


@dataclass(frozen=True, kw_only=True)
class _Real(Operation):
    """An operation on real numbers that keeps their shape."""

    x: str = operand()

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        for each in (x, *parameters):
            if each.dtype != x.dtype or not each.is_float:
                raise GraphError(f"an operand is {each}, but all must be real numbers of one type")
        return x

    def per_channel(self, x: TensorType, axis: int, *parameters: TensorType) -> None:
        """Refuse parameters that are not one number for each channel."""
        channels = x.shape[normalize_axis(axis, len(x.shape))]
        for each in parameters:
            if each.shape != (channels,):
                raise GraphError(f"a parameter has shape {each.shape}, but must have "
                                 f"({channels},)")


def wide(value: Value) -> Array:
    return value.array.astype(np.float64)


def along(parameter: Value, axis: int, axes: int) -> Array:
    """A number for each index of an axis, in a shape that meets it."""
    return wide(parameter).reshape([-1 if each == axis % axes else 1 for each in range(axes)])


@dataclass(frozen=True, kw_only=True)
class Softmax(_Real):
    """exp(beta × x), divided by its sum along an axis."""

    axis: int = -1
    beta: float = 1

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        normalize_axis(self.axis, len(x.shape))
        return super().infer(x)

    def compute(self, result: TensorType, x: Value) -> Array:
        values = self.beta * wide(x)
        powers = np.exp(values - values.max(axis=self.axis, keepdims=True, initial=-np.inf))
        found: Array = powers / powers.sum(axis=self.axis, keepdims=True)
        return found


@dataclass(frozen=True, kw_only=True)
class LogSoftmax(_Real):
    """The logarithm of softmax."""

    axis: int = -1

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        normalize_axis(self.axis, len(x.shape))
        return super().infer(x)

    def compute(self, result: TensorType, x: Value) -> Array:
        values = wide(x)
        values = values - values.max(axis=self.axis, keepdims=True, initial=-np.inf)
        found: Array = values - np.log(np.exp(values).sum(axis=self.axis, keepdims=True))
        return found


@dataclass(frozen=True, kw_only=True)
class LayerNorm(_Real):
    """Numbers of all axes from one on, with a mean of 0 and a variance of 1; then times a scale,
    plus a bias."""

    scale: str | None = operand(None)
    bias: str | None = operand(None)
    axis: int = -1
    epsilon: float = 1e-5

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        super().infer(x, *parameters)
        shape = x.shape[normalize_axis(self.axis, len(x.shape)):]
        if self.bias is not None and self.scale is None:
            raise GraphError("there is a bias, but no scale")
        for each in parameters:
            if each.shape != shape:
                raise GraphError(f"a parameter has shape {each.shape}, but must have {shape}")
        return x

    def compute(self, result: TensorType, x: Value, *parameters: Value) -> Array:
        values = wide(x)
        axes = tuple(range(self.axis % values.ndim, values.ndim))
        values = standardize(values, axes, self.epsilon)
        for parameter, function in zip(parameters, (np.multiply, np.add), strict=False):
            values = function(values, wide(parameter))
        return values


def standardize(values: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """Numbers with a mean of 0 and a variance of 1 over some axes."""
    values = values - values.mean(axis=axes, keepdims=True)
    found: Array = values / np.sqrt(np.square(values).mean(axis=axes, keepdims=True) + epsilon)
    return found


@dataclass(frozen=True, kw_only=True)
class BatchNorm(_Real):
    """(x − mean) / √(variance + epsilon) × scale + bias, each a number for every channel."""

    scale: str = operand()
    bias: str = operand()
    mean: str = operand()
    variance: str = operand()
    epsilon: float = 1e-5
    channel_axis: int = 3

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        self.per_channel(x, self.channel_axis, *parameters)
        return super().infer(x, *parameters)

    def compute(self, result: TensorType, x: Value, *parameters: Value) -> Array:
        scale, bias, mean, variance = (along(each, self.channel_axis, x.array.ndim)
                                       for each in parameters)
        found: Array = (wide(x) - mean) / np.sqrt(variance + self.epsilon) * scale + bias
        return found


@dataclass(frozen=True, kw_only=True)
class InstanceNorm(_Real):
    """Each channel of each image with a mean of 0 and a variance of 1; then times its scale, plus
    its bias."""

    scale: str = operand()
    bias: str = operand()
    epsilon: float = 1e-5
    channel_axis: int = 3

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        self.per_channel(x, self.channel_axis, *parameters)
        return super().infer(x, *parameters)

    def compute(self, result: TensorType, x: Value, scale: Value, bias: Value) -> Array:
        axes = x.array.ndim
        inside = tuple(axis for axis in range(1, axes) if axis != self.channel_axis % axes)
        found: Array = (standardize(wide(x), inside, self.epsilon)
                        * along(scale, self.channel_axis, axes)
                        + along(bias, self.channel_axis, axes))
        return found


@dataclass(frozen=True, kw_only=True)
class LocalResponseNorm(_Real):
    """x / (bias + alpha × s)^beta, where s is the sum of squares of so many channels before, the
    channel itself, and so many after. (ONNX divides its alpha by their number.)"""

    before: int
    after: int
    alpha: float
    beta: float
    bias: float
    channel_axis: int = 3

    def infer(self, x: TensorType, *parameters: TensorType) -> TensorType:
        normalize_axis(self.channel_axis, len(x.shape))
        if min(self.before, self.after) < 0:
            raise GraphError(f"{self.before} channels before and {self.after} after are summed, "
                             f"but must not be negative")
        return super().infer(x)

    def compute(self, result: TensorType, x: Value) -> Array:
        values = np.moveaxis(wide(x), self.channel_axis, -1)
        channels = values.shape[-1]
        ends = np.concatenate([np.zeros((*values.shape[:-1], 1)),
                               np.cumsum(np.square(values), axis=-1)], axis=-1)
        index = np.arange(channels)
        sums = (ends[..., np.minimum(index + self.after + 1, channels)]
                - ends[..., np.maximum(index - self.before, 0)])
        scaled = values / (self.bias + self.alpha * sums) ** self.beta
        return np.moveaxis(scaled, -1, self.channel_axis)
