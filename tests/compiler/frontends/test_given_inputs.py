"""Shapes and values that users give for the inputs of model files."""

from __future__ import annotations

import re
import shlex

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import microtron
from microtron.base.errors import MicrotronError
from microtron.cli.options import ModelInputs
from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError

from ...command import bad, good
from .onnx.onnx_models import graph_model, runtime
from .tflite.tflite_files import Operator, Tensor, file_of, single


def value(name, shape, type_=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type_, shape)


def rate_model(sizes=(1, 4), rate=()):
    """A network that halves or repeats by its rate, in branches that read tensors from outside. As
    they give other shapes, the rate must be known."""
    def branch(name, factor):
        nodes = [helper.make_node("Constant", [], ["factor"], value_float=factor),
                 helper.make_node("Mul", ["shifted", "factor"], [f"{name}1"]),
                 helper.make_node("Concat", [f"{name}1"] * (1 if factor < 1 else 2), [name],
                                  axis=0)]
        return helper.make_graph(nodes, name, [], [value(name, None)])

    nodes = [helper.make_node("Add", ["x", "one"], ["shifted"]),
             helper.make_node("Equal", ["rate", "limit"], ["fast"]),
             helper.make_node("If", ["fast"], ["y"], then_branch=branch("a", 0.5),
                              else_branch=branch("b", 2.0))]
    return graph_model(nodes, [value("x", sizes), value("rate", rate, TensorProto.INT64)], ["y"],
                       [numpy_helper.from_array(np.float32([1]), "one"),
                        numpy_helper.from_array(np.int64(16000), "limit")])


@pytest.mark.parametrize("rate", [16000, 8000, np.int32(16000), [8000], np.array(8000, np.uint16)])
def test_a_value_chooses_the_branch_that_the_runtime_takes(rate):
    model = rate_model().SerializeToString()
    graph = read_onnx(model, "m", values={"rate": rate})
    assert list(graph.inputs) == ["x"]
    x = np.float32([[1, 2, 3, 4]])
    expected, = runtime(model).run(None, {"x": x, "rate": np.array(np.ravel(rate)[0], np.int64)})
    assert np.array_equal(evaluate(graph, {"x": x})["y"], expected)


@pytest.mark.parametrize(("given", "words"), [
    ({"rat": 1}, r"there is no input rat \(did you mean rate\?\); inputs are x, rate"),
    ({"rate": 1.5}, r"the value of rate is \[1.5\], but the input is int64"),
    ({"rate": True}, "but the input is int64"),
    ({"rate": 1 << 63}, "but the input is int64"),
    ({"rate": "16000"}, "must be a number or a list"),
    ({"rate": [1, [2]]}, "must be a number or a list"),
    ({"rate": []}, "must be a number or a list"),
    ({"rate": None}, "must be a number or a list"),
    ({"rate": [1, 2]}, r"has 2 numbers in shape \(2,\), but the input has the shape a single num"),
    ({"x": [1, 2, 3], "rate": 1}, r"has 3 numbers in shape \(3,\), but the input has .* 1,4"),
    ({"x": [[1, 2], [3, 4]], "rate": 1}, r"has 4 numbers in shape \(2, 2\), but"),
    ({"x": [1, 2, 3, np.nan], "rate": 1}, "but the input is float32"),
    ({"x": 1e39, "rate": 1}, "but the input is float32"),
    ({"x": np.zeros(5000), "rate": 1}, "a list of at most 4096"),
])
def test_values_that_do_not_fit_are_refused(given, words):
    with pytest.raises(GraphError, match=words):
        read_onnx(rate_model().SerializeToString(), "m", values=given)


def test_values_of_all_types():
    for dtype, number in (("int8", -128), ("uint8", 255), ("int32", -5), ("float16", 0.5),
                          ("float64", 3), ("bool", True), ("bool", 0)):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        model = graph_model([helper.make_node("Cast", ["v"], ["c"], to=TensorProto.FLOAT),
                             helper.make_node("Add", ["x", "c"], ["y"])],
                            [value("x", (3,)), value("v", ("n",), kind)], ["y"])
        graph = read_onnx(model.SerializeToString(), "m", values={"v": [number] * 3})
        x = np.float32([1, 2, 3])
        assert np.array_equal(evaluate(graph, {"x": x})["y"], x + np.float32(number)), dtype
    with pytest.raises(GraphError, match=r"the value of v is \[2, 2\], but the input is bool"):
        read_onnx(model.SerializeToString(), "m", values={"v": [2, 2]})


def test_the_shape_of_a_value_fixes_names_of_sizes():
    model = graph_model([helper.make_node("Add", ["x", "v"], ["y"])],
                        [value("x", (2, "n")), value("v", ("n",))], ["y"])
    data = model.SerializeToString()
    assert read_onnx(data, "m", values={"v": [1, 2, 3]}).inputs["x"].shape == (2, 3)
    with pytest.raises(GraphError, match="the size n is 4 and 3 in the shapes"):
        read_onnx(data, "m", {"x": (2, 4)}, {"v": [1, 2, 3]})


@pytest.mark.parametrize(("sizes", "proposed"), [
    ((-1, 3, -1, -1), "1,3,224,224"), ((0, 3, 48, 0), "1,3,48,224"), (("n", "t"), "1,512"),
    ((-1, "h", "w", 3), "1,224,224,3"), ((2, None, 64), "2,1,64"), (None, "1,3,224,224")])
def test_the_proposed_options_work(sizes, proposed, tmp_path):
    onnx.save(rate_model(sizes), tmp_path / "m.onnx")
    text = bad("inspect", tmp_path / "m.onnx")
    words = shlex.split(re.search("as in (.*)", text)[1])
    assert words == ["--shape", f"x={proposed}", "--value", "rate=16000"]
    assert "output" in good("compile", tmp_path / "m.onnx", *words, "--show", "graph")
    model = microtron.compile(tmp_path / "m.onnx", "tiny",
                              **ModelInputs([words[1]], [words[3]]).parse())
    assert list(model.inputs) == ["x"]
    assert f"shape:x={proposed} value:rate=16000" in model.provenance["options"]


def test_a_proposal_is_one_that_can_be_read():
    """A matrix product takes one size alone, which is not the first that is tried."""
    weights = numpy_helper.from_array(np.ones((16, 2), np.float32), "w")
    model = graph_model([helper.make_node("MatMul", ["x 1", "w"], ["y"])],
                        [value("x 1", ("n", None))], ["y"], [weights])
    with pytest.raises(GraphError, match=r"give one, as in --shape 'x 1=1,16'$"):
        read_onnx(model.SerializeToString(), "m")


def test_a_name_of_a_size_is_one_size_in_a_proposal():
    model = graph_model([helper.make_node("MatMul", ["x", "v"], ["y"])],
                        [value("x", ("n", "k")), value("v", ("k", 2))], ["y"])
    with pytest.raises(GraphError, match=r"inputs x, v have .* --shape x=1,512 --shape v=512,2$"):
        read_onnx(model.SerializeToString(), "m")
    with pytest.raises(GraphError, match=r"the input x has .* as in --shape v=5,2 --shape x=1,5$"):
        read_onnx(model.SerializeToString(), "m", {"v": (5, 2)})


@pytest.mark.parametrize("constant", [np.float32(np.nan), np.float32(np.inf), np.zeros((2, 2))])
def test_what_is_compared_may_be_anything(constant):
    """A value that is proposed comes from a comparison, if that is with one integer."""
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["a"])], "b", [],
                               [value("a", None)])
    nodes = [helper.make_node("Equal", ["rate", "limit"], ["same"]),
             helper.make_node("If", ["same"], ["y"], then_branch=branch, else_branch=branch)]
    limit = numpy_helper.from_array(np.asarray(constant, np.float32), "limit")
    model = graph_model(nodes, [value("x", ("n", 2)), value("rate", ())], ["y"], [limit])
    with pytest.raises(GraphError, match="give one, as in --shape x=1,2"):
        read_onnx(model.SerializeToString(), "m")


def test_a_decisive_input_is_named():
    with pytest.raises(GraphError, match="must be constant; --value rate=NUMBER makes it so"):
        read_onnx(rate_model().SerializeToString(), "m")


def test_options_are_checked(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(rate_model(), path)
    for given, words in ((["rate"], "--value 'rate' must be an input and numbers, as in rate=16"),
                         (["rate=1,,2"], "must be an input and numbers"),
                         (["rate=nan"], "must be an input and numbers"),
                         (["rate=0x10"], "must be an input and numbers"),
                         (["rate=1", "rate=2"], "--value names the input 'rate' twice"),
                         (["rate=true"], "the value of rate is [True], but the input is int64"),
                         (["rate=1e3"], "the value of rate is [1000.0], but the input is int64"),
                         (["x=true,1,2,3"], "must be a number or a list")):
        options = [each for value in given for each in ("--value", value)]
        assert words in bad("compile", path, *options)
    with pytest.raises(MicrotronError, match="shapes and values are for models that are read"):
        microtron.compile(read_onnx(rate_model().SerializeToString(), "m", values={"rate": 1}),
                          values={"rate": 1})
    with pytest.raises(MicrotronError, match="values is 3, but must be a mapping"):
        microtron.compile(path, values=3)


def open_tflite(shape=(1, 4, 1, 3), signature=(1, -1, -1, 3)):
    """A convolution of one tap and a sum over images of any size."""
    tensors = [Tensor(shape, name="x", signature=signature),
               Tensor.constant(np.arange(6).reshape(2, 1, 1, 3), "float32"), Tensor((1, 4, 1, 2)),
               Tensor.constant([1, 2]), Tensor((1, 2), name="y"),
               Tensor.constant([3, -4], "float32")]
    return file_of(tensors, [Operator("CONV_2D", [0, 1, 5], [2], "Conv2DOptions",
                                      {"StrideH": 1, "StrideW": 1}),
                             Operator("SUM", [2, 3], [4], "ReducerOptions")], [0], [4])


@pytest.mark.parametrize("size", [(1, 4, 1, 3), (1, 7, 5, 3), (1, 1, 1, 3)])
def test_open_sizes_of_a_tflite_file(size):
    from ai_edge_litert.interpreter import Interpreter

    x = np.random.default_rng(1).uniform(-1, 1, size).astype(np.float32)
    found = evaluate(read_tflite(open_tflite(), "m", {"x": size}), {"x": x})["y"]
    interpreter = Interpreter(model_content=open_tflite())
    interpreter.resize_tensor_input(0, size, strict=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    assert np.allclose(found, interpreter.get_tensor(4), atol=1e-4)


def test_sizes_that_a_tflite_file_does_not_leave_open():
    assert read_tflite(open_tflite(), "m").inputs["x"].shape == (1, 4, 1, 3)
    for shape, words in (((2, 4, 1, 3), r"does not fit 1,\?,\?,3"), ((1, 4, 3), "has 3 axes, but")):
        with pytest.raises(GraphError, match=words):
            read_tflite(open_tflite(), "m", {"x": shape})
    with pytest.raises(GraphError, match=r"no fixed shape; sizes of x \(1,\?,\?,3\) are open: "
                                         r"give them, as in --shape x=1,224,224,3$"):
        read_tflite(open_tflite((1, -1, -1, 3), ()), "m")
    assert read_tflite(open_tflite((1, -1, -1, 3), ()), "m", {"x": (1, 2, 2, 3)})
    pool = single("AVERAGE_POOL_2D", [Tensor((1, 1, 1, 1), name="x", signature=(1, -1, 1, 1))],
                  Tensor((1, 1, 1, 1)), "Pool2DOptions", FilterHeight=2, FilterWidth=1, StrideW=1,
                  StrideH=1, Padding=1)
    with pytest.raises(GraphError, match=r"sizes of x .* give them, as in --shape x=1,224,1,1$"):
        read_tflite(pool, "m")
    assert read_tflite(pool, "m", {"x": (1, 2, 1, 1)})


def test_a_value_in_the_place_of_a_tflite_input():
    tensors = [Tensor((2, 2), "int8", 0.5, name="x"), Tensor((2, 2), "int8", 0.5, name="b"),
               Tensor((2, 2), "int8", 1.0)]
    data = file_of(tensors, [Operator("ADD", [0, 1], [2], "AddOptions")], [0, 1], [2])
    whole, fixed = read_tflite(data, "m"), read_tflite(data, "m", values={"b": [1, 2, 3, -4]})
    assert list(fixed.inputs) == ["x"]
    x, b = np.int8([[5, 6], [7, -8]]), np.int8([[1, 2], [3, -4]])
    assert np.array_equal(evaluate(whole, {"x": x, "b": b})["t2"], evaluate(fixed, {"x": x})["t2"])
    for given, words in (({"b": 0.5}, "but the input is int8"), ({"c": 1}, "no input c; inputs")):
        with pytest.raises(GraphError, match=words):
            read_tflite(data, "m", values=given)
