"""Conversions at the edges of a model do not count against the accelerator."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize, Quantize
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.placement import conversions_at_edges
from microtron.isa.config import tiny
from microtron.isa.instructions import Rounding

STEP = Quantization((0.5,), (1,))


def edged(*, inside=False, computes=False):
    """real → quantize → dense → dequantize → real. `inside` has a second such pair in the middle,
    `computes` a function at the end."""
    rng = np.random.default_rng(0)
    builder = Builder("edged")
    builder.input("x", TensorType((2, 8), "float32"))
    flat = builder.add("flat", Reshape(x="x", shape=(1, 16)))
    last = builder.add("q", Quantize(x=flat), dtype="int8", quantization=STEP)
    for number, size in enumerate((16, 4) if inside else (16,)):
        weights = builder.constant(f"w{number}", rng.integers(-9, 9, (size, 4)).astype(np.int8),
                                   Quantization((0.1,)))
        last = builder.add(f"dense{number}", MatMul(left=last, right=weights, scales=(0.05,),
                                                    rounding=Rounding.TWICE),
                           dtype="int8", quantization=STEP, origin=f"DENSE {number}")
        if inside and number == 0:
            real = builder.add("inner", Dequantize(x=last), origin="INNER")
            last = builder.add("again", Quantize(x=real), dtype="int8", quantization=STEP)
    last = builder.add("r", Dequantize(x=last))
    if computes:
        last = builder.add("e", Unary(kind=UnaryKind.EXP, x=last), origin="EXP")
    return builder.graph((last,))


def test_what_only_converts_inputs_and_outputs_is_ignored():
    graph = edged()
    assert conversions_at_edges(graph) == {"flat", "q", "r"}
    network = compile_network(graph, tiny, require_accelerator=True)
    assert len(network.programs) == 1


def test_a_conversion_inside_or_before_something_else_counts():
    assert conversions_at_edges(edged(inside=True)) == {"flat", "q", "r"}
    with pytest.raises(CompileError, match=r"does not take 2 of 7 nodes: 2 for: real arithmetic "
                                           r"runs on the CPU, as INNER \(dequantize\)"):
        compile_network(edged(inside=True), tiny, require_accelerator=True)
    assert conversions_at_edges(edged(computes=True)) == {"flat", "q"}
    with pytest.raises(CompileError, match=r"does not take 2 of 5 nodes: .*as EXP \(unary\)"):
        compile_network(edged(computes=True), tiny, require_accelerator=True)
