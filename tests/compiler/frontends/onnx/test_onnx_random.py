"""Random nodes: windows of any geometry, moves, and single layers between DequantizeLinear and
QuantizeLinear, all against ONNX Runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.passes.pipeline import run_passes

from .onnx_models import Known, graph_model, known, node_model, runtime

SEEDS = st.integers(0, 1 << 30)
small = st.integers(1, 3)


def both(model, inputs):
    data = model.SerializeToString()
    right = runtime(data).run(None, inputs)[0]
    graph = read_onnx(data)
    return graph, evaluate(graph, inputs)[graph.outputs[0]], right


@st.composite
def windows(draw, dimensions):
    """The attributes of a window that lies inside images of at least 9 pixels a side."""
    def each(values):
        return draw(st.lists(values, min_size=dimensions, max_size=dimensions))

    kernel, attributes = each(small), {"strides": each(small), "dilations": each(st.integers(1, 2))}
    padding = draw(st.sampled_from(["pads", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if padding == "pads":
        attributes["pads"] = [draw(st.integers(0, size - 1)) for size in kernel * 2]
    else:
        attributes["auto_pad"] = padding
        if padding.startswith("SAME"):          # as ONNX Runtime supports it
            attributes["dilations"] = [1] * dimensions
    return kernel, attributes


def image(rng, dimensions, channels):
    return rng.normal(size=(2, channels, *rng.integers(9, 13, dimensions))).astype(np.float32)


@given(st.data(), st.integers(1, 2), SEEDS)
@settings(max_examples=60)
def test_convolutions(data, dimensions, seed):
    rng = np.random.default_rng(seed)
    kernel, attributes = data.draw(windows(dimensions))
    attributes["group"] = groups = data.draw(small)
    inputs, outputs = groups * data.draw(small), groups * data.draw(small)
    x = image(rng, dimensions, inputs)
    weights = rng.normal(size=(outputs, inputs // groups, *kernel)).astype(np.float32)
    operands = [x, known(weights), known(rng.normal(size=outputs).astype(np.float32))]
    _, found, right = both(node_model("Conv", operands, attributes), {"x0": x})
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@given(st.data(), st.integers(1, 2), SEEDS)
@settings(max_examples=40)
def test_transposed_convolutions(data, dimensions, seed):
    rng = np.random.default_rng(seed)
    kernel, attributes = data.draw(windows(dimensions))
    attributes["group"] = groups = data.draw(small)
    inputs = groups * data.draw(small)
    if attributes.get("auto_pad", "NOTSET") == "NOTSET":
        attributes["output_padding"] = [data.draw(st.integers(0, step - 1))
                                        for step in attributes["strides"]]
    else:                                   # a size beyond stride × input would be zeros
        attributes["strides"] = [min(pair) for pair in zip(attributes["strides"], kernel,
                                                           strict=True)]
    x = image(rng, dimensions, inputs)
    weights = rng.normal(size=(inputs, data.draw(small), *kernel)).astype(np.float32)
    _, found, right = both(node_model("ConvTranspose", [x, known(weights)], attributes), {"x0": x})
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@given(st.data(), st.integers(1, 2), st.sampled_from(["MaxPool", "AveragePool"]), SEEDS)
@settings(max_examples=60)
def test_pools(data, dimensions, kind, seed):
    rng = np.random.default_rng(seed)
    kernel, attributes = data.draw(windows(dimensions))
    attributes |= {"kernel_shape": kernel, "ceil_mode": data.draw(st.integers(0, 1))}
    if "auto_pad" in attributes:            # ONNX Runtime refuses some of the others
        attributes["ceil_mode"] = 0
        attributes["strides"] = [min(pair) for pair in zip(attributes["strides"], kernel,
                                                           strict=True)]
    if kind == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    x = image(rng, dimensions, 2)
    _, found, right = both(node_model(kind, [x], attributes, opset=19), {"x0": x})
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


@given(st.data(), st.lists(st.integers(1, 6), min_size=1, max_size=4), SEEDS)
@settings(max_examples=80)
def test_slices_and_borders(data, shape, seed):
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    bound = st.integers(-8, 8)
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))
    if data.draw(st.booleans()) and axes:
        starts, ends = ([data.draw(bound) for _ in axes] for _ in range(2))
        steps = [data.draw(st.sampled_from([-3, -1, 1, 2])) for _ in axes]
        operands = [known(each, "int64") for each in (starts, ends, axes, steps)]
        model = node_model("Slice", [x, *operands])
    else:
        pads = [data.draw(st.integers(-(shape[axis % len(shape)] // 2), 3))
                for axis in range(2 * len(shape))]
        model = node_model("Pad", [x, known(pads, "int64"), known(7, "float32")])
    _, found, right = both(model, {"x0": x})
    np.testing.assert_array_equal(found, right)


def quantization(rng, dtype, low=0.01, high=0.1):
    """A scale and a zero point."""
    info = np.iinfo(dtype)
    return (np.float32(rng.uniform(low, high)),
            np.asarray(rng.integers(info.min // 2, info.max // 2), dtype))


def layer(op, operands, attributes, dtype, rng, activation=None):
    """A model with an operator between DequantizeLinear and QuantizeLinear. Known operands are
    weights with a scale for each output, others are inputs with a scale of their own."""
    nodes, inputs, constants, names = [], [], [], []
    for number, each in enumerate(operands):
        array = each.array if isinstance(each, Known) else each
        name, extra = f"x{number}", {}
        if isinstance(each, Known):
            axis = int(op == "ConvTranspose")
            scales = rng.uniform(0.005, 0.02, array.shape[axis]).astype(np.float32)
            zero, extra = np.zeros(array.shape[axis], array.dtype), {"axis": axis}
            constants.append(numpy_helper.from_array(array, name))
        else:
            scales, zero = quantization(rng, array.dtype)
            inputs.append(helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        constants += [numpy_helper.from_array(np.asarray(scales), f"s{number}"),
                      numpy_helper.from_array(zero, f"z{number}")]
        names.append(f"r{number}")
        nodes.append(helper.make_node("DequantizeLinear", [name, f"s{number}", f"z{number}"],
                                      [f"r{number}"], **extra))
    nodes.append(helper.make_node(op, names, ["c"], **attributes))
    if activation:
        nodes.append(helper.make_node(activation, ["c"], ["a"]))
    scale, zero = quantization(rng, dtype, 0.05, 0.3)
    constants += [numpy_helper.from_array(np.asarray(scale), "sy"),
                  numpy_helper.from_array(zero, "zy")]
    nodes.append(helper.make_node("QuantizeLinear", ["a" if activation else "c", "sy", "zy"],
                                  ["y"]))
    return graph_model(nodes, inputs, ["y"], constants)


LAYERS = {              # shapes of an image and of weights; None is another input
    "Conv": [(4, 6, 6), (5, 4, 3, 3)], "Conv of signals": [(4, 12), (5, 4, 3)],
    "ConvTranspose": [(4, 5, 5), (4, 3, 2, 2)], "Gemm": [(), (7, 12)],
    "MatMul": [(3, 8), None],
    "Add": [(4, 6, 6), None], "Sub": [(4, 6, 6), None], "Mul": [(4, 6, 6), None],
    "Concat": [(4, 6, 6), None], "AveragePool": [(3, 6, 6)], "MaxPool": [(3, 6, 6)],
    "GlobalAveragePool": [(3, 6, 6)], "ReduceMean": [(3, 6, 6)], "Sigmoid": [(20,)],
    "Tanh": [(20,)], "HardSwish": [(20,)], "Relu": [(20,)]}
ATTRIBUTES = {"AveragePool": {"kernel_shape": [3, 3], "strides": [2, 2]},
              "MaxPool": {"kernel_shape": [2, 2]}, "Gemm": {"transB": 1},
              "ReduceMean": {"axes": [2, 3]}, "Concat": {"axis": 1}}


@given(st.sampled_from(sorted(LAYERS)), st.sampled_from(["int8", "uint8"]),
       st.sampled_from([None, None, "Relu"]), SEEDS)
@settings(max_examples=120)
def test_a_quantized_layer_computes_with_integers_within_a_step(op, dtype, activation, seed):
    rng = np.random.default_rng(seed)

    def integers(*shape, of=dtype):
        info = np.iinfo(of)
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(of)

    first, *second = LAYERS[op]
    x = integers(2, *first, *([12] if op == "Gemm" else []))
    operands = [x]
    if second and second[0] is None:
        operands.append(integers(2, 8, 5) if op == "MatMul" else integers(*x.shape))
    elif second:
        operands.append(Known(integers(*second[0], of="int8")))
    model = layer(op.split()[0], operands, ATTRIBUTES.get(op, {}), dtype, rng, activation)
    inputs = {f"x{number}": each for number, each in enumerate(operands)
              if not isinstance(each, Known)}
    graph, real, right = both(model, inputs)
    assert np.abs(real.astype(int) - right).max() <= 1
    after = run_passes(graph)
    assert not any(node.type.is_float for node in after.nodes.values())
    assert np.abs(evaluate(after, inputs)["y"].astype(int) - right).max() <= 1


def test_a_model_may_be_of_several_layers():
    """Convolution, relu, pool, sum and dense layer, each quantized: nothing real is left but the
    first and the last step."""
    rng = np.random.default_rng(0)
    one = numpy_helper.from_array(np.float32(0.05), "s")
    zero = numpy_helper.from_array(np.int8(3), "z")
    weights = [numpy_helper.from_array(rng.integers(-9, 9, shape).astype(np.int8), name)
               for name, shape in (("w", (4, 4, 3, 3)), ("d", (6, 4)))]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q0"])]
    for number, (op, names, attributes) in enumerate((
            ("Conv", ["q0", "w"], {"pads": [1] * 4}), ("Add", ["q1", "q0"], {}),
            ("GlobalAveragePool", ["q2"], {}), ("Flatten", ["q3"], {}),
            ("Gemm", ["q4", "d"], {"transB": 1}))):
        for name in names:
            nodes.append(helper.make_node("DequantizeLinear", [name, "s", "z"],
                                          [f"{name}.{number}"]))
        nodes.append(helper.make_node(op, [f"{name}.{number}" for name in names], [f"f{number}"],
                                      **attributes))
        nodes.append(helper.make_node("QuantizeLinear", [f"f{number}", "s", "z"],
                                      [f"q{number + 1}"]))
    nodes.append(helper.make_node("DequantizeLinear", ["q5", "s", "z"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 5, 5])
    model = graph_model(nodes, [x], ["y"], [one, zero, *weights])
    inputs = {"x": rng.normal(size=(1, 4, 5, 5)).astype(np.float32)}
    graph, real, right = both(model, inputs)
    np.testing.assert_allclose(real, right, atol=0.051)
    after = run_passes(graph)
    assert [type(node.operation).__name__ for node in after.nodes.values()
            if node.type.is_float] == ["Dequantize"]
    np.testing.assert_allclose(evaluate(after, inputs)["y"], right, atol=0.11)
