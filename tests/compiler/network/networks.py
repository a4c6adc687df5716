"""Small networks to compile, and how a compiled one is run step by step."""

from __future__ import annotations

import numpy as np

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import compute_node
from microtron.compiler.graph.operation import Value
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import Softmax
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.network.network import HostStep
from microtron.isa.instructions import Rounding
from microtron.runtime.devices.device import Address, open_device


class Layers:
    """A graph of layers with seeded weights."""

    def __init__(self, shape, channel_axis, seed=0):
        self.builder, self.axis = Builder(), channel_axis
        self.rng = np.random.default_rng(seed)
        self.builder.input("x", TensorType(shape, "int8", Quantization((0.02,), (3,))))

    def conv(self, name, x, outputs, kernel, *, groups=1, zero_point=-5, low=None, most=127,
             **fields):
        channels = self.builder.type_of(x).shape[self.axis]
        shape = (outputs, channels // groups, kernel, kernel)
        weights = self.builder.constant(f"{name}.w", self.rng.integers(
            -most, most + 1, shape).astype(np.int8), Quantization((0.01,)))
        bias = self.builder.constant(f"{name}.b", self.rng.integers(
            -900, 900, outputs).astype(np.int32))
        scales = tuple((self.rng.uniform(0.5, 1.5, outputs) / (
            100 * np.sqrt(np.prod(shape[1:])))).tolist())
        return self.builder.add(name, Conv(
            x=x, weights=weights, bias=bias, channel_axis=self.axis, groups=groups,
            pad=(kernel // 2,) * 4, scales=scales, low=low, **fields), dtype="int8",
            quantization=Quantization((0.05,), (zero_point,)))

    def add(self, name, left, right):
        return self.builder.add(name, Binary(kind=BinaryKind.ADD, left=left, right=right),
                                quantization=Quantization((0.07,), (-2,)))


def classifier(channel_axis):
    """Convolutions of several kinds, pools, a residual, a classifier and a softmax."""
    shape = (1, 3, 12, 10) if channel_axis == 1 else (1, 12, 10, 3)
    layers = Layers(shape, channel_axis)
    builder = layers.builder
    layers.conv("stem", "x", 8, 3, stride=(2, 2), low=-5)
    builder.add("pooled", Pool(x="stem", kind=PoolKind.MAX, kernel=(2, 2),
                               channel_axis=channel_axis))
    layers.conv("depthwise", "pooled", 8, 3, groups=8)
    layers.conv("pointwise", "depthwise", 8, 1, low=-5, high=100)
    layers.add("sum", "pointwise", "pooled")
    layers.conv("grouped", "sum", 12, 3, groups=2)
    layers.conv("last", "sum", 6, 3, stride=(2, 1))
    size = builder.type_of("last").size
    builder.add("flat", Reshape(x="last", shape=(1, size)))
    weights = builder.constant("dense.w", layers.rng.integers(-127, 128, (size, 5)).astype(np.int8),
                               Quantization((0.01,)))
    builder.add("dense", MatMul(left="flat", right=weights, scales=(0.001,),
                                rounding=Rounding.AWAY), dtype="int8",
                quantization=Quantization((0.1,), (4,)))
    builder.add("real", Dequantize(x="dense"))
    builder.add("probabilities", Softmax(x="real"))
    return builder.graph(("probabilities", "grouped"))


def block(channels, size):
    """A residual block."""
    layers = Layers((1, size, size, channels), 3)
    layers.conv("first", "x", channels, 3, low=-5)
    layers.conv("second", "first", channels, 3)
    layers.add("sum", "second", "x")
    return layers.builder.graph(("sum",))


def execute(network, inputs, device):
    """Every tensor that comes out of a step."""
    graph = network.graph
    values = {**inputs, **{name: each.array for name, each in graph.constants.items()}}
    found = {}
    for step in network.steps:
        if isinstance(step, HostStep):
            for name in step.nodes:
                node = graph.nodes[name]
                found[name] = values[name] = compute_node(node, [
                    Value(graph.type_of(each), values[each]) for each in node.operation.operands()])
            continue
        machine = open_device(device, network.config)
        machine.load(step.program)
        for each in step.inputs:
            tensor = step.program.tensor(each.name)
            machine.write(Address(tensor.segment, tensor.offset),
                          each.layout.pack(values[each.tensor]).tobytes())
        machine.run()
        for each in step.outputs:
            tensor = step.program.tensor(each.name)
            data = machine.read(Address(tensor.segment, tensor.offset), tensor.size)
            plain = each.layout.unpack(np.frombuffer(data.tobytes(), np.int8))
            found[each.tensor] = values[each.tensor] = plain.reshape(
                graph.type_of(each.tensor).shape)
    return found
