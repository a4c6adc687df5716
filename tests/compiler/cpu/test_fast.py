"""Matrix products and convolutions in blocks, as machine code, against the graph's meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.base.machine_code import assembly
from microtron.base.processor import TARGETS, host
from microtron.compiler.cpu.code.emit_dot import DOT
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.cpu.fast.block import AVX512, COMMON, block_of
from microtron.compiler.cpu.fast.fast_transposed import can_split
from microtron.compiler.cpu.operators.layers import lower_matmul, lower_window
from microtron.compiler.cpu.registry import Operand, Scheduled
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import total
from microtron.compiler.expression.tensor import Tensor, compute, placeholder, reduce_axis
from microtron.compiler.graph.evaluate_graph import compute_node
from microtron.compiler.graph.graph import Constant, Graph, Node
from microtron.compiler.graph.operation import Value
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import Softmax
from microtron.compiler.graph.operations.layers.window import Conv, TransposedConv
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule
from microtron.runtime.models import compiled_host

from .machine import compiled

PLAIN = replace(host(), features=",".join(
    each for each in host().features.split(",") if each != "+dotprod"),
    vector_bytes=min(host().vector_bytes, 32))
SCALAR = replace(PLAIN, vector_bytes=0)
targets = st.sampled_from([host(), PLAIN, SCALAR])
seeds = st.integers(0, 1 << 16)
kinds = st.sampled_from(["float32", "float16", "int8", "uint8", "mixed"])


def value(shape, kind, seed, axis=None):
    """Numbers, and a zero point for all or for each index of an axis if they are bytes."""
    rng = np.random.default_rng(seed)
    if kind.startswith("float"):
        return Value(TensorType(shape, kind), rng.normal(size=shape).astype(kind))
    limits = np.iinfo(kind)
    array = rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
    if kind == "int8" and rng.random() < 0.5:       # small factors
        array = rng.integers(-64, 64, shape, kind, endpoint=True)
    if rng.random() < 0.2:
        return Value(TensorType(shape, kind), array)
    count = shape[axis] if axis is not None and rng.random() < 0.4 else 1
    zeros = rng.integers(limits.min, limits.max, count) * int(rng.random() < 0.7)
    known = Quantization((0.5,) * count, tuple(map(int, zeros)), axis if count > 1 else None)
    return Value(TensorType(shape, kind, known), array)


def two(kind, left, right, seed, axis):
    """Operands of one type, or unsigned ones with signed weights."""
    types = ("uint8", "int8") if kind == "mixed" else (kind, kind)
    return value(left, types[0], seed), value(right, types[1], seed + 1, axis)


def check(operation, values, target, *, constant=True, scaled=False, threads=1):
    """Compile a node and compare it with what it means: integers to the bit."""
    names = ("x", "w", "b")[:len(values)]
    result = operation.infer(*(each.type for each in values))
    if scaled:
        result = replace(result, dtype="int8", quantization=Quantization((0.5,), (3,)))
    known = {name: each for name, each in zip(names, values, strict=True)
             if name != "x" and (constant or name == "b")}
    given_ = {name: each for name, each in zip(names, values, strict=True) if name not in known}
    graph = Graph({name: each.type for name, each in given_.items()},
                  {name: Constant(each.type, each.array) for name, each in known.items()},
                  {"y": Node(operation, result)}, ("y",))
    part = compile_part(graph, target)
    found = compiled_host.LoadedPart(part, threads)({
        name: each.array for name, each in given_.items()})["y"]
    expected = compute_node(Node(operation, result), list(values))
    if result.is_float:
        near = {"float16": 2e-3, "float32": 2e-5}[result.dtype]
        np.testing.assert_allclose(found, expected, near, near * np.abs(expected).max(initial=1))
    else:
        np.testing.assert_array_equal(found, expected)
    return found


@settings(max_examples=15)
@given(st.lists(st.integers(1, 2), max_size=2), st.integers(1, 21), st.integers(1, 37),
       st.integers(1, 19), kinds, st.booleans(), st.booleans(), targets, seeds)
def test_matrix_products(batch, rows, columns, depth, kind, constant, scaled, target, seed):
    rng = np.random.default_rng(seed)
    others = tuple(batch) if rng.random() < 0.5 else ()
    left, right = two(kind, (*batch, rows, depth), (*others, depth, columns), seed, -1)
    scaled = scaled and kind in ("int8", "uint8", "mixed")
    bias = value((columns,), kind, seed + 2) if kind.startswith("float") else Value(
        TensorType((columns,), "int32"), rng.integers(-9999, 9999, columns, "int32"))
    scales = tuple(map(float, rng.uniform(1e-4, 1e-2, columns))) if scaled else ()
    check(MatMul(left="x", right="w", bias="b", scales=scales), [left, right, bias], target,
          constant=constant, scaled=scaled)


@settings(max_examples=25)
@given(st.integers(1, 2), st.tuples(st.integers(1, 9), st.integers(1, 15)),
       st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 3), st.integers(1, 9),
       st.integers(1, 18), st.tuples(st.integers(1, 2), st.integers(1, 2)),
       st.tuples(st.integers(1, 2), st.integers(1, 2)), st.sampled_from([1, 3]), kinds,
       st.booleans(), st.booleans(), st.booleans(), targets, seeds)
def test_convolutions(n, sides, kernel, groups, depth, outputs, stride, dilation, channel_axis,
                      kind, scaled, transposed, constant, target, seed):
    rng = np.random.default_rng(seed)
    if groups > 1 and rng.random() < 0.5:
        groups, depth, outputs = 16, 1, 1
    elif groups > 1:
        depth, outputs = 4 * (depth // 4 + 1), 4 * (outputs // 4 + 1)
    channels = depth * groups
    shape = (n, channels, *sides) if channel_axis == 1 else (n, *sides, channels)
    reach = [(size - 1) * apart for size, apart in zip(kernel, dilation, strict=True)]
    pad = tuple(int(each) for size in reach for each in (size, rng.integers(0, size + 1)))
    images, weights = two(kind, shape, (outputs * groups, depth, *kernel), seed, 0)
    scaled = scaled and not kind.startswith("float")
    scales = tuple(map(float, rng.uniform(1e-4, 1e-2, outputs * groups))) if scaled else ()
    if transposed:
        pad = (0, 0, 0, 0)
    operation = (TransposedConv if transposed else Conv)(
        x="x", weights="w", stride=stride, dilation=dilation, pad=pad, groups=groups,
        channel_axis=channel_axis, scales=scales)
    check(operation, [images, weights], target, scaled=scaled, constant=constant)


@pytest.mark.parametrize(("kernel", "stride", "pad", "more"), [
    ((4, 4), (2, 2), (1, 1, 1, 1), (0, 0)), ((2, 2), (2, 2), (0, 0, 0, 0), (1, 1)),
    ((6, 4), (3, 2), (2, 0, 1, 3), (2, 0)), ((16, 8), (8, 8), (4, 4, 0, 0), (0, 3)),
    ((3, 2), (1, 2), (1, 1, 0, 0), (0, 1)), ((2, 5), (1, 5), (0, 1, 4, 2), (0, 4))])
@pytest.mark.parametrize("channel_axis", [1, 3])
def test_transposed_convolutions_in_phases(kernel, stride, pad, more, channel_axis):
    operation = TransposedConv(x="x", weights="w", bias="b", stride=stride, pad=pad,
                               output_padding=more, channel_axis=channel_axis)
    shape = (2, 3, 5, 4) if channel_axis == 1 else (2, 5, 4, 3)
    images, weights = two("float32", shape, (20, 3, *kernel), 1, None)
    x, w = operands(images, weights)
    assert can_split(x, w, stride, operation.dilation, 1)
    bias = value((20,), "float32", 3)
    for target in (host(), PLAIN):
        check(operation, [images, weights, bias], target)


@pytest.mark.parametrize("width", [4, 31, 64, 65, 80, 131])
def test_reductions_across_rows_of_any_width(width):
    check(Softmax(x="x", axis=1), [value((2, 5, width), "float32", width)], host())


@pytest.mark.parametrize("kind", ["float32", "uint8"])
def test_threads_do_not_change_results(kind, monkeypatch):
    left, right = two(kind, (37, 21), (21, 50), 3, -1)
    operation = MatMul(left="x", right="w")
    one = check(operation, [left, right], host())
    monkeypatch.setattr(compiled_host, "WORTH_SHARING", 0)
    for threads in (2, 3):
        np.testing.assert_array_equal(check(operation, [left, right], host(), threads=threads), one)


def operands(*values):
    return [Operand(each.type, Tensor(f"x{place}", each.type.shape, each.type.dtype),
                    each.array if place else None) for place, each in enumerate(values)]


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "uint8", "mixed"])
def test_what_is_common_is_computed_in_blocks(kind):
    left, right = two(kind, (16, 24), (24, 40), 1, None)
    operation = MatMul(left="x", right="w")
    assert isinstance(lower_matmul.matrix_product(
        operation, operation.infer(left.type, right.type), *operands(left, right)), Scheduled)
    for channel_axis, shape in ((1, (1, 8, 9, 9)), (3, (1, 9, 9, 8))):
        for groups in (1, 2):
            images, weights = two(kind, shape, (16, 8 // groups, 3, 3), 0, None)
            if weights.type.dtype == "int8":            # without a zero point
                weights = Value(TensorType(weights.type.shape, "int8"), weights.array)
            conv = Conv(x="x", weights="w", channel_axis=channel_axis, groups=groups)
            found = lower_window.convolution(conv, conv.infer(images.type, weights.type),
                                             *operands(images, weights))
            assert isinstance(found, Scheduled) or (groups > 1 and kind == "uint8")
            if kind == "float32":                       # also if weights are computed
                x, w = operands(images, weights)
                computed = lower_window.convolution(conv, conv.infer(images.type, weights.type),
                                                    x, replace(w, array=None))
                assert isinstance(computed, Scheduled)


@pytest.mark.parametrize("pair", [(64, 64), (-64, -64), (64, 65), (-65, -64), (1, 127), (2, 127),
                                  (-128, 0), (-128, -1), (127, 127)])
def test_sums_of_two_products_may_need_more_than_16_bits(pair):
    left = Value(TensorType((5, 9), "uint8"), np.full((5, 9), 255, np.uint8))
    weights = np.resize(np.array(pair, np.int8), 9)[:, np.newaxis] * np.ones(20, np.int8)
    right = Value(TensorType((9, 20), "int8"), weights)
    for target in (host(), PLAIN):
        check(MatMul(left="x", right="w"), [left, right], target)


def test_processors_with_vnni_use_it():
    vnni = replace(TARGETS["x86-64"], cpu="cascadelake", vector_bytes=64, features=(
        "+avx512f,+avx512bw,+avx512vl,+avx512vnni"))
    left, right = value((40, 64), "uint8", 1), value((64, 48), "int8", 2)
    operation = MatMul(left="x", right="w")
    for target in (vnni, replace(vnni, features=vnni.features.replace(",+avx512vnni", ""),
                                 cpu="skylake-avx512")):
        graph = Graph({"x": left.type}, {"w": Constant(right.type, right.array)},
                      {"y": Node(operation, operation.infer(left.type, right.type))}, ("y",))
        listing = assembly(compile_part(graph, target).module.text(), target)
        assert ("vpdpbusd" in listing) == (target is vnni)
        assert ("vpmadd" in listing) == (target is not vnni)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40),
       st.sampled_from([COMMON, AVX512]))
def test_blocks_cover_all_rows_and_fit_in_registers(rows, columns, tiles, registers):
    block = block_of(rows, columns, tiles, registers=registers)
    assert block.height >= rows
    assert block.tiles <= tiles
    assert (block.rows + 1) * block.lanes <= registers.most
    assert block.height < rows + block.rows * (block.stripes + 1)


def test_marked_loops_that_are_no_dot_products_are_refused():
    x, y = placeholder("x", (8, 4), "int8"), placeholder("y", (4,), "int16")
    t = reduce_axis("t", 4)
    sums = compute("s", (8,), lambda i: total(x[i, t].cast("int32") * y[t].cast("int32"), t))
    schedule = Schedule(sums)
    schedule[sums].tensorize(schedule[sums].leaves[0], DOT)
    with pytest.raises(CompileError, match="dot is sums of 4 products of int8 or uint8 and 2"):
        compiled(lower(schedule))
