"""Writes quantized ONNX models, calibrated while they are written.

    writer = Writer("digits")
    x = writer.input("image", (1, 1, 8, 8), sample)
    x = writer.conv(x, weights, bias, pad=1, activation="Relu")
    writer.output("scores", writer.dense(writer.global_average(x), matrix, offsets))
    writer.save(path)

Every tensor has a sample: the real numbers that it takes for some data. It is computed along with
the model, and the scale of the tensor follows from its least and its largest number. A sample need
not have the size of the model: a network of convolutions is calibrated on smaller images.

The form is QDQ, as ONNX Runtime's quantizer writes it: each operator between DequantizeLinear and
QuantizeLinear; activations int8 with a zero point, weights int8 with a scale for each channel, the
bias of a layer int32 with the product of both scales.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from microtron.base.arrays import Array

OPSET = 20                      # the first with Gelu
IR_VERSION = 10
LOW, HIGH = -128, 127
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Clip": lambda x: np.clip(x, 0, 6),         # ReLU6
}


@dataclass(frozen=True)
class Scale:
    """real = scale × (stored − zero)."""

    scale: np.float32
    zero: int

    @staticmethod
    def of(sample: Array) -> Scale:
        """The scale for a range of numbers, which always has 0 in it."""
        low, high = min(0.0, float(sample.min())), max(0.0, float(sample.max()))
        scale = np.float32(max(high - low, 1e-6) / (HIGH - LOW))
        return Scale(scale, int(np.clip(round(LOW - low / float(scale)), LOW, HIGH)))

    def quantize(self, values: Array) -> Array:
        found: Array = np.clip(np.rint(values / self.scale) + self.zero, LOW, HIGH)
        return found.astype(np.int8)

    def round_trip(self, values: Array) -> Array:
        """Real numbers after they were stored."""
        found: Array = (self.quantize(values).astype(np.float32) - self.zero) * self.scale
        return found


@dataclass(frozen=True)
class Tensor:
    """A tensor of real numbers in the model: its name, its sample, and how it was quantized."""

    name: str
    sample: Array
    scale: Scale


@dataclass
class Writer:
    """A model while it is being written."""

    name: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def input(self, name: str, shape: tuple[int, ...], sample: Array) -> Tensor:
        """An input of real numbers; the model quantizes it."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self._quantize(name, sample.astype(np.float32))

    def output(self, name: str, x: Tensor, shape: tuple[int, ...]) -> None:
        """Give a tensor as a result, in real numbers."""
        self.nodes[-1].output[0] = name
        assert self.nodes[-1].op_type == "DequantizeLinear", "the last operator makes the output"
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def save(self, path: str | Path) -> None:
        """Check the model and write it to a file."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=IR_VERSION, producer_name="microtron")
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, str(path))

    # operators with weights

    def conv(self, x: Tensor, weights: Array, bias: Array, *, stride: int = 1, pad: int = 0,
             groups: int = 1, activation: str = "") -> Tensor:
        """A convolution; weights are (output, input of its group, y, x)."""
        names, real = self._weights(x, weights, bias, axis=0)
        sample = convolve(x.sample, real, stride, pad, groups) + bias[:, None, None]
        return self._operator("Conv", [x.name, *names], sample, activation,
                              kernel_shape=weights.shape[2:], strides=[stride] * 2,
                              pads=[pad] * 4, group=groups)

    def dense(self, x: Tensor, weights: Array, bias: Array, activation: str = "") -> Tensor:
        """A fully connected layer of rows; weights are (output, input)."""
        names, real = self._weights(x, weights, bias, axis=0)
        return self._operator("Gemm", [x.name, *names], x.sample @ real.T + bias, activation,
                              transB=1)

    def linear(self, x: Tensor, weights: Array, bias: Array) -> Tensor:
        """A fully connected layer of the last axis, as transformers have it: a matrix product and
        a sum, quantized after both. Weights are (input, output)."""
        (matrix, sums), real = self._weights(x, weights, bias, axis=1)
        product = self._node("MatMul", [x.name, matrix])
        return self._operator("Add", [product, sums], x.sample @ real + bias)

    def constant(self, values: Array) -> Tensor:
        """Quantized numbers with one scale: an embedding."""
        scale = Scale.of(values)
        name = self._fresh("constant")
        self._constant(f"{name}.stored", scale.quantize(values))
        return Tensor(self._dequantize(f"{name}.stored", name, scale.scale,
                                       np.int8(scale.zero)), scale.round_trip(values), scale)

    # operators of activations

    def add(self, x: Tensor, y: Tensor, activation: str = "") -> Tensor:
        return self._operator("Add", [x.name, y.name], x.sample + y.sample, activation)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        return self._operator("MatMul", [x.name, y.name], x.sample @ y.sample)

    def rescale(self, x: Tensor, factor: float) -> Tensor:
        """A tensor times a number, which is not quantized."""
        name = self._constant(self._fresh("factor"), np.float32(factor))
        return self._operator("Mul", [x.name, name], x.sample * np.float32(factor))

    def softmax(self, x: Tensor) -> Tensor:
        powers = np.exp(x.sample - x.sample.max(axis=-1, keepdims=True))
        return self._operator("Softmax", [x.name], powers / powers.sum(axis=-1, keepdims=True),
                              axis=-1)

    def gelu(self, x: Tensor) -> Tensor:
        """The sample has the usual approximation; a range needs no more."""
        inner = sqrt(2 / pi) * (x.sample + 0.044715 * x.sample ** 3)
        return self._operator("Gelu", [x.name], x.sample / 2 * (1 + np.tanh(inner)))

    def layer_norm(self, x: Tensor, scale: Array, bias: Array) -> Tensor:
        """Parameters stay real: they are few."""
        names = [self._constant(self._fresh(word), each.astype(np.float32))
                 for word, each in (("norm_scale", scale), ("norm_bias", bias))]
        centred = x.sample - x.sample.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + 1e-5)
        return self._operator("LayerNormalization", [x.name, *names],
                              centred / deviation * scale + bias, axis=-1, epsilon=1e-5)

    def max_pool(self, x: Tensor, kernel: int, stride: int, pad: int) -> Tensor:
        padded = np.pad(x.sample, ((0, 0), (0, 0), (pad, pad), (pad, pad)),
                        constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        sample = windows[:, :, ::stride, ::stride].max(axis=(-2, -1))
        return self._data_movement("MaxPool", x, sample, kernel_shape=[kernel] * 2,
                                   strides=[stride] * 2, pads=[pad] * 4)

    def global_average(self, x: Tensor) -> Tensor:
        """Of each channel; the result has no axes for rows and columns."""
        mean = self._operator("GlobalAveragePool", [x.name],
                              x.sample.mean(axis=(2, 3), keepdims=True))
        return self._data_movement("Flatten", mean, mean.sample[:, :, 0, 0], axis=1)

    def reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        name = self._constant(self._fresh("shape"), np.array(shape, np.int64))
        return self._data_movement("Reshape", x, x.sample.reshape(shape), name)

    def transpose(self, x: Tensor, *order: int) -> Tensor:
        return self._data_movement("Transpose", x, x.sample.transpose(order), perm=order)

    def first(self, x: Tensor) -> Tensor:
        """The first index of the second axis: the token that stands for all."""
        index = self._constant(self._fresh("index"), np.array(0, np.int64))
        return self._data_movement("Gather", x, x.sample[:, 0], index, axis=1)

    def concat(self, x: Tensor, y: Tensor, axis: int) -> Tensor:
        """Tensors one after the other; the second is a constant or has any scale."""
        sample = np.concatenate([x.sample, y.sample], axis=axis)
        return self._operator("Concat", [x.name, y.name], sample, axis=axis)

    # what they are made of

    def _operator(self, kind: str, operands: list[str], sample: Array, activation: str = "",
                  **attributes: Any) -> Tensor:
        """An operator between real numbers, quantized by its sample."""
        name = self._node(kind, operands, **attributes)
        sample = ACTIVATIONS[activation](sample)
        if activation == "Clip":
            bounds = [self._constant(self._fresh("bound"), np.float32(each)) for each in (0, 6)]
            name = self._node("Clip", [name, *bounds])
        elif activation:
            name = self._node(activation, [name])
        return self._quantize(name, sample)

    def _data_movement(self, kind: str, x: Tensor, sample: Array, *more: str,
                       **attributes: Any) -> Tensor:
        """An operator whose results are some of the numbers of its operand: the scale stays."""
        return self._quantize(self._node(kind, [x.name, *more], **attributes), sample, x.scale)

    def _quantize(self, name: str, sample: Array, scale: Scale | None = None) -> Tensor:
        scale = scale or Scale.of(sample)
        parameters = [self._constant(f"{name}.scale", scale.scale),
                      self._constant(f"{name}.zero", np.int8(scale.zero))]
        stored = self._node("QuantizeLinear", [name, *parameters])
        real = self._node("DequantizeLinear", [stored, *parameters])
        return Tensor(real, scale.round_trip(sample), scale)

    def _weights(self, x: Tensor, weights: Array, bias: Array,
                 axis: int) -> tuple[tuple[str, str], Array]:
        """Weights and a bias with a scale for each channel, and the real numbers that the weights
        then are."""
        others = tuple(each for each in range(weights.ndim) if each != axis)
        scales = (np.maximum(np.abs(weights).max(axis=others), 1e-6) / HIGH).astype(np.float32)
        shaped = scales.reshape([-1 if each == axis else 1 for each in range(weights.ndim)])
        stored = np.clip(np.rint(weights / shaped), -HIGH, HIGH).astype(np.int8)
        name = self._fresh("weights")
        self._constant(f"{name}.stored", stored)
        matrix = self._dequantize(f"{name}.stored", name, scales, np.zeros(len(scales), np.int8),
                                  axis)
        units = (x.scale.scale * scales).astype(np.float32)
        self._constant(f"{name}.bias.stored", np.rint(bias / units).astype(np.int32))
        sums = self._dequantize(f"{name}.bias.stored", f"{name}.bias", units,
                                np.zeros(len(units), np.int32), 0)
        return (matrix, sums), stored.astype(np.float32) * shaped

    def _dequantize(self, stored: str, name: str, scale: Array | np.generic,
                    zero: Array | np.generic, axis: int | None = None) -> str:
        parameters = [self._constant(f"{name}.scale", scale), self._constant(f"{name}.zero", zero)]
        attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
        self.nodes.append(helper.make_node("DequantizeLinear", [stored, *parameters], [name],
                                           name=f"{name}.dequantize", **attributes))
        return name

    def _node(self, kind: str, operands: list[str], **attributes: Any) -> str:
        name = self._fresh(kind)
        self.nodes.append(helper.make_node(kind, operands, [name], name=f"{name}.node",
                                           **attributes))
        return name

    def _constant(self, name: str, values: Array | np.generic) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _fresh(self, word: str) -> str:
        """A name for the next of its kind."""
        self.counts[word] += 1
        return f"{word}_{self.counts[word]}"


def convolve(x: Array, weights: Array, stride: int, pad: int, groups: int) -> Array:
    """A convolution of images (n, channel, y, x), tap by tap."""
    outputs, depth, *kernel = weights.shape
    images = np.pad(x.transpose(0, 2, 3, 1), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    sides = [(size - taps) // stride + 1 for size, taps in zip(images.shape[1:3], kernel,
                                                              strict=True)]
    grouped = weights.reshape(groups, outputs // groups, depth, *kernel)
    by_tap = np.ascontiguousarray(grouped.transpose(3, 4, 0, 2, 1))
    total = np.zeros((len(x), *sides, groups, outputs // groups), np.float32)
    for i, j in np.ndindex(*kernel):
        here = images[:, i:, j:][:, ::stride, ::stride][:, :sides[0], :sides[1]]
        here = here.reshape(*here.shape[:3], groups, 1, depth)
        factors = by_tap[i, j]
        total += here[..., 0, :] * factors[:, 0] if depth == 1 else (
            here[..., 0, :] @ factors[0] if groups == 1 else (here @ factors)[..., 0, :])
    return total.reshape(*total.shape[:3], outputs).transpose(0, 3, 1, 2)
