"""Operations of images and numbers for channels, as layers of a network."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.types import Quantization
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import tiny
from tests.compiler.network.networks import Layers, execute

SHAPES = {1: (1, 6, 5, 4), 3: (1, 5, 4, 6)}
STEP = Quantization((0.09,), (-20,))


def check(layers, name="y"):
    """One program, and what the graph means."""
    graph = layers.builder.graph((name,))
    network = compile_network(run_passes(graph), tiny, require_accelerator=True)
    assert len(network.programs) == 1
    x = np.random.default_rng(1).integers(-128, 128, graph.type_of("x").shape).astype(np.int8)
    found, wanted = execute(network, {"x": x}, "functional"), evaluate(graph, {"x": x})
    np.testing.assert_array_equal(found[name], wanted[name])


def combine(layers, kind, left, right):
    scales = (0.004,) if kind == BinaryKind.MUL else ()
    layers.builder.add("both", Binary(kind=kind, left=left, right=right, scales=scales),
                       quantization=STEP)
    layers.conv("y", "both", 5, 1)


@pytest.mark.parametrize("axis", SHAPES)
@pytest.mark.parametrize(("kind", "swapped"), [
    (BinaryKind.MUL, False), (BinaryKind.MUL, True), (BinaryKind.ADD, True),
    (BinaryKind.SUB, False)])
def test_squeeze_and_excitation_is_one_program(axis, kind, swapped):
    layers = Layers(SHAPES[axis], axis)
    layers.conv("a", "x", 9, 3)
    sides = [layers.builder.type_of("a").shape[each] for each in ((2, 3) if axis == 1 else (1, 2))]
    layers.builder.add("squeezed", Pool(x="a", kind=PoolKind.AVERAGE, kernel=tuple(sides),
                                        channel_axis=axis, scales=(1.0,)),
                       quantization=layers.builder.type_of("a").quantization)
    layers.conv("less", "squeezed", 3, 1, low=-5)
    layers.conv("gate", "less", 9, 1)
    combine(layers, kind, *(("gate", "a") if swapped else ("a", "gate")))
    check(layers)


@pytest.mark.parametrize("axis", SHAPES)
@pytest.mark.parametrize("which", ["channels", "number"])
@pytest.mark.parametrize("kind", [BinaryKind.MUL, BinaryKind.ADD])
def test_constants_are_repeated(axis, which, kind):
    layers = Layers(SHAPES[axis], axis)
    layers.conv("a", "x", 9, 3)
    shape = tuple(9 if each == axis and which == "channels" else 1 for each in range(4))
    values = layers.rng.integers(-100, 100, shape).astype(np.int8)
    constant = layers.builder.constant("c", values if which == "channels" else values.reshape(()),
                                       Quantization((0.03,), (4,)))
    combine(layers, kind, "a", constant)
    check(layers)


@pytest.mark.parametrize("axis", SHAPES)
def test_a_number_for_each_pixel_meets_all_channels(axis):
    layers = Layers(SHAPES[axis], axis)
    layers.conv("a", "x", 9, 3)
    layers.conv("map", "a", 1, 3)
    combine(layers, BinaryKind.MUL, "a", "map")
    check(layers)
