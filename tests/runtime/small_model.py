"""A network small enough for every device, with all that a model has: two programs with the CPU
between them, a view, and two outputs."""

from __future__ import annotations

import numpy as np

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize, Lookup
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.instructions import Rounding

IMAGE = Quantization((0.5,), (3,))
MIDDLE = Quantization((0.25,), (-5,))


def small_graph() -> Graph:
    """conv → + → table (CPU) → dense → real numbers (CPU)."""
    rng = np.random.default_rng(1)
    builder = Builder("small")
    builder.input("image", TensorType((1, 3, 3, 2), "int8", IMAGE))
    kernel = builder.constant("kernel", rng.integers(-9, 9, (4, 2, 2, 2)).astype(np.int8),
                              Quantization((0.1,)))
    builder.add("conv", Conv(x="image", weights=kernel, channel_axis=3, scales=(0.2,),
                             rounding=Rounding.TWICE), dtype="int8", quantization=MIDDLE,
                origin="CONV 0")
    builder.add("sum", Binary(kind=BinaryKind.ADD, left="conv", right="conv",
                              rounding=Rounding.TWICE), quantization=IMAGE, origin="ADD 1")
    table = builder.constant("table", rng.integers(-128, 127, 256).astype(np.int8), MIDDLE)
    builder.add("table_of", Lookup(x="sum", table=table), quantization=MIDDLE, origin="TABLE 2")
    builder.add("flat", Reshape(x="table_of", shape=(1, 16)), quantization=MIDDLE)
    matrix = builder.constant("matrix", rng.integers(-9, 9, (16, 5)).astype(np.int8),
                              Quantization((0.1,)))
    builder.add("dense", MatMul(left="flat", right=matrix, scales=(0.05,),
                                rounding=Rounding.TWICE), dtype="int8", quantization=IMAGE,
                origin="DENSE 3")
    builder.add("real", Dequantize(x="dense"), origin="REAL 4")
    return builder.graph(("real", "conv"))


def image(seed: int = 0):
    return np.random.default_rng(seed).integers(-128, 128, (1, 3, 3, 2)).astype(np.int8)
