"""Bilinear enlargements between convolutions stay on the accelerator, joined or not."""

from __future__ import annotations

import numpy as np
import pytest

import microtron
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Concat
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.vision.integer_upsample import Upsample
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.instructions import Rounding

KNOWN = Quantization((0.05,), (-3,))


def decoder(axis: int, *, raw: bool):
    """A convolution with stride, its result enlarged, joined to what it has read, and read."""
    rng, made = np.random.default_rng(0), Builder("decoder")
    shape = (1, 5, 8, 6) if axis == 1 else (1, 8, 6, 5)
    x = made.input("x", TensorType(shape, "int8", KNOWN))

    def conv(name, x, inputs, outputs, **more):
        weights = made.constant(f"{name}.w", rng.integers(-9, 9, (outputs, inputs, 3, 3)).astype(
            np.int8), Quantization((1.0,)))
        return made.add(name, Conv(x=x, weights=weights, pad=(1, 1, 1, 1), channel_axis=axis,
                                   scales=(0.02,), **more), dtype="int8", quantization=KNOWN)

    wide = conv("wide", x, 5, 7)
    deep = conv("deep", wide, 7, 9, stride=(2, 2))
    large = made.add("large", Upsample(
        x=deep, factors=(2, 2), raw=raw, channel_axis=axis, scales=(1 / 16,),
        rounding=Rounding.AWAY if raw else Rounding.EVEN))
    joined = made.add("joined", Concat(parts=(large, wide), axis=axis))
    return made.graph((conv("y", joined, 16, 4),))


@pytest.mark.parametrize(("config", "axis", "raw"), [
    ("tiny", 1, False), ("tiny", 3, True), ("base", 1, False)])
def test_a_decoder_is_one_program(config, axis, raw):
    graph = decoder(axis, raw=raw)
    rng = np.random.default_rng(1)
    inputs = {"x": rng.integers(-128, 128, graph.inputs["x"].shape).astype(np.int8)}
    model = microtron.compile(graph, config)
    assert [type(step).__name__ for step in model.steps] == ["ProgramStep"]
    assert not model.host_nodes
    right = evaluate(graph, inputs)["y"]
    assert len(np.unique(right)) > 20
    np.testing.assert_array_equal(model.run(inputs)["y"], right)
