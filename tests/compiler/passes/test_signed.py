"""Unsigned quantized networks become signed and stay the same to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.indexing import OneHot
from microtron.compiler.graph.operations.data_movement.shape import Pad
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Quantize,
    Reinterpret,
    Rescale,
)
from microtron.compiler.graph.operations.tflite.eight_bit import (
    FixedPointPrelu,
    FixedPointReduce,
    FixedPointSquaredDifference,
)
from microtron.compiler.graph.operations.tflite.fixed_point import FixedPointSoftmax
from microtron.compiler.graph.operations.vision.resize import Resize, ResizeKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.signed import is_unsigned, make_signed
from microtron.isa.instructions import Rounding

from ..graph.random_graphs import networks
from .checks import changed, kinds

RNG = np.random.default_rng(0)
KNOWN = Quantization((0.5,), (130,))


def with_input(known=KNOWN):
    builder = Builder()
    builder.input("x", TensorType((1, 4, 4, 2), "uint8", known))
    return builder


def test_everything_inside_becomes_signed():
    builder = with_input()
    builder.constant("w", RNG.integers(0, 256, (3, 2, 3, 3)).astype(np.uint8),
                     Quantization((0.1, 0.2, 0.3), (120, 128, 140), 0))
    after = Quantization((3.0,), (100,))
    builder.add("p", Pad(x="x", before=(0, 1, 1, 0), after=(0, 1, 1, 0), value=130),
                quantization=KNOWN)
    builder.add("c", Conv(x="p", weights="w", scales=(0.02, 0.03, 0.04), low=100, high=200),
                dtype="uint8", quantization=after)
    builder.add("y", Clamp(x="c", low=110), quantization=after)
    builder.add("real", Dequantize(x="c"))
    found = changed(make_signed, builder.graph(("y", "real")))
    assert kinds(found) == ["Rescale", "Pad", "Conv", "Clamp", "Rescale", "Dequantize"]
    conv = found.nodes["c"]
    assert (conv.operation.low, conv.operation.high, conv.type.dtype) == (-28, 72, "int8")
    assert found.nodes["p"].operation.value == 2
    assert found.type_of(conv.operation.weights).require_quantization().zero_points == (-8, 0, 12)
    assert [name for name, node in found.nodes.items() if is_unsigned(node.type)] == ["y"]


@given(networks(dtypes=("uint8",)))
@settings(max_examples=100)
def test_random_unsigned_networks_stay_the_same(graph):
    found = changed(make_signed, graph)
    left = [name for name, node in found.nodes.items() if is_unsigned(node.type)
            and name not in graph.outputs and not name.endswith(".unsigned")]
    assert all(isinstance(found.nodes[name].operation, Pool) for name in left)


@given(networks(dtypes=("int8",)))
@settings(max_examples=20)
def test_signed_networks_are_left_alone(graph):
    assert str(make_signed(graph)) == str(graph)


RAW = Pool(x="x", kind=PoolKind.AVERAGE, kernel=(2, 2), raw=True, rounding=Rounding.AWAY)


@pytest.mark.parametrize(("pool", "zero", "converts"), [
    (RAW, 130, True),                                               # ties away from another zero
    (replace(RAW, kernel=(3, 3)), 130, False),                      # no ties
    (replace(RAW, rounding=Rounding.EVEN), 130, False),             # 128 is even
    (RAW, 0, False),                                                # ties away from the zero point
    (replace(RAW, raw=False), 130, False),
    (replace(RAW, kernel=(3, 3), pad=(1, 1, 1, 1), count_include_pad=True), 130, True),
    (replace(RAW, pad=(1, 1, 1, 1), count_include_pad=True), 0, False),
    (replace(RAW, kind=PoolKind.MAX, raw=False), 130, False)])
def test_averages_become_signed_where_rounding_allows(pool, zero, converts):
    known = Quantization((0.5,), (zero,))
    builder = with_input(known)
    builder.add("a", pool, quantization=known)
    builder.add("y", Dequantize(x="a"))
    found = changed(make_signed, builder.graph(("y",)))
    assert found.type_of("a").dtype == ("uint8" if converts else "int8")


def test_tables_become_signed_whether_they_say_what_they_stand_for_or_not():
    builder = with_input()
    numbers = RNG.integers(0, 256, 256).astype(np.uint8)
    builder.constant("table", numbers)
    builder.constant("known", numbers, KNOWN)
    builder.add("a", Lookup(x="x", table="table"), quantization=KNOWN)
    builder.add("b", Lookup(x="x", table="known"), quantization=KNOWN)
    builder.add("c", Lookup(x="a", table="table"))                  # plain numbers stay
    builder.add("d", Lookup(x="b", table="known"))
    found = changed(make_signed, builder.graph(("a", "b", "c", "d")))
    assert found.type_of("a.signed").dtype == found.type_of("b.signed").dtype == "int8"


def test_a_table_of_other_numbers_is_read_with_signed_ones():
    builder = with_input()
    builder.constant("table", RNG.normal(0, 1, 256).astype(np.float32))
    builder.add("a", Clamp(x="x", low=100), quantization=KNOWN)
    builder.add("y", Lookup(x="a", table="table"))
    assert kinds(changed(make_signed, builder.graph(("y",)))) == ["Rescale", "Clamp", "Lookup"]


def test_what_looks_at_stored_numbers_gets_them_as_they_were():
    builder = with_input()
    builder.add("a", Clamp(x="x", low=100), quantization=KNOWN)
    builder.add("r", Resize(x="a", shape=(1, 7, 7, 2), kind=ResizeKind.LINEAR), quantization=KNOWN)
    builder.add("n", Resize(x="r", shape=(1, 2, 2, 2)), quantization=KNOWN)
    builder.add("y", Dequantize(x="n"))
    found = changed(make_signed, builder.graph(("y",)))
    assert [found.type_of(name).dtype for name in "arn"] == ["int8", "uint8", "int8"]


def test_tflite_s_own_functions_become_signed():
    builder = Builder()
    builder.input("x", TensorType((3, 10), "uint8", KNOWN))
    builder.constant("slopes", RNG.integers(0, 256, (10,)).astype(np.uint8),
                     Quantization((0.01,), (7,)))
    builder.add("p", FixedPointPrelu(x="x", slopes="slopes"), quantization=KNOWN)
    builder.add("d", FixedPointSquaredDifference(left="x", right="p"),
                quantization=Quantization((20.0,), (9,)))
    builder.add("r", FixedPointReduce(x="d", axes=(0,), multiplier=(1 << 30) // 3, shift=30),
                quantization=Quantization((20.0,), (4,)))
    builder.add("y", FixedPointSoftmax(x="r", beta=0.1), quantization=Quantization((1 / 256,)))
    found = changed(make_signed, builder.graph(("y",)))
    assert {found.type_of(name).dtype for name in ("p", "d", "r", "y.signed")} == {"int8"}


@pytest.mark.parametrize("after", [Quantization((0.25,), (77,)), None])
def test_numbers_that_stand_for_others_are_the_same_numbers(after):
    builder = with_input()
    builder.add("a", Reinterpret(x="x"), quantization=after)
    builder.add("b", Reinterpret(x="a"), quantization=KNOWN)
    builder.add("y", Dequantize(x="b"))
    found = changed(make_signed, builder.graph(("y",)))
    assert found.type_of("a").dtype == ("int8" if after else "uint8")


def test_a_single_number_becomes_signed():
    builder = with_input()
    builder.constant("c", np.array(7, np.uint8), KNOWN)
    builder.add("y", Binary(kind=BinaryKind.ADD, left="x", right="c"), quantization=KNOWN)
    found = changed(make_signed, builder.graph(("y",)))
    assert found.type_of("c.signed") == TensorType((), "int8", Quantization((0.5,), (2,)))


def test_scales_along_an_axis_stay_unsigned():
    builder = Builder()
    builder.input("x", TensorType((2, 3), "float32"))
    builder.constant("i", np.array([0, 2]))
    wide = Quantization((0.1, 0.2, 0.3), (5, 128, 200), 1)
    builder.add("q", Quantize(x="x"), dtype="uint8", quantization=wide)
    builder.add("y", Dequantize(x="q"))
    builder.add("h", OneHot(indices="i", depth=4, on=200), dtype="uint8", quantization=KNOWN)
    builder.add("z", Rescale(x="h"), dtype="uint8", quantization=Quantization((0.25,), (128,)))
    found = changed(make_signed, builder.graph(("y", "z")))
    assert found.type_of("q").dtype == found.type_of("h").dtype == "uint8"
    assert found.type_of("z.signed").dtype == "int8"
