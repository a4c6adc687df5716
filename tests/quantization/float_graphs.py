"""Random small float networks, and samples for them."""

from __future__ import annotations

import numpy as np

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.operations.data_movement.shape import Concat, Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import BatchNorm, Softmax
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.logic import Compare, CompareKind, Where
from microtron.compiler.graph.operations.pointwise.quantize import Clamp
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.types import TensorType

CHANNELS = (4, 6, 8)


def small_network() -> Graph:
    """A convolution and a fully connected layer: quick to compile."""
    rng = np.random.default_rng(0)
    made = Builder("small")
    x = made.input("x", TensorType((1, 4, 4, 4), "float32"))
    weights = made.constant("w", rng.normal(0, 0.5, (4, 4, 1, 1)).astype(np.float32))
    x = made.add("conv", Conv(x=x, weights=weights, channel_axis=1, low=0))
    x = made.add("flat", Reshape(x=x, shape=(1, 64)))
    matrix = made.constant("matrix", rng.normal(0, 0.2, (64, 5)).astype(np.float32))
    x = made.add("scores", MatMul(left=x, right=matrix))
    return made.graph((x, made.add("chances", Softmax(x=x))))


def random_network(seed: int) -> Graph:
    """Convolutions with whatever follows them in networks, then a fully connected layer."""
    rng = np.random.default_rng(seed)
    last = seed % 2 == 1                        # channels last, as TFLite has them
    axis = 3 if last else 1
    made = Builder(f"random_{seed}")
    side, channels = int(rng.integers(5, 9)), int(rng.choice(CHANNELS))
    shape = (1, side, side, channels) if last else (1, channels, side, side)
    x = made.input("x", TensorType(shape, "float32"))
    for number in range(int(rng.integers(2, 5))):
        x, channels = _block(made, rng, x, channels, axis, number)
    x = made.add("pool", Pool(x=x, kind=PoolKind.AVERAGE, kernel=(side, side), channel_axis=axis))
    x = made.add("flat", Reshape(x=x, shape=(1, channels)))
    matrix = made.constant("matrix", rng.normal(0, 1, (channels, 5)).astype(np.float32))
    bias = made.constant("offset", rng.normal(0, 1, 5).astype(np.float32))
    x = made.add("scores", MatMul(left=x, right=matrix, bias=bias))
    return made.graph((made.add("chances", Softmax(x=x)), x))


def _block(made: Builder, rng: np.random.Generator, x: str, channels: int, axis: int,
           number: int) -> tuple[str, int]:
    kind = rng.choice(["plain", "residual", "depthwise", "concat", "swish", "norm", "prelu"])
    outputs = int(rng.choice(CHANNELS)) if kind in ("plain", "norm", "swish", "prelu") else channels
    groups = channels if kind == "depthwise" else 1
    weights = made.constant(f"w{number}", rng.normal(
        0, 0.4, (outputs, channels // groups, 3, 3)).astype(np.float32))
    bias = made.constant(f"b{number}", rng.normal(0, 0.3, outputs).astype(np.float32))
    y = made.add(f"conv{number}", Conv(x=x, weights=weights, bias=bias, pad=(1, 1, 1, 1),
                                       groups=groups, channel_axis=axis))
    if kind == "norm":
        names = [made.constant(f"{word}{number}", rng.uniform(0.5, 1.5, outputs).astype(
            np.float32)) for word in ("scale", "shift", "mean", "variance")]
        y = made.add(f"norm{number}", BatchNorm(
            x=y, scale=names[0], bias=names[1], mean=names[2], variance=names[3],
            channel_axis=axis))
    if kind == "residual":
        y = made.add(f"sum{number}", Binary(kind=BinaryKind.ADD, left=x, right=y))
    if kind == "swish":
        gate = made.add(f"gate{number}", Unary(kind=UnaryKind.SIGMOID, x=y))
        return made.add(f"swish{number}", Binary(kind=BinaryKind.MUL, left=y, right=gate)), outputs
    if kind == "prelu":
        return add_prelu(made, rng, y, axis, f"prelu{number}"), outputs
    y = made.add(f"relu{number}", Clamp(x=y, low=0))
    if kind == "concat":
        return made.add(f"both{number}", Concat(parts=(x, y), axis=axis)), 2 * channels
    return y, outputs


def add_prelu(made: Builder, rng: np.random.Generator, x: str, axis: int, name: str) -> str:
    """A slope for each channel, of which some are below 0 or above 1."""
    axes = len(made.type_of(x).shape)
    shape = [1] * axes
    shape[axis] = made.type_of(x).shape[axis]
    slopes = made.constant(f"{name}.slopes", rng.uniform(-0.5, 1.5, shape).astype(np.float32))
    zero = made.constant(f"{name}.zero", np.zeros((1,) * axes, np.float32))
    below = made.add(f"{name}.negative", Compare(kind=CompareKind.LESS, left=x, right=zero))
    product = made.add(f"{name}.below", Binary(kind=BinaryKind.MUL, left=x, right=slopes))
    return made.add(name, Where(condition=below, left=product, right=x))


def samples_for(graph: Graph, count: int = 6, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [{name: rng.normal(0, 1, type_.shape).astype(np.float32)
             for name, type_ in graph.inputs.items()} for _ in range(count)]
