"""Nodes of random shapes, also empty ones, with infinities and what is no number: compiled, they
mean what ONNX's reference evaluator makes of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("onnx")

from onnx import helper
from onnx.reference import ReferenceEvaluator

from microtron.runtime.onnx_backend import MicrotronBackend

OPSET = 21
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
REALS = ("float16", "float32", "float64")
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 3e38)


def agree(op, operands, attributes=None, *, outputs=1, opset=OPSET, rtol=1e-5, atol=1e-6):
    """The node gives what the reference gives. Operands that are None are left out."""
    names = [f"x{number}" if each is not None else "" for number, each in enumerate(operands)]
    node = helper.make_node(op, names, [f"y{number}" for number in range(outputs)],
                            **attributes or {})
    arrays = {name: each for name, each in zip(names, operands, strict=True) if name}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        right = ReferenceEvaluator(model(node, arrays, opset)).run(None, arrays)
    found = MicrotronBackend.run_node(node, list(arrays.values()), opset_version=opset)
    for one, other in zip(found, right, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def model(node, arrays, opset):
    graph = helper.make_graph([node], "node", [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in arrays.items()], [helper.make_empty_tensor_value_info(name)
                                            for name in node.output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def shapes(low=0, high=4, *, most=4, least=0):
    """Some axes of some indices each."""
    return st.lists(st.integers(least, most), min_size=low, max_size=high).map(tuple)


def numbers(draw, shape, dtype="float32", *, odd=True, low=None, high=None):
    """Random numbers, of the whole range if they are integers; some real ones are odd."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return random.integers(info.min if low is None else low, info.max if high is None else high,
                               shape, kind, endpoint=high is None)
    array = np.asarray(random.uniform(-3 if low is None else low, 3 if high is None else high,
                                      shape)).astype(kind)
    if odd and array.size:
        with np.errstate(over="ignore"):
            for value in draw(st.lists(st.sampled_from(ODD), max_size=3)):
                array.flat[random.integers(array.size)] = value
    return array


@settings(max_examples=40)
@given(st.data())
def test_bits(data):
    dtype, shape = data.draw(st.sampled_from(INTEGERS)), data.draw(shapes())
    left = numbers(data.draw, shape, dtype)
    right = numbers(data.draw, shape[data.draw(st.integers(0, len(shape))):], dtype)
    agree(data.draw(st.sampled_from(["BitwiseAnd", "BitwiseOr", "BitwiseXor"])), [left, right])
    agree("BitwiseNot", [left])
    if dtype.startswith("u"):
        places = right % (8 * right.dtype.itemsize)
        agree("BitShift", [left, places], {"direction": data.draw(st.sampled_from(["LEFT",
                                                                                  "RIGHT"]))})


@settings(max_examples=40)
@given(st.data())
def test_remainders_and_quotients(data):
    dtype, shape = data.draw(st.sampled_from(INTEGERS + REALS)), data.draw(shapes())
    left, right = numbers(data.draw, shape, dtype), numbers(data.draw, shape, dtype)
    if np.dtype(dtype).kind == "f":
        agree("Mod", [left, right], {"fmod": 1})
        agree("Div", [left, right])
        return
    right[right == 0] = 3
    agree("Mod", [left, right], {"fmod": data.draw(st.integers(0, 1))})
    exact = [int(a) // int(b) if (a < 0) == (b < 0) else -(abs(int(a)) // abs(int(b)))
             for a, b in zip(left.flat, right.flat, strict=True)]
    node = helper.make_node("Div", ["a", "b"], ["c"])
    found = MicrotronBackend.run_node(node, [left, right]).c
    bits = 8 * left.dtype.itemsize              # the least integer by −1 wraps
    assert [int(each) % (1 << bits) for each in found.flat] == [each % (1 << bits)
                                                                for each in exact]


def picks(draw, shape, axis, size):
    """Indices for a tensor of a shape, of `size` along an axis."""
    extent = shape[axis]
    wanted = tuple(min(size, size * extent) if each == axis else other
                   for each, other in enumerate(shape))
    return numbers(draw, wanted, "int64", low=-extent, high=max(extent, 1))


@settings(max_examples=60)
@given(st.data())
def test_numbers_picked_and_written_along_an_axis(data):
    shape = data.draw(shapes(1))
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(data.draw, shape, data.draw(st.sampled_from(["float32", "int16"])))
    indices = picks(data.draw, shape, axis, data.draw(st.integers(0, 5)))
    agree("GatherElements", [x, indices], {"axis": axis})
    kind = data.draw(st.sampled_from(["none", "add", "mul", "min", "max"]))
    if kind == "none":              # the order of writes to one place is left open
        indices = np.broadcast_to(np.arange(min(shape[axis], 2)).reshape(
            [-1 if each == axis else 1 for each in range(len(shape))]),
            [min(size, 2) for size in shape])
    updates = numbers(data.draw, indices.shape, str(x.dtype), odd=False)
    if indices.size:
        agree("ScatterElements", [x, indices, updates], {"axis": axis, "reduction": kind})


@settings(max_examples=40)
@given(st.data())
def test_slices_written_to_places(data):
    shape = data.draw(shapes(1, least=1))
    depth, rows = data.draw(st.integers(1, len(shape))), data.draw(shapes(1, 2, most=3))
    indices = np.stack([numbers(data.draw, rows, "int64", low=0, high=size)
                        for size in shape[:depth]], axis=-1)
    kind = data.draw(st.sampled_from(["add", "mul", "min", "max"]))
    agree("ScatterND", [numbers(data.draw, shape), indices,
                        numbers(data.draw, (*rows, *shape[depth:]), odd=False)],
          {"reduction": kind})


@settings(max_examples=60)
@given(st.data())
def test_the_largest_in_order(data):
    shape = data.draw(shapes(1, least=1))
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(data.draw, shape, data.draw(st.sampled_from(["float32", "int8", "uint64"])),
                odd=False)
    x = x % 5 if x.dtype.kind in "iu" else x                    # with equal ones
    agree("TopK", [x, np.array([data.draw(st.integers(0, shape[axis]))])],
          {"axis": axis, "largest": data.draw(st.integers(0, 1))}, outputs=2)


@settings(max_examples=40)
@given(st.data())
def test_running_sums(data):
    shape = data.draw(shapes(1))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = numbers(data.draw, shape, data.draw(st.sampled_from(["float32", "float64", "int32"])))
    agree("CumSum", [x, np.array(axis)], {"exclusive": data.draw(st.integers(0, 1)),
                                          "reverse": data.draw(st.integers(0, 1))})


@settings(max_examples=40)
@given(st.data())
def test_triangles(data):
    shape = data.draw(shapes(2))
    x = numbers(data.draw, shape, data.draw(st.sampled_from(["float32", "int64"])))
    agree("Trilu", [x, np.array(data.draw(st.integers(-6, 6)))],
          {"upper": data.draw(st.integers(0, 1))})


@settings(max_examples=25)
@given(st.data())
def test_samples_of_images(data):
    axes = data.draw(st.integers(1, 2))
    x = numbers(data.draw, (*data.draw(shapes(2, 2, most=2)), *data.draw(
        shapes(axes, axes, least=1))), odd=False)
    grid = numbers(data.draw, (x.shape[0], *data.draw(shapes(axes, axes, most=3)), axes), odd=False,
                   low=-1.5, high=1.5)
    if not x.size or not grid.size:
        return                  # the reference gives another shape
    agree("GridSample", [x, grid], {
        "mode": data.draw(st.sampled_from(["linear", "nearest"])),
        "padding_mode": data.draw(st.sampled_from(["zeros", "border", "reflection"])),
        "align_corners": 0}, atol=1e-4)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
def test_a_sample_at_no_number_or_infinitely_far_is_outside(mode, outside):
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    grid = np.array([[np.nan, 0], [-np.inf, 0], [np.inf, 0]], np.float32).reshape(1, 1, 3, 2)
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=outside)
    found = MicrotronBackend.run_node(node, [x, grid]).y.ravel().tolist()
    assert found == {"zeros": [0, 0, 0], "border": [4, 4, 6]}.get(outside, found)
    assert np.isfinite(found).all()


@settings(max_examples=25)
@given(st.data())
def test_recurrent_layers(data):
    kind, gates = data.draw(st.sampled_from([("RNN", 1), ("GRU", 3), ("LSTM", 4)]))
    steps, batch, inputs, hidden = (data.draw(st.integers(1, 3)) for _ in range(4))
    operands = [numbers(data.draw, (steps, batch, inputs)),
                numbers(data.draw, (1, gates * hidden, inputs), odd=False),
                numbers(data.draw, (1, gates * hidden, hidden), odd=False),
                numbers(data.draw, (1, 2 * gates * hidden), odd=False)]
    agree(kind, operands, {"hidden_size": hidden}, outputs=2, rtol=1e-4, atol=1e-5)


@settings(max_examples=40)
@given(st.data())
def test_sums_of_products(data):
    sizes = {letter: data.draw(st.integers(0, 3)) for letter in "abcde"}
    words = ["".join(data.draw(st.permutations("abcde"))[:data.draw(st.integers(0, 4))])
             for _ in range(data.draw(st.integers(1, 3)))]
    letters = sorted(set("".join(words)))
    wanted = "".join(data.draw(st.permutations(letters))[:data.draw(st.integers(0, len(letters)))])
    operands = [numbers(data.draw, [sizes[each] for each in word], "float64", odd=False)
                for word in words]
    equation = f"{','.join(words)}->{wanted}"
    node = helper.make_node("Einsum", [f"x{each}" for each in range(len(words))], ["y"],
                            equation=equation)
    found = MicrotronBackend.run_node(node, operands).y
    np.testing.assert_allclose(found, np.einsum(equation, *operands), rtol=1e-9, atol=1e-9)


@settings(max_examples=40)
@given(st.data())
def test_places_of_maxima(data):
    """They are where a maximum is; of equal numbers, the first."""
    n, channels, height, width = (data.draw(st.integers(1, each)) for each in (2, 2, 6, 6))
    kernel = [data.draw(st.integers(1, min(each, 3))) for each in (height, width)]
    pads = [data.draw(st.integers(0, each - 1)) for each in (*kernel, *kernel)]
    strides = [data.draw(st.integers(1, 3)) for _ in range(2)]
    x = np.round(numbers(data.draw, (n, channels, height, width), odd=False))
    node = helper.make_node("MaxPool", ["x"], ["y", "z"], kernel_shape=kernel, pads=pads,
                            strides=strides)
    found = MicrotronBackend.run_node(node, [x])
    np.testing.assert_array_equal(x.ravel()[found.z], found.y)
    for place in np.ndindex(found.y.shape):
        rows, columns = ([each for each in range(start, start + taps) if 0 <= each < size]
                         for start, taps, size in (
                             (place[2] * strides[0] - pads[0], kernel[0], height),
                             (place[3] * strides[1] - pads[1], kernel[1], width)))
        window = x[place[0], place[1]][np.ix_(rows, columns)]
        first = np.unravel_index(window.argmax(), window.shape)
        inside = rows[first[0]] * width + columns[first[1]]
        assert found.z[place] == (place[0] * channels + place[1]) * height * width + inside


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,)])
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1"])
def test_many_numbers_that_are_none(op, shape):
    agree(op, [np.zeros(shape, np.float32), np.array([0])], {"keepdims": 0})
