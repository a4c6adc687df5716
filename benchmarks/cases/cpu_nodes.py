"""Nodes by themselves, in sizes that no network of the other cases has: what the benchmark of the
CPU measures besides matrix products and the nodes of networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from microtron.base.arrays import Array

Arrays = Mapping[str, Array]
Node = tuple[str, str, NodeProto, Arrays, Arrays]       # name, kind, node, inputs, constants


def nodes() -> Iterator[Node]:
    yield from _transposed_convolutions()
    yield from _more_convolutions()
    yield from _byte_products()
    yield from _quantized()
    yield from _selections()
    yield from _pools()
    yield from _rows()
    yield from _elements()
    yield from _moves()


def _floats(*shape: int) -> Array:
    return np.random.default_rng(prod(shape)).normal(size=shape).astype(np.float32)


def _bytes(dtype: str, *shape: int) -> Array:
    """Full-range activations; weights of seven bits, since ONNX Runtime saturates sums of two
    products to 16 bits on x86-64 without VNNI, and is wrong with larger ones."""
    low, high = (0, 255) if dtype == "uint8" else (-64, 63)
    return np.random.default_rng(prod(shape)).integers(low, high, shape, dtype, endpoint=True)


def _sized(kind: str, *shapes: Sequence[int]) -> str:
    return f"{kind} {', '.join('×'.join(map(str, each)) for each in shapes)}"


def _transposed_convolutions() -> Iterator[Node]:
    for side, channels, outputs, kernel, stride in (
            (14, 256, 128, 4, 2), (28, 128, 64, 2, 2), (32, 32, 16, 3, 2), (16, 64, 64, 3, 1)):
        x, w = _floats(1, channels, side, side), _floats(channels, outputs, kernel, kernel)
        yield (f"transposed conv {side}²×{channels}→{outputs}, {kernel}²/{stride}",
               "transposed convolution", helper.make_node(
                   "ConvTranspose", ["x", "w"], ["y"], strides=[stride] * 2,
                   pads=[(kernel - stride) // 2] * 4), {"x": x}, {"w": w})


def _more_convolutions() -> Iterator[Node]:
    for side, channels, outputs, kernel, stride, groups in (
            (35, 48, 64, 5, 1, 1), (17, 192, 192, 3, 1, 1), (65, 40, 72, 3, 2, 1),
            (30, 200, 80, 1, 1, 1), (14, 40, 40, 5, 1, 40), (33, 64, 64, 3, 1, 8)):
        size = f"{side}²×{channels}→{outputs}, {kernel}²" + (f"/{stride}" if stride > 1 else "") + (
            f", {groups} groups" if groups > 1 else "")
        settings: dict[str, Any] = {"pads": [kernel // 2] * 4, "strides": [stride] * 2,
                                    "group": groups}
        depthwise = "depthwise " if groups == channels else ""
        filters = (outputs, channels // groups, kernel, kernel)
        yield (f"conv {size}", f"float32 {depthwise}convolution",
               helper.make_node("Conv", ["x", "w"], ["y"], **settings),
               {"x": _floats(1, channels, side, side)}, {"w": _floats(*filters)})
        yield (f"qlinear conv {size}", f"int8 {depthwise}convolution", helper.make_node(
            "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], **settings),
            {"x": _bytes("uint8", 1, channels, side, side)},
            {"w": _bytes("int8", *filters), **_scales()})


def _scales(output: float = 4.0) -> Arrays:
    scales = {"xs": 0.05, "ws": 0.02, "ys": output}
    zeros = {"xz": np.uint8(120), "wz": np.int8(0), "yz": np.uint8(7)}
    return {**{name: np.array(each, np.float32) for name, each in scales.items()},
            **{name: np.array(each) for name, each in zeros.items()}}


def _byte_products() -> Iterator[Node]:
    for rows, depth, columns in ((100, 300, 200), (49, 512, 512), (384, 384, 1536)):
        x, w = _bytes("uint8", rows, depth), _bytes("int8", depth, columns)
        yield (_sized("integer matmul", (rows, depth), (depth, columns)), "int8 matrix product",
               helper.make_node("MatMulInteger", ["x", "w", "xz"], ["y"]),
               {"x": x}, {"w": w, "xz": np.array(120, np.uint8)})


def _quantized() -> Iterator[Node]:
    constants: Arrays = {"s": np.array(0.03, np.float32), "z": np.array(120, np.uint8)}
    for shape in ((1, 64, 56, 56), (197, 193), (3, 197, 197), (1, 1000)):
        yield (_sized("quantize", shape), "quantize", helper.make_node(
            "QuantizeLinear", ["x", "s", "z"], ["y"]), {"x": _floats(*shape)}, constants)
        yield (_sized("dequantize", shape), "quantize", helper.make_node(
            "DequantizeLinear", ["x", "s", "z"], ["y"]), {"x": _bytes("uint8", *shape)}, constants)
    for shape in ((128, 768), (1, 32, 55, 55)):
        yield (_sized("dynamic quantize", shape), "quantize", helper.make_node(
            "DynamicQuantizeLinear", ["x"], ["y", "s", "z"]), {"x": _floats(*shape)}, {})


def _selections() -> Iterator[Node]:
    for shape, count in (((1, 1000), 5), ((1, 8400), 300), ((64, 1000), 10), ((1, 30522), 50)):
        yield (f"{_sized('top', shape)}, {count}", "top-k", helper.make_node(
            "TopK", ["x", "k"], ["y", "places"], axis=-1), {"x": _floats(*shape)},
            {"k": np.array([count], np.int64)})
    yield (_sized("ArgMax", (21, 128, 128)), "reduction", helper.make_node(
        "ArgMax", ["x"], ["y"], axis=0, keepdims=0), {"x": _floats(21, 128, 128)}, {})


def _pools() -> Iterator[Node]:
    for kind, shape, kernel, stride in (
            ("MaxPool", (1, 64, 113, 113), 3, 2), ("MaxPool", (1, 96, 55, 55), 2, 2),
            ("MaxPool", (1, 32, 20, 20), 5, 1), ("AveragePool", (1, 192, 35, 35), 3, 1),
            ("AveragePool", (1, 48, 60, 60), 2, 2)):
        pad = kernel // 2 if stride == 1 else 0
        yield (f"{_sized(kind, shape)}, {kernel}²/{stride}", "pool", helper.make_node(
            kind, ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4),
            {"x": _floats(*shape)}, {})
    yield (_sized("GlobalAveragePool", (1, 320, 9, 9)), "pool", helper.make_node(
        "GlobalAveragePool", ["x"], ["y"]), {"x": _floats(1, 320, 9, 9)}, {})


def _rows() -> Iterator[Node]:
    for shape in ((12, 77, 77), (8, 1000)):
        yield (_sized("Softmax", shape), "reduction", helper.make_node(
            "Softmax", ["x"], ["y"], axis=-1), {"x": _floats(*shape)}, {})
    yield (_sized("LayerNormalization", (77, 513)), "reduction", helper.make_node(
        "LayerNormalization", ["x", "w", "b"], ["y"]), {"x": _floats(77, 513)},
        {"w": _floats(513), "b": _floats(513)})
    for kind, axes in (("ReduceMean", (1,)), ("ReduceSum", (2, 3)), ("ReduceMax", (3,))):
        yield (f"{_sized(kind, (4, 64, 31, 31))} along {axes}", "reduction", helper.make_node(
            kind, ["x", "axes"], ["y"], keepdims=1), {"x": _floats(4, 64, 31, 31)},
            {"axes": np.array(axes, np.int64)})


def _elements() -> Iterator[Node]:
    shape = (1, 40, 57, 57)
    for kind in ("Sigmoid", "Tanh", "HardSwish", "Erf", "Gelu", "Sqrt", "LeakyRelu", "Relu"):
        yield (_sized(kind, shape), "element-wise", helper.make_node(kind, ["x"], ["y"]),
               {"x": np.abs(_floats(*shape))}, {})
    for kind, other in (("Add", shape), ("Mul", (40, 1, 1)), ("Div", shape), ("Max", (57,))):
        yield (_sized(kind, shape, other), "element-wise", helper.make_node(
            kind, ["x", "w"], ["y"]), {"x": _floats(*shape), "w": _floats(*other)}, {})


def _moves() -> Iterator[Node]:
    for shape, order in (((8, 50, 64), (1, 0, 2)), ((1, 57, 61, 32), (0, 3, 1, 2)),
                         ((300, 400), (1, 0))):
        yield (f"{_sized('Transpose', shape)} to {order}", "data movement", helper.make_node(
            "Transpose", ["x"], ["y"], perm=order), {"x": _floats(*shape)}, {})
    yield (_sized("Gather", (5000, 96), (128,)), "data movement", helper.make_node(
        "Gather", ["x", "i"], ["y"], axis=0), {"x": _floats(5000, 96)},
        {"i": np.arange(0, 5000, 40)[:128] * 7 % 5000})
    yield (_sized("Concat", (1, 32, 40, 40), (1, 16, 40, 40)), "data movement", helper.make_node(
        "Concat", ["x", "w"], ["y"], axis=1),
        {"x": _floats(1, 32, 40, 40), "w": _floats(1, 16, 40, 40)}, {})
    for mode in ("nearest", "linear"):
        yield (f"{_sized('Resize', (1, 24, 33, 33))} ×2, {mode}", "data movement",
               helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode,
                                coordinate_transformation_mode="asymmetric",
                                **({"nearest_mode": "floor"} if mode == "nearest" else {})),
               {"x": _floats(1, 24, 33, 33)}, {"scales": np.array([1, 1, 2, 2], np.float32)})
