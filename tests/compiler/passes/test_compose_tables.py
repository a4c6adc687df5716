"""Functions of one tensor become one table; what is none, or needs none, stays."""

from __future__ import annotations

import numpy as np

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Clamp, Lookup
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.compose_tables import FixedPointPrelu, compose_tables
from microtron.compiler.passes.remove_dead import remove_dead

from .checks import changed, kinds

KNOWN, SHAPE = Quantization((0.03,), (-7,)), (1, 4, 5, 3)


def start():
    builder = Builder()
    for name in ("x", "z"):
        builder.input(name, TensorType(SHAPE, "int8", KNOWN))
    return builder


def table(builder, name, x, seed=0):
    values = np.random.default_rng(seed).integers(-128, 128, 256).astype(np.int8)
    return builder.add(name, Lookup(x=x, table=builder.constant(f"{name}.t", values, KNOWN)))


def product(builder, name, left, right):
    return builder.add(name, Binary(kind=BinaryKind.MUL, left=left, right=right, scales=(0.02,)),
                       quantization=KNOWN)


def compose(builder, *outputs):
    return kinds(remove_dead(changed(compose_tables, builder.graph(outputs))))


def test_a_tensor_times_a_function_of_it_is_a_table():
    builder = start()
    product(builder, "y", "x", table(builder, "s", "x"))
    assert compose(builder, "y") == ["Lookup"]


def test_a_table_of_a_bounded_table_is_a_table_of_the_tensor():
    builder = start()
    table(builder, "a", "x")
    builder.add("b", Clamp(x="a", low=-50, high=60))
    table(builder, "y", "b", seed=1)
    assert compose(builder, "y") == ["Lookup"]
    assert compose(builder, "y", "a") == ["Lookup", "Lookup"]


def test_functions_of_two_tensors_stay():
    builder = start()
    product(builder, "y", "z", table(builder, "s", "x"))
    assert compose(builder, "y") == ["Lookup", "Binary"]


def test_what_has_no_table_in_it_stays():
    builder = start()
    product(builder, "y", "x", "x")
    assert compose(builder, "y") == ["Binary"]
    table(builder, "after", "y")
    assert compose(builder, "after") == ["Binary", "Lookup"]


def test_a_prelu_of_one_slope_is_a_table_and_one_of_several_is_not():
    for count, kind in ((1, "Lookup"), (3, "FixedPointPrelu")):
        builder = start()
        slopes = builder.constant("slopes", np.arange(40, 40 + count).astype(np.int8), KNOWN)
        builder.add("y", FixedPointPrelu(x="x", slopes=slopes), quantization=KNOWN)
        assert compose(builder, "y") == [kind]
