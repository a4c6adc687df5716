"""What is wrong with an ONNX model is said in one line, all at once where it can be, and nothing
in a file makes reading it long or large."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize, Reinterpret
from microtron.compiler.graph.types import GraphError

from .onnx_models import graph_model, known, node_model

FUZZ = Path(__file__).parent / "onnx_fuzz.py"
QUICK, LONG = 300, 20_000       # altered models in `make test` and in `make soak`
X = np.zeros((1, 4, 8, 8), np.float32)


def refused(model, *words, **settings):
    with pytest.raises(GraphError) as raised:
        read_onnx(model if isinstance(model, bytes) else model.SerializeToString(), "m.onnx",
                  **settings)
    message = str(raised.value)
    assert message.startswith("m.onnx: ")
    assert message.isprintable()
    for each in words:
        assert each in message
    return message


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def test_what_is_no_model():
    whole = node_model("Relu", [X]).SerializeToString()
    for data in (b"", b"\x00" * 40, b"not a model", whole[:len(whole) // 2]):
        refused(data, "this is no ONNX model")


def test_a_name_that_is_no_text():
    whole = node_model("Relu", [X]).SerializeToString()
    refused(whole.replace(b"Relu", b"Rel\xb5"), "is unknown")


def test_all_that_is_unknown_is_listed_at_once():
    half = helper.make_tensor("h", TensorProto.BFLOAT16, [3], np.zeros(3))
    nodes = [helper.make_node("Frobnicate", ["x"], ["a"], "first"),
             helper.make_node("Frobnicate", ["a"], ["b"], "second"),
             helper.make_node("Conv", ["b", "h"], ["c"], "third", kernel=3),
             helper.make_node("Swap", ["c"], ["d"], "fourth", domain="org.example"),
             helper.make_node("Upsample", ["d", "h"], ["y"], "fifth"),
             helper.make_node("conv_transpose", ["d"], ["z"], "sixth")]
    message = refused(
        graph_model(nodes, [value("x", [1])], ["y"], [half]),
        "operator 'Frobnicate' is unknown ('first', 'second')",
        "operator 'org.example.Swap' is unknown ('fourth')",
        "operator 'conv_transpose' is unknown ('sixth') (did you mean ConvTranspose or ",
        "Conv has an unknown attribute 'kernel', known are auto_pad, dilations",
        "Upsample is supported from opset 1 to 9, but this is 17 ('fifth')",
        "type BFLOAT16 is unknown, known are FLOAT, DOUBLE",
        "docs/models.md lists the operators that are known")
    assert message.count("Frobnicate") == 1


def test_an_opset_that_nobody_knows():
    refused(node_model("Relu", [X], opset=99), "this is opset 99, but the newest that is known is ")
    model = node_model("Relu", [X])
    del model.opset_import[:]
    refused(model, "the opset is 0, but must be from 1 on")


def test_open_sizes_are_fixed_by_shapes():
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    model = graph_model(relu, [value("x", ["batch", 3, "side", "side"])], ["y"])
    refused(model, "the input x has no fixed shape; give one, as in --shape x=1,3,224,224")
    graph = read_onnx(model.SerializeToString(), "m", {"x": (2, 3, 9, 9)})
    assert graph.type_of("y").shape == (2, 3, 9, 9)
    refused(model, "has 2 axes, but must have 4", shapes={"x": (2, 3)})
    refused(model, "does not fit ?,3,?,?", shapes={"x": (2, 4, 9, 9)})
    refused(model, "inputs are x", shapes={"z": (2, 4, 9, 9)})
    refused(model, "does not fit", shapes={"x": (-1, 3, 9, 9)})
    refused(graph_model(relu, [value("x", None)], ["y"]), "--shape x=1,3,224,224")
    both = [helper.make_node("Add", ["x", "z"], ["y"])]
    model = graph_model(both, [value("x", ["n", 2]), value("z", ["n", 2])], ["y"])
    graph = read_onnx(model.SerializeToString(), "m", {"x": (5, 2)})
    assert graph.type_of("z").shape == (5, 2)


def test_external_data_is_refused_and_never_read(tmp_path, monkeypatch):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4],
                         data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    model = graph_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [4])], ["y"],
                        [tensor])
    monkeypatch.setattr("builtins.open", None)
    refused(model, "the tensor 'w' is in another file; save the model as a single one")


def test_graphs_must_be_in_order_and_without_a_cycle():
    nodes = [helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    refused(graph_model(nodes, [], ["b"]), "Relu 'a': 'b' is read before it is computed")
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["x"], ["a"])]
    refused(graph_model(nodes, [value("x", [1])], ["a"]), "'a' is computed twice")
    refused(graph_model([], [value("x", [1])], ["nowhere"]), "'nowhere' is read before")
    refused(graph_model([], [value("x", [1])], []), "no output")


WRONG = [
    ("Conv", [X, known(np.zeros((2, 3, 3, 3), np.float32))], {}, "the input has 4 channels"),
    ("Conv", [X, known(np.zeros((2, 4, 3, 3), np.float32))], {"pads": [1]}, "pads are (1,)"),
    ("Conv", [X, known(np.zeros((2, 4, 3, 3), np.float32))], {"strides": [0, 1]}, "strides is"),
    ("Conv", [X, known(np.zeros((2, 4, 3, 3), np.float32))], {"group": "a"}, "group must be INT"),
    ("Conv", [X, known(np.zeros((2, 4, 3, 3), np.float32))], {"auto_pad": "UP"}, "must be one of"),
    ("Conv", [X, known(np.zeros((2, 4, 3, 3), np.float32))], {"kernel_shape": [2, 2]}, "weights"),
    ("Conv", [X[0, 0], X], {}, "3 or 4 axes"), ("Conv", [X], {}, "operand 1 is missing"),
    ("MaxPool", [X], {}, "kernel_shape is missing"),
    ("MaxPool", [X], {"kernel_shape": [9, 9]}, "larger than the padded input"),
    ("MaxPool", [X], {"kernel_shape": [1 << 40] * 2, "pads": [1 << 40] * 4}, "has more than"),
    ("MaxPool", [X], {"kernel_shape": [1, 2], "pads": [0, 1 << 21] * 2}, "windows along a side"),
    ("Concat", [X[0], X[0, 0]], {"axis": 2}, "cannot be joined"),
    ("AveragePool", [X], {"kernel_shape": [2, 2], "pads": [5] * 4}, "windows outside the image"),
    ("Reshape", [X, known([3, -1], "int64")], {}, "cannot become"),
    ("Reshape", [X, known([0] * 5, "int64")], {}, "keeps sizes"),
    ("Reshape", [X, known([-1, 0], "int64")], {"allowzero": 1}, "nothing can be meant by -1"),
    ("Reshape", [X, np.zeros(1, np.int64)], {}, "must be constant"),
    ("Transpose", [X], {"perm": [0, 1]}, "order is"),
    ("Concat", [X], {"axis": 9}, "axis is 9"), ("Split", [X], {"axis": 7}, "axis is 7"),
    ("Gather", [X, known(9, "int64")], {}, "but the axis has 1"),
    ("Gather", [X, known([9, 0], "int64")], {"axis": 1}, "from 0 to 9, but the axis has 4"),
    ("Tile", [X, known([1 << 40] * 4, "int64")], {}, "elements has more than"),
    ("Expand", [X, known([1 << 40, 1, 1, 1, 1], "int64")], {}, "elements has more than"),
    ("Range", [known(0, "int64"), known(1 << 60, "int64"), known(1, "int64")], {}, "more than"),
    ("Range", [known(0, "int64"), known(9, "int64"), known(0, "int64")], {}, "has no end"),
    ("ConstantOfShape", [known([1 << 62], "int64")], {}, "elements has more than"),
    ("Pad", [X, known([-9] * 8, "int64")], {}, "cut off more than there is"),
    ("Pad", [X, known([9] * 8, "int64")], {"mode": "reflect"}, "show more than there is"),
    ("Pad", [X, known([1], "int64")], {}, "two for each of 4 axes"),
    ("Resize", [X, None, known([1, 1, 2], "float32")], {}, "must be 4 numbers above zero"),
    ("Resize", [X, None, known([1, 1, 2, 2], "float32")],
     {"coordinate_transformation_mode": "corners"},
     "must be one of tf_crop_and_resize, half_pixel"),
    ("Add", [X, np.zeros(3, np.int64)], {}, "are float32 and int64, but must be alike"),
    ("Add", [X, np.zeros(3, np.float32)], {}, "do not fit each other"),
    ("Cast", [X], {"to": 16}, "BFLOAT16 is not supported"),
    ("DFT", [X], {}, "the last axis must have 1 or 2 parts"),
    ("DFT", [np.zeros((1, 4, 1), np.float32)], {"axis": 2}, "has the parts of each sample"),
    ("DFT", [np.zeros((1, 1 << 13, 1), np.float32)], {}, "which is too large"),
    ("DFT", [np.zeros((1, 8, 2), np.float32)], {"onesided": 1}, "samples have imaginary parts"),
    ("DFT", [np.zeros((1, 8, 2), np.float32)], {"onesided": 1, "inverse": 1}, "half a spectrum"),
    ("STFT", [np.zeros((1, 8, 1), np.float32), known(2)], {}, "a window or a frame_length"),
    ("STFT", [np.zeros((1, 8, 1), np.float32), known(0), None, known(4)], {}, "frame_step is (0,)"),
    ("STFT", [np.zeros((1, 4, 1), np.float32), known(1), None, known(8)], {}, "has 0 frames of 8"),
    ("Exp", [np.zeros(3, np.int64)], {}, "operand 0 is int64, which Exp does not take"),
    ("Gemm", [X, X], {}, "both sides must be matrices"),
    ("QuantizeLinear", [X, np.float32(1)], {}, "the scale is 'x1', which is computed"),
    ("QuantizeLinear", [X, known(-1, "float32")], {}, "must be positive numbers"),
    ("QuantizeLinear", [X, known([1, 2], "float32")], {}, "2 scales for axis 1"),
    ("DequantizeLinear", [known([1], "int8"), known(1, "float64")], {},
     "operand 1 is float64, which DequantizeLinear does not take"),
    ("BatchNormalization", [X] * 5, {}, "the result 'y1' is not supported", 2),
    ("Trilu", [X, known([], "int64")], {}, "must be a single number"),
    ("NonMaxSuppression", [X, X, known([], "int64")], {}, "must be a single number"),
    ("MeanVarianceNormalization", [np.zeros(3, np.int64)], {}, "MeanVarianceNormalization"),
    ("BatchNormalization", [X] * 5, {"training_mode": 1}, "do not fit each other"),
]


@pytest.mark.parametrize("number", range(len(WRONG)), ids=lambda each: f"{WRONG[each][0]}-{each}")
def test_a_node_that_makes_no_sense(number):
    op, operands, attributes, words, *outputs = WRONG[number]
    model = node_model(op, operands, attributes, outputs=outputs[0] if outputs else 1)
    refused(model, f"{op} 'node': ", words)


def test_tensors_must_have_the_numbers_that_they_say():
    for tensor, words in (
            (TensorProto(name="w", data_type=1, dims=[1 << 40], raw_data=b"\0" * 8), "has 8 bytes"),
            (TensorProto(name="w", data_type=1, dims=[3], float_data=[1.0]), "has 1 numbers"),
            (TensorProto(name="w", data_type=1, dims=[-1]), "at most 8 axes"),
            (TensorProto(name="w", data_type=1, dims=[1] * 9, float_data=[1.0]), "at most 8 axes")):
        refused(graph_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [4])], ["y"],
                            [tensor]), words)


def test_arithmetic_on_shapes_is_done_while_reading():
    """Shape → Gather → Unsqueeze → Concat → Reshape, as exporters write a flatten."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("Gather", ["s", "zero"], ["n"]),
             helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
             helper.make_node("Concat", ["n1", "rest"], ["to"], axis=0),
             helper.make_node("Reshape", ["x", "to"], ["y"])]
    constants = [numpy_helper.from_array(np.asarray(each), name) for name, each in (
        ("zero", 0), ("axes", [0]), ("rest", [-1]))]
    model = graph_model(nodes, [value("x", ["n", 3, 4])], ["y"], constants)
    graph = read_onnx(model.SerializeToString(), "m", {"x": (2, 3, 4)})
    assert list(graph.nodes) == ["y"]
    assert graph.type_of("y").shape == (2, 12)


def test_so_much_is_not_computed_while_reading():
    """Many large constants: the first are computed, the others are left to run time."""
    nodes = [helper.make_node("ConstantOfShape", ["shape"], [f"c{each}"]) for each in range(40)]
    nodes += [helper.make_node("Neg", [f"c{each}"], [f"d{each}"]) for each in range(40)]
    shape = numpy_helper.from_array(np.array([1 << 19]), "shape")
    graph = read_onnx(graph_model(nodes, [], ["d0", "d39"], [shape]).SerializeToString())
    assert sum(each.type.size for each in graph.constants.values()) < 1 << 24
    assert "d39" in graph.nodes


def test_an_output_may_be_an_input_or_a_constant_under_another_name():
    nodes = [helper.make_node("Identity", ["x"], ["y"]),
             helper.make_node("Identity", ["c"], ["z"])]
    constant = numpy_helper.from_array(np.float32([5]), "c")
    graph = read_onnx(graph_model(nodes, [value("x", [2])], ["y", "z", "x"], [constant]
                                  ).SerializeToString())
    found = evaluate(graph, {"x": np.float32([1, 2])})
    assert {name: each.tolist() for name, each in found.items()} == {
        "y": [1, 2], "z": [5], "x": [1, 2]}


def test_integers_of_an_input_get_their_scale_from_what_reads_them():
    scale, other = (numpy_helper.from_array(np.float32(each), name)
                    for name, each in (("s", 0.5), ("t", 2)))
    nodes = [helper.make_node("DequantizeLinear", ["x", "s"], ["a"]),
             helper.make_node("DequantizeLinear", ["x", "t"], ["b"])]
    model = graph_model(nodes, [value("x", [3], TensorProto.INT8)], ["a", "b"], [scale, other])
    graph = read_onnx(model.SerializeToString())
    assert graph.inputs["x"].quantization.scale == 0.5
    assert [type(node.operation) for node in graph.nodes.values()] == [
        Dequantize, Reinterpret, Dequantize]
    found = evaluate(graph, {"x": np.int8([1, -2, 3])})
    assert found["a"].tolist() == [0.5, -1, 1.5]
    assert found["b"].tolist() == [2, -4, 6]


MANY = """
import resource
from onnx import TensorProto, helper
from microtron.compiler.frontends.onnx import read_onnx

resource.setrlimit(resource.RLIMIT_CPU, (12, 12))
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
x = helper.make_tensor_value_info("x", TensorProto.INT8, [4])
scales = [helper.make_tensor(f"s{each}", TensorProto.FLOAT, [], [1 + each])
          for each in range(10_000)]
nodes = [helper.make_node("DequantizeLinear", ["x", each.name], [""]) for each in scales]
nodes += [helper.make_node("Relu", ["x"], ["y"])]
output = helper.make_empty_tensor_value_info("y")
model = helper.make_model(helper.make_graph(nodes, "g", [x], [output], scales))
print(len(read_onnx(model.SerializeToString()).nodes))
"""


def test_time_grows_no_faster_than_the_file():
    """Many tensors that would all have the same name."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) == 20_001


def alter(seed, count):
    """In a process of its own, whose time and memory have limits."""
    done = subprocess.run([sys.executable, FUZZ, str(seed), str(count)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{count} models" in done.stdout


def test_altered_models_are_read_or_refused_in_one_line():
    alter(0, QUICK)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_altered_models_are_read_or_refused_in_one_line(seed):
    alter(seed, LONG // 4)
