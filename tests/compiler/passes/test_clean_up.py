"""What removing, merging and simplifying passes make of a graph, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.indexing import Tile
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Rescale,
)
from microtron.compiler.graph.operations.pointwise.unary import Cast
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.merge_equal import merge_equal
from microtron.compiler.passes.remove_dead import remove_dead
from microtron.compiler.passes.simplify_shape import simplify_shape

from .checks import changed, kinds

KNOWN = Quantization((0.5,), (3,))
THERE, BACK = (0, 2, 3, 1), (0, 3, 1, 2)


def with_input(shape=(1, 2, 3, 4), dtype="int8"):
    builder = Builder()
    builder.input("x", TensorType(shape, dtype, KNOWN if dtype == "int8" else None))
    return builder


NOTHING = [
    Reshape(x="x", shape=(1, 2, 3, 4)), Transpose(x="x", order=(0, 1, 2, 3)),
    Slice(x="x", starts=(0,) * 4, stops=(1, 2, 3, 4), steps=(1,) * 4),
    Pad(x="x", before=(0,) * 4, after=(0,) * 4), Concat(parts=("x",), axis=1), Clamp(x="x"),
    Clamp(x="x", low=-128, high=500), Rescale(x="x"), Tile(x="x", repeats=(1,) * 4),
    Pool(x="x", kind=PoolKind.MAX, kernel=(1, 1))]
SOMETHING = [
    Transpose(x="x", order=(1, 0, 2, 3)), Clamp(x="x", low=-127), Rescale(x="x", high=5),
    Slice(x="x", starts=(0, 1, 0, 0), stops=(1, -1, 3, 4), steps=(1, -1, 1, 1)),
    Concat(parts=("x", "x"), axis=0), Pool(x="x", kind=PoolKind.MAX, kernel=(1, 1), stride=(2, 2))]


@pytest.mark.parametrize("operation", NOTHING, ids=str)
def test_what_does_nothing_goes(operation):
    builder = with_input()
    builder.add("a", operation, quantization=KNOWN)
    builder.add("y", Clamp(x="a", low=4), quantization=KNOWN)
    builder.add("dead", Clamp(x="a", high=4), quantization=KNOWN)
    builder.constant("unused", np.zeros(3))
    found = changed(remove_dead, builder.graph(("y",)))
    assert (list(found.nodes), list(found.constants)) == (["y"], [])
    assert found.nodes["y"].operation.x == "x"


@pytest.mark.parametrize("operation", SOMETHING, ids=str)
def test_what_does_something_stays(operation):
    builder = with_input()
    builder.add("y", operation, quantization=KNOWN)
    assert len(changed(remove_dead, builder.graph(("y",))).nodes) == 1


@pytest.mark.parametrize("bounds", [{"low": 0.5}, {"high": 0.5}])
def test_a_bound_of_real_numbers_does_something(bounds):
    builder = with_input((40,), "float32")
    builder.add("y", Clamp(x="x", **bounds))
    assert len(changed(remove_dead, builder.graph(("y",))).nodes) == 1


def test_a_cast_to_the_same_type_goes_and_to_another_stays():
    builder = with_input((3,), "int32")
    builder.add("a", Cast(x="x", dtype="int32"))
    builder.add("y", Cast(x="a", dtype="int16"))
    assert list(changed(remove_dead, builder.graph(("y",))).nodes) == ["y"]


def test_outputs_keep_their_names():
    """An output that equals a node takes its place; one that equals an input stays a node."""
    builder = with_input((2, 3))
    builder.add("a", Clamp(x="x", low=0), quantization=KNOWN)
    builder.add("y", Reshape(x="a", shape=(2, 3)), quantization=KNOWN)
    builder.add("z", Reshape(x="y", shape=(2, 3)), quantization=KNOWN)
    builder.add("same", Reshape(x="x", shape=(2, 3)), quantization=KNOWN)
    found = changed(remove_dead, builder.graph(("y", "z", "same")))
    assert [f"{name} {type(node.operation).__name__}" for name, node in found.nodes.items()] == [
        "y Clamp", "z Reshape", "same Reshape"]
    assert found.nodes["z"].operation.x == "y"


def test_equal_nodes_and_equal_constants_are_merged():
    builder = with_input((2, 3))
    table = np.arange(256).astype(np.uint8)
    for name in "ab":
        builder.constant(f"table_{name}", table)
        builder.add(name, Lookup(x="x", table=f"table_{name}"))
    builder.constant("other", table[::-1].copy())
    builder.add("c", Lookup(x="x", table="other"))
    builder.add("d", Binary(kind=BinaryKind.ADD, left="a", right="b"))
    builder.add("y", Binary(kind=BinaryKind.ADD, left="d", right="c"))
    found = remove_dead(changed(merge_equal, builder.graph(("y", "b"))))
    assert (list(found.nodes), list(found.constants)) == (
        ["b", "c", "d", "y"], ["table_a", "other"])
    assert found.nodes["d"].operation.operands() == ("b", "b")


def test_nodes_that_differ_in_their_type_are_not_merged():
    builder = with_input((2, 3))
    for number, scale in enumerate((0.25, 0.125)):
        builder.add(f"r{number}", Rescale(x="x"), dtype="int8", quantization=Quantization((scale,)))
        builder.add(f"y{number}", Dequantize(x=f"r{number}"))
    assert len(changed(merge_equal, builder.graph(("y0", "y1"))).nodes) == 4


def test_reshapes_are_joined():
    builder = with_input()
    builder.add("a", Reshape(x="x", shape=(6, 4)), quantization=KNOWN)
    builder.add("b", Transpose(x="a", order=(1, 0)), quantization=KNOWN)
    builder.add("c", Reshape(x="b", shape=(24,)), quantization=KNOWN)
    builder.add("y", Reshape(x="c", shape=(4, 3, 2)), quantization=KNOWN)
    assert kinds(remove_dead(changed(simplify_shape, builder.graph(("y",))))) == [
        "Reshape", "Transpose", "Reshape"]


def test_a_transpose_of_axes_of_one_index_is_a_reshape():
    builder = with_input((1, 5, 1, 4))
    builder.add("a", Transpose(x="x", order=(2, 1, 0, 3)), quantization=KNOWN)
    builder.add("b", Transpose(x="a", order=(1, 2, 3, 0)), quantization=KNOWN)
    builder.add("y", Reshape(x="b", shape=(20,)), quantization=KNOWN)
    found = remove_dead(changed(simplify_shape, builder.graph(("y",))))
    assert [(type(node.operation), node.operation.x) for node in found.nodes.values()] == [
        (Reshape, "x")]


@pytest.mark.parametrize(("first", "last"), [
    (((0, 0), (9, 8), (2, 1)), ((1, 0), (5, 8), (2, 3))),
    (((8, 1), (-1, 8), (-1, 2)), ((0, 3), (9, -1), (3, -1))),
    (((8, 7), (-1, -1), (-4, -3)), ((2, 0), (-1, 3), (-2, 1)))])
def test_slices_of_slices_are_slices(first, last):
    builder = with_input((9, 8))
    for name, x, (starts, stops, steps) in (("a", "x", first), ("y", "a", last)):
        builder.add(name, Slice(x=x, starts=starts, stops=stops, steps=steps), quantization=KNOWN)
    found = remove_dead(changed(simplify_shape, builder.graph(("y",))))
    assert (kinds(found), found.nodes["y"].operation.x) == (["Slice"], "x")


def test_a_chain_that_is_longer_than_the_stack_vanishes():
    builder = with_input((2, 3))
    last = "x"
    for number in range(2000):
        last = builder.add(f"n{number}", Reshape(x=last, shape=(2, 3)), quantization=KNOWN)
    builder.add("y", Clamp(x=last, low=0), quantization=KNOWN)
    graph = builder.graph(("y",))
    assert list(remove_dead(graph).nodes) == list(remove_dead(simplify_shape(graph)).nodes) == ["y"]
    assert len(merge_equal(graph).nodes) == 2001


def moved_and_back(*, between=True, back=BACK, outputs=("y",)):
    builder = with_input()
    builder.constant("table", np.arange(256).astype(np.uint8))
    builder.add("a", Transpose(x="x", order=THERE), quantization=KNOWN)
    last = "a"
    if between:
        builder.add("b", Clamp(x="a", low=0), quantization=KNOWN)
        last = builder.add("c", Lookup(x="b", table="table"))
    builder.add("y", Transpose(x=last, order=back), quantization=None if between else KNOWN)
    return builder.graph(outputs)


@pytest.mark.parametrize("between", [True, False])
def test_transposes_that_undo_each_other_vanish(between):
    found = remove_dead(changed(simplify_shape, moved_and_back(between=between)))
    assert kinds(found) == (["Clamp", "Lookup"] if between else ["Transpose"])
    if not between:                     # an output that equals an input
        assert found.nodes["y"].operation.order == (0, 1, 2, 3)


def test_transposes_that_do_not_are_joined():
    found = remove_dead(changed(simplify_shape, moved_and_back(back=(1, 2, 3, 0))))
    assert kinds(found) == ["Clamp", "Lookup", "Transpose"]
    assert found.nodes["y"].operation.order == (2, 3, 1, 0)


@pytest.mark.parametrize("also", ["a", "b", "c"])
def test_a_transpose_stays_where_others_read_what_it_moves(also):
    found = remove_dead(changed(simplify_shape, moved_and_back(outputs=("y", also))))
    assert kinds(found) == ["Transpose", "Clamp", "Lookup", "Transpose"]


@pytest.mark.parametrize("twice", [True, False])
def test_transposes_of_both_sides_of_a_sum_go_behind_it(twice):
    builder = with_input()
    builder.add("a", Transpose(x="x", order=THERE), quantization=KNOWN)
    builder.add("e", Clamp(x="x", low=9), quantization=KNOWN)
    builder.add("b", Transpose(x="e", order=THERE), quantization=KNOWN)
    builder.add("s", Binary(kind=BinaryKind.ADD, left="a", right="a" if twice else "b"),
                quantization=KNOWN)
    builder.add("y", Transpose(x="s", order=BACK), quantization=KNOWN)
    found = remove_dead(changed(simplify_shape, builder.graph(("y",))))
    assert kinds(found) == (["Binary"] if twice else ["Clamp", "Binary"])
