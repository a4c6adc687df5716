"""A graph with most of what the CPU computes, all of whose results are outputs."""

from __future__ import annotations

import numpy as np

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.operations.data_movement.indexing import Gather
from microtron.compiler.graph.operations.data_movement.shape import Concat, Pad, Transpose
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import LayerNorm, Softmax
from microtron.compiler.graph.operations.layers.reduction import Arg, Reduce, ReduceKind
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.logic import Compare, CompareKind, Where
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize, Quantize
from microtron.compiler.graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.instructions import Rounding

SHAPE = (1, 5, 7, 6)
COARSE, FINE = Quantization((0.05,), (3,)), Quantization((0.02,), (-7,))


def many_nodes() -> tuple[Graph, dict[str, np.ndarray]]:
    """The graph, and inputs for it."""
    rng = np.random.default_rng(7)
    builder = Builder("many nodes")
    x = builder.input("x", TensorType(SHAPE, "float32"))
    some = builder.input("some", TensorType((4,), "int32"))
    for kind in UnaryKind:
        builder.add(kind.value, Unary(kind=kind, x=x, alpha=0.3, beta=0.6))
    scaled = builder.add("scaled", Binary(kind=BinaryKind.MUL, left=x, right=builder.constant(
        "row", rng.normal(size=6).astype("float32"))))
    for kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.DIV, BinaryKind.MAX, BinaryKind.MIN):
        builder.add(f"two {kind.value}", Binary(kind=kind, left=x, right=scaled))
    for kind in (ReduceKind.SUM, ReduceKind.MEAN, ReduceKind.MAX):
        builder.add(f"all {kind.value}", Reduce(kind=kind, x=x, axes=(2, 3)))
    builder.add("place", Arg(kind=ReduceKind.MAX, x=x, axis=3))
    builder.add("shares", Softmax(x=x, axis=3))
    ones = builder.constant("ones", rng.normal(size=6).astype("float32"))
    builder.add("normal", LayerNorm(x=x, scale=ones, bias=ones, epsilon=1e-5))
    turned = builder.add("turned", Transpose(x=x, order=(0, 3, 1, 2)))
    builder.add("wide", Pad(x=turned, before=(0, 0, 1, 2), after=(0, 1, 0, 1), value=2))
    builder.add("joined", Concat(parts=(x, scaled, x), axis=2))
    builder.add("picked", Gather(x=x, indices=some, axis=1))
    larger = builder.add("larger", Compare(kind=CompareKind.LESS, left=scaled, right=x))
    builder.add("chosen", Where(condition=larger, left=x, right=scaled))
    builder.add("whole", Cast(x=x, dtype="int16"))
    _products(builder, x, rng)
    graph = builder.graph(tuple(builder.nodes))
    return graph, {"x": (rng.normal(size=SHAPE) * 2).astype("float32"),
                   "some": np.array([3, -1, 0, 4], "int32")}


def _products(builder: Builder, x: str, rng: np.random.Generator) -> None:
    """Sums of products of real numbers and of integers."""
    weights = builder.constant("weights", rng.normal(size=(8, 6, 3, 3)).astype("float32"))
    builder.add("convolved", Conv(x=x, weights=weights, pad=(1, 1, 1, 1)))
    matrix = builder.constant("matrix", rng.normal(size=(6, 11)).astype("float32"))
    builder.add("product", MatMul(left=x, right=matrix))
    small = builder.add("small", Quantize(x=x), dtype="int8", quantization=COARSE)
    builder.add("again", Dequantize(x=small))
    builder.add("most", Pool(x=small, kind=PoolKind.MAX, kernel=(2, 2)), dtype="int8",
                quantization=COARSE)
    builder.add("mean", Pool(x=small, kind=PoolKind.AVERAGE, kernel=(3, 3), raw=True,
                             pad=(1, 1, 1, 1)), dtype="int8", quantization=COARSE)
    integers = builder.constant("integers", rng.integers(-128, 128, (8, 6, 3, 3)).astype("int8"),
                                Quantization((0.01,)))
    for rounding in (Rounding.TWICE, Rounding.EVEN):
        builder.add(f"sums {rounding.name}",
                    Conv(x=small, weights=integers, scales=(0.0031,) * 8, rounding=rounding),
                    dtype="int8", quantization=FINE)
