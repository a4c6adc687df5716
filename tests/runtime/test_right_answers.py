"""Small quantized models whose answers were wrong, or that did not compile, against ONNX Runtime
without optimizations."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from microtron.compiler.frontends.onnx import read_onnx
from microtron.isa.config import small
from microtron.runtime.models.compilation import ModelOptions, compile_model
from microtron.runtime.models.model import Model

from ..compiler.frontends.onnx.onnx_models import graph_model, runtime

SCALE = 0.02


class Quantized:
    """A model of nodes between DequantizeLinear and QuantizeLinear, with int8 input x."""

    def __init__(self, shape):
        self.nodes, self.constants, self.shape = [], [], shape
        self.constant("s", np.float32(SCALE))
        self.constant("z", np.int8(0))
        self.constant("low", np.int8(-128))

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def real(self, name, zero="z"):
        return self.add("DequantizeLinear", [name, "s", zero], f"{name}.real")

    def stored(self, name, output, zero="z", scale="s"):
        return self.add("QuantizeLinear", [name, scale, zero], output)

    def check(self, *outputs, **options):
        """Both give the same; the model is returned."""
        image = helper.make_tensor_value_info("x", TensorProto.INT8, self.shape)
        data = graph_model(self.nodes, [image], outputs, self.constants).SerializeToString()
        x = np.random.default_rng(0).integers(-128, 128, self.shape).astype(np.int8)
        right = runtime(data).run(list(outputs), {"x": x})
        model = Model(**vars(compile_model(read_onnx(data), small, ModelOptions(**options),
                                           version="")))
        found = model.run({"x": x}, device="functional").outputs
        for name, values in zip(outputs, right, strict=True):
            np.testing.assert_array_equal(np.asarray(found[name]), values, name)
            assert len(np.unique(values)) > 1, "the test looks at numbers that differ"
        return model


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("other", ["Tanh", "gate", "output"])
def test_a_convolution_that_a_global_pool_and_another_node_read(sides, other):
    """Through the reshapes around a 1-D convolution, readers are not where one looks first."""
    made = Quantized([1, 4, *[8] * sides])
    weights = np.random.default_rng(1).integers(-127, 128, [8, 4, *[3] * sides]).astype(np.int8)
    made.constant("w", weights)
    made.constant("fine", np.float32(0.004))
    made.add("DequantizeLinear", ["w", "fine", "z"], "w.real")
    made.add("Conv", [made.real("x"), "w.real"], "c", pads=[1] * 2 * sides)
    made.add("Relu", ["c"], "r")
    made.stored("r", "conv", "low")
    real = made.real("conv", "low")
    made.add("GlobalAveragePool", [real], "g")
    made.stored("g", "pooled", "low")
    outputs = ["pooled", "conv"]
    if other != "output":
        made.add(*(("Mul", [real, made.real("pooled", "low")]) if other == "gate"
                   else (other, [real])), "t")
        made.constant("odd", np.float32(0.0137))        # with which no product is half a step
        outputs = ["pooled", made.stored("t", "y", scale="odd")]
    made.check(*outputs)


@pytest.mark.parametrize(("size", "scales"), [
    ((2, 4), (0.5, 2)), ((2, 4), (0.5, 1)), ((4, 4), (1 / 3, 2)), ((4, 4), (0.25, 0.25)),
    ((3, 5), (1 / 3, 2)), ((4, 4), (2, 3)), ((4, 2), (1.5, 0.5)), ((1, 4), (1, 0.5))])
def test_a_nearest_resize_that_shrinks_axes_and_repeats_others(size, scales):
    made = Quantized([1, 4, *size])
    made.add("MaxPool", [made.real("x")], "p", kernel_shape=[3, 3], pads=[1] * 4)
    made.stored("p", "pooled")
    made.constant("scales", np.float32([1, 1, *scales]))
    made.add("Resize", [made.real("pooled"), "", "scales"], "r", mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    made.check(made.stored("r", "y"))


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("reach", [0.3, 3.4])
def test_a_real_constant_keeps_its_precision(kind, reach):
    made = Quantized([1, 32, 48])
    values = np.random.default_rng(2).uniform(-reach, reach, 48).astype(np.float32)
    made.constant("c", values)
    made.constant("wide", np.float32(0.054))
    made.add(kind, [made.real("x"), "c"], "r")
    model = made.check(made.stored("r", "y", scale="wide"))
    assert any("real constant" in each.reason for each in model.host_nodes)


def test_a_bias_that_no_sum_of_products_is_near_keeps_its_precision():
    """The scale of a product is most of a step, so that rounding the bias would change results."""
    made = Quantized([4, 12])
    rng = np.random.default_rng(3)
    made.constant("w", rng.integers(-2, 3, (12, 8)).astype(np.int8))
    made.constant("one", np.float32(1))
    made.constant("b", rng.uniform(-1, 1, 8).astype(np.float32))
    made.constant("odd", np.float32(0.0237))
    made.add("DequantizeLinear", ["w", "one", "z"], "w.real")
    made.add("MatMul", [made.real("x"), "w.real"], "m")
    made.add("Add", ["b", "m"], "r")
    model = made.check(made.stored("r", "y", scale="odd"))
    assert ("r", "one side is a real constant, which keeps its precision") in [
        (each.title, each.reason) for each in model.host_nodes]
