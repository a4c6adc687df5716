"""PReLU with a slope for each channel."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.logic import Compare, CompareKind, Where
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize, Quantize
from microtron.compiler.graph.operations.tflite.eight_bit import FixedPointPrelu
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.pipeline import run_passes
from microtron.compiler.passes.windows.prelu_as_windows import prelu_as_windows
from microtron.isa.instructions import Rounding
from tests.compiler.passes.checks import changed, kinds

CHANNELS = 6
RANGES = {"between": (0, 1), "steep": (0, 2), "any": (-1, 1.5)}


def image(axis, dtype, scale, zero):
    shape = (1, CHANNELS, 7, 9) if axis == 1 else (1, 7, 9, CHANNELS)
    builder = Builder()
    builder.input("q", TensorType(shape, dtype, Quantization((scale,), (zero,))))
    return builder


def real_prelu(builder, slopes, result):
    """As the ONNX front end and moves of integers give it."""
    builder.add("x", Dequantize(x="q"), dtype="float32")
    zero = builder.constant("zero", np.float32(0))
    constant = builder.constant("slopes", slopes)
    builder.add("below", Compare(kind=CompareKind.LESS, left="x", right=zero))
    builder.add("product", Binary(kind=BinaryKind.MUL, left="x", right=constant))
    for name, x in (("left", "product"), ("right", "x")):
        builder.add(name, Quantize(x=x, rounding=Rounding.EVEN), dtype=result.dtype,
                    quantization=result.quantization)
    return builder.add("p", Where(condition="below", left="left", right="right"))


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("slopes", RANGES)
@pytest.mark.parametrize("same", [True, False])
def test_real_slopes(axis, dtype, slopes, same):
    zero = 128 * (dtype == "uint8") - 7
    builder = image(axis, dtype, 0.037, zero)
    shape = (CHANNELS, 1, 1) if axis == 1 else (CHANNELS,)
    values = np.random.default_rng(3).uniform(*RANGES[slopes], shape).astype(np.float32)
    type_ = builder.type_of("q")
    result = type_ if same else TensorType(type_.shape, dtype, Quantization((0.029,), (zero - 40,)))
    real_prelu(builder, values, result)
    builder.add("y", Pool(x="p", kind=PoolKind.MAX, kernel=(1, 1), stride=(1, 1),
                          channel_axis=axis))
    found = changed(prelu_as_windows, builder.graph(("y",)))
    found = run_passes(found)
    assert not {"Where", "Compare", "Dequantize"} & set(kinds(found))


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("zero", [-128, -3, 100])
def test_slopes_of_tflite(axis, zero):
    """To the bit, for slopes of either sign and larger than one."""
    builder = image(axis, "int8", 0.05, 9)
    rng = np.random.default_rng(zero + 200)
    shape = (CHANNELS, 1, 1) if axis == 1 else (CHANNELS,)
    values = np.clip(zero + rng.integers(-90, 91, shape), -128, 127).astype(np.int8)
    slopes = builder.constant("slopes", values, Quantization((0.013,), (zero,)))
    builder.add("p", FixedPointPrelu(x="q", slopes=slopes),
                quantization=Quantization((0.04,), (-5,)))
    builder.add("y", Pool(x="p", kind=PoolKind.MAX, kernel=(2, 2), channel_axis=axis))
    if np.abs(values.astype(int) - zero).max() > 127:
        assert "FixedPointPrelu" in kinds(prelu_as_windows(builder.graph(("y",))))
        return
    assert "FixedPointPrelu" not in kinds(changed(prelu_as_windows, builder.graph(("y",))))


def test_other_slopes_stay_as_they_are():
    """One for every pixel, too."""
    builder = image(1, "int8", 0.05, 9)
    real_prelu(builder, np.full((CHANNELS, 7, 9), 0.5, np.float32), builder.type_of("q"))
    builder.add("y", Pool(x="p", kind=PoolKind.MAX, kernel=(2, 2), channel_axis=1))
    graph = builder.graph(("y",))
    assert kinds(prelu_as_windows(graph)) == kinds(graph)


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("slopes", RANGES)
def test_slopes_of_rows(axis, slopes):
    """After a fully connected layer, in a network that has images too."""
    builder = Builder()
    known = Quantization((0.037,), (-7,))
    builder.input("q", TensorType((3, CHANNELS), "int8", known))
    builder.input("i", TensorType((1, 2, 2, 2), "int8", known))
    values = np.random.default_rng(4).uniform(*RANGES[slopes], (CHANNELS,)).astype(np.float32)
    real_prelu(builder, values, TensorType((3, CHANNELS), "int8", Quantization((0.029,), (4,))))
    builder.add("y", Pool(x="i", kind=PoolKind.MAX, kernel=(2, 2), channel_axis=axis))
    found = run_passes(changed(prelu_as_windows, builder.graph(("p", "y"))))
    assert not {"Where", "Compare", "Dequantize"} & set(kinds(found))
