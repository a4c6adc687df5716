"""Operations on single numbers: functions, casts, comparisons, bits, scales."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.bits import BitCast, BitNot, Bits, BitsKind
from microtron.compiler.graph.operations.pointwise.logic import (
    Compare,
    CompareKind,
    Logical,
    LogicKind,
    Not,
    Where,
)
from microtron.compiler.graph.operations.pointwise.quantize import (
    Clamp,
    Dequantize,
    Lookup,
    Quantize,
    Reinterpret,
    Rescale,
)
from microtron.compiler.graph.operations.pointwise.unary import ON_INTEGERS, Cast, Unary, UnaryKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.instructions import Rounding

from .draws import ALL, FLOATS, INTEGERS, numbers, quantized, repeated, seeds, shapes, value
from .lowered import check, typed

roundings = st.sampled_from(list(Rounding))
BOUNDED = (BinaryKind.MIN, BinaryKind.MAX, BinaryKind.ADD)


@given(shapes(), st.sampled_from(BinaryKind), st.sampled_from((*INTEGERS, *FLOATS)), seeds,
       st.booleans())
def test_functions_of_two_numbers(shape, kind, dtype, seed, constant):
    left, right = (value(repeated(shape, seed + side), dtype, seed + side) for side in range(2))
    bounds = {"low": 2.0, "high": 90.0} if kind in BOUNDED and seed % 2 else {}
    check(Binary(left="l", right="r", kind=kind, **bounds), left, right,
          constant=(1,) if constant else ())


@given(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5]), st.sampled_from(FLOATS), seeds)
def test_a_known_exponent(exponent, dtype, seed):
    x = typed(np.abs(numbers((20,), dtype, seed)))      # NumPy takes a root of −∞ instead
    check(Binary(left="l", right="r", kind=BinaryKind.POW), x, typed(np.array(exponent, dtype)),
          constant=(1,))


@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.MAX,
                                  BinaryKind.POW])
def test_functions_of_truth_values(kind):
    left, right = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    check(Binary(left="l", right="r", kind=kind), typed(left), typed(right))


@given(shapes(), st.sampled_from(["int8", "uint8", "int16"]), seeds, roundings,
       st.sampled_from(["add", "sub", "mul", "min", "max"]))
def test_functions_of_two_quantized_numbers(shape, dtype, seed, rounding, name):
    kind = BinaryKind(name)
    left, right = (quantized(repeated(shape, seed + side), dtype, seed + side)
                   for side in range(2))
    same = kind in (BinaryKind.MIN, BinaryKind.MAX)
    known = left.type.quantization if same else Quantization((0.3,), (5,))
    if same:
        right = right._replace(type=TensorType(right.type.shape, dtype, known))
    operation = Binary(left="l", right="r", kind=kind, rounding=rounding,
                       scales=(0.021,) if kind == BinaryKind.MUL else ())
    result = TensorType(operation.infer(left.type, right.type).shape, dtype, known)
    check(operation, left, right, result=result)


PARAMETERS = {
    UnaryKind.HARD_SIGMOID: (0.2, 0.5), UnaryKind.SWISH: (1.3, 0), UnaryKind.ELU: (0.7, 0),
    UnaryKind.SELU: (1.67, 1.05), UnaryKind.CELU: (1.4, 0), UnaryKind.LEAKY_RELU: (0.1, 0),
    UnaryKind.THRESHOLDED_RELU: (0.8, 0)}
# Of numbers that are near −∞, the graph itself has only rounding errors of 1 left.
VANISHING = (UnaryKind.GELU, UnaryKind.GELU_TANH, UnaryKind.MISH, UnaryKind.SWISH)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", UnaryKind)
def test_functions_of_one_real_number(kind, dtype):
    alpha, beta = PARAMETERS.get(kind, (0, 0))
    values = np.concatenate([numbers((400,), dtype, 1), numbers((200,), dtype, 2, scale=40)])
    check(Unary(x="x", kind=kind, alpha=alpha, beta=beta), typed(values), relative=3e-6,
          absolute=np.finfo(dtype).eps * 8 if kind in VANISHING else float(np.finfo(dtype).tiny))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", ON_INTEGERS)
def test_functions_of_one_integer(kind, dtype):
    check(Unary(x="x", kind=kind), value((60,), dtype, 3))


@pytest.mark.parametrize("before", ALL)
@pytest.mark.parametrize("after", ALL)
def test_casts(before, after):
    x = value((80,), before, 4, scale=1000)
    if before in FLOATS:
        ends = [bound for dtype in INTEGERS for bound in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
        with np.errstate(over="ignore"):
            x = typed(np.concatenate([x.array, np.array(ends, np.float64).astype(before)]))
    check(Cast(x="x", dtype=after), x)


@given(shapes(), st.sampled_from(CompareKind), st.sampled_from(ALL), seeds)
def test_comparisons(shape, kind, dtype, seed):
    check(Compare(left="l", right="r", kind=kind), value(repeated(shape, seed), dtype, seed),
          value(repeated(shape, seed + 1), dtype, seed))


@given(shapes(), st.sampled_from(LogicKind), seeds)
def test_truth_values(shape, kind, seed):
    left = value(repeated(shape, seed), "bool", seed)
    check(Logical(left="l", right="r", kind=kind), left,
          value(repeated(shape, seed + 1), "bool", seed + 1))
    check(Not(x="x"), left)


@given(shapes(), st.sampled_from(ALL), seeds)
def test_where(shape, dtype, seed):
    check(Where(condition="c", left="l", right="r"), value(repeated(shape, seed), "bool", seed),
          value(repeated(shape, seed + 1), dtype, seed),
          value(repeated(shape, seed + 2), dtype, seed + 1))


@given(shapes(), st.sampled_from(BitsKind), st.sampled_from(INTEGERS), seeds)
def test_bits(shape, kind, dtype, seed):
    left = value(repeated(shape, seed), dtype, seed)
    check(Bits(left="l", right="r", kind=kind), left,
          value(repeated(shape, seed + 1), dtype, seed + 1))
    check(BitNot(x="x"), left)


@pytest.mark.parametrize("before", ALL)
@pytest.mark.parametrize("after", ALL)
def test_bits_as_another_type(before, after):
    same = np.dtype(before).itemsize == np.dtype(after).itemsize
    if same and (before == "bool") == (after == "bool"):
        check(BitCast(x="x", dtype=after), value((40,), before, 5), absolute=0)


@given(shapes(1), st.sampled_from(FLOATS), st.sampled_from(INTEGERS), seeds, roundings,
       st.booleans())
def test_quantize(shape, before, after, seed, rounding, several):
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(-len(shape), len(shape)))
    count = shape[axis] if several and shape[axis] else 1
    scales = tuple(map(float, np.exp(rng.uniform(-4, 1, count))))
    zeros = tuple(map(int, rng.integers(0, 100, count)))
    known = Quantization(scales, zeros, axis if count > 1 else None)
    x = value(shape, before, seed)
    with np.errstate(over="ignore"):
        halves = np.round(x.array * 4) / 4 * np.asarray(scales[0], before)
    check(Quantize(x="x", rounding=rounding), typed(halves if seed % 2 else x.array),
          result=TensorType(shape, after, known))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_what_is_too_large_to_quantize_is_the_last_number_there_is(dtype):
    ends = np.iinfo(dtype)
    x = np.array([np.inf, -np.inf, 3e38, -3e38, np.nan, 7.0], "float32")
    found = check(Quantize(x="x"), typed(x), result=TensorType((6,), dtype,
                                                               Quantization((0.5,), (3,))))
    assert found.tolist() == [ends.max, ends.min, ends.max, ends.min, 3, 17]


@given(shapes(1), st.sampled_from(INTEGERS), seeds, st.booleans())
def test_dequantize(shape, dtype, seed, several):
    rng = np.random.default_rng(seed)
    count = shape[0] if several and shape[0] else 1
    known = Quantization(tuple(map(float, rng.uniform(0.1, 3, count))),
                         tuple(map(int, rng.integers(0, 9, count))), 0 if count > 1 else None)
    x = value(shape, dtype, seed)
    check(Dequantize(x="x"), x._replace(type=TensorType(shape, dtype, known)), absolute=0,
          relative=0)


@given(shapes(), st.sampled_from(["int8", "uint8", "int16", "int32"]), seeds, roundings,
       st.sampled_from(["int8", "uint8", "int16"]))
def test_rescale(shape, before, seed, rounding, after):
    ratio = float(np.exp(np.random.default_rng(seed).uniform(-8, 4)))
    x = quantized(shape, before, seed, scale=ratio)
    check(Rescale(x="x", rounding=rounding, low=-90.0), x,
          result=TensorType(shape, after, Quantization((1.0,), (7,))))


@given(shapes(), st.sampled_from(ALL), seeds)
def test_clamp(shape, dtype, seed):
    check(Clamp(x="x", low=1.0, high=sqrt(10) if dtype in FLOATS else 50.0),
          value(shape, dtype, seed))
    check(Clamp(x="x", low=0.0), value(shape, dtype, seed))


@given(shapes(), st.sampled_from(["int8", "uint8"]), st.sampled_from(ALL), seeds)
def test_tables(shape, dtype, after, seed):
    x = value(shape, dtype, seed)
    check(Lookup(x="x", table="t"), x, value((256,), after, seed))
    check(Reinterpret(x="x"), x)
