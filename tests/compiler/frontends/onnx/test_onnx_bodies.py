"""Functions and control flow in ONNX models are read as what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import AttributeProto, TensorProto, helper, numpy_helper

import microtron
from microtron.compiler.frontends.onnx import reader
from microtron.compiler.frontends.onnx.read_onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.pointwise.binary import Binary
from microtron.compiler.graph.types import GraphError

from .onnx_models import graph_model, real, runtime

OWN = "org.example"


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def body(nodes, inputs, outputs, constants=()):
    return helper.make_graph(nodes, "body", inputs, outputs, list(constants))


def constant(name, values, dtype="float32"):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def agree(model, **inputs):
    """Our outputs are those of ONNX Runtime."""
    data = model.SerializeToString()
    graph = read_onnx(data)
    found = evaluate(graph, inputs)
    right = runtime(data).run(None, inputs)
    for name, other in zip(graph.outputs, right, strict=True):
        np.testing.assert_allclose(found[name], other, rtol=1e-5, atol=1e-6)
    return graph


@pytest.mark.parametrize("condition", [True, False])
def test_one_branch_is_read(condition):
    """It reads tensors from outside, and may have names that the other has too."""
    one = body([helper.make_node("Add", ["x", "c"], ["z"])], [], [value("z", [3])],
               [constant("c", 2)])
    other = body([helper.make_node("Mul", ["y0", "y0"], ["z"])], [], [value("z", [3])])
    nodes = [helper.make_node("Neg", ["x"], ["y0"]),
             helper.make_node("If", ["which"], ["y"], then_branch=one, else_branch=other)]
    model = graph_model(nodes, [value("x", [3])], ["y"], [constant("which", condition, bool)])
    graph = agree(model, x=real(3))
    kinds = {node.operation.kind.value for node in graph.nodes.values()
             if isinstance(node.operation, Binary)}
    assert kinds == {"add" if condition else "mul"}


def choosing(one, other, outputs=("y",), inputs=(), constants=()):
    """An If whose condition is whether the sum of x is positive."""
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
             helper.make_node("Greater", ["sum", "zero"], ["which"]),
             helper.make_node("If", ["which"], list(outputs), then_branch=one, else_branch=other)]
    return graph_model(nodes, [value("x", [3]), *inputs], list(outputs),
                       [constant("zero", 0), *constants])


PLUS, MINUS = np.array([1, 2, 3], np.float32), np.array([-1, 2, -3], np.float32)


def test_a_condition_that_is_computed_chooses_at_run_time():
    """Branches read from outside, have a branch of their own, and pass on what is outside."""
    deeper = body([helper.make_node("Exp", ["x"], ["v"])], [], [value("v", [3])])
    identity = body([helper.make_node("Identity", ["x"], ["u"])], [], [value("u", [3])])
    one = body([helper.make_node("Add", ["x", "c"], ["z"]),
                helper.make_node("ReduceMax", ["z"], ["largest"], keepdims=0),
                helper.make_node("Greater", ["largest", "c"], ["more"]),
                helper.make_node("If", ["more"], ["w"], then_branch=deeper, else_branch=identity)],
               [], [value("w", [3]), value("z", [3])], [constant("c", 4)])
    other = body([helper.make_node("Mul", ["x", "x"], ["z"]),
                  helper.make_node("Neg", ["x"], ["w"])], [], [value("w", [3]), value("z", [3])])
    model = choosing(one, other, ("y", "second"))
    for x in (PLUS, MINUS, PLUS / 100, MINUS * 50):
        agree(model, x=x)


@pytest.mark.parametrize("x", [PLUS, MINUS])
def test_indices_of_the_other_branch_end_nothing(x):
    """Whichever is not chosen would read outside its axis."""
    def taking(name):
        return body([helper.make_node("Gather", ["table", name], ["z"])], [], [value("z", [3])])

    where = [value("i", [3], TensorProto.INT64), value("j", [3], TensorProto.INT64)]
    model = choosing(taking("i"), taking("j"), inputs=where,
                     constants=[constant("table", [5, 6, 7, 8])])
    good, wrong = np.array([3, 0, -1]), np.array([4, 1 << 40, -9])
    inputs = {"i": good, "j": wrong} if x is PLUS else {"i": wrong, "j": good}
    graph = agree(model, x=x, **inputs)
    compiled = microtron.compile(graph, "tiny").run({"x": x, **inputs}, "functional")
    assert np.array_equal(compiled["y"], np.array([8, 5, 8], np.float32))
    with pytest.raises((IndexError, GraphError)):           # the chosen one's are as ever
        evaluate(graph, {"x": x, "i": wrong, "j": wrong})


@pytest.mark.parametrize(("shape", "kind", "words"), [
    ([2], "float32", r"branches give float32\[3\] and float32\[2\] as y"),
    ([3], "int64", r"branches give float32\[3\] and int64\[3\] as y")])
def test_branches_of_different_types_are_refused(shape, kind, words):
    one = body([helper.make_node("Neg", ["x"], ["z"])], [], [value("z", [3])])
    other = body([], [], [value("k", shape, helper.np_dtype_to_tensor_dtype(np.dtype(kind)))],
                 [constant("k", np.ones(shape), kind)])
    with pytest.raises(GraphError, match=words) as raised:
        read_onnx(choosing(one, other).SerializeToString())
    assert "the condition is" in str(raised.value)


def test_a_branch_that_lacks_a_result_is_refused():
    one = body([helper.make_node("Neg", ["x"], ["z"])], [], [value("z", [3])])
    other = body([], [], [])
    with pytest.raises(GraphError, match="branches give 1 and 0 results, but 1 are wanted"):
        read_onnx(choosing(one, other).SerializeToString())


def counting(steps, goes_on="still"):
    """A loop that sums up its steps, keeps each sum, and goes on while it is told to."""
    inner = [helper.make_node("Cast", ["step"], ["real"], to=TensorProto.FLOAT),
             helper.make_node("Add", ["total", "real"], ["sum"]),
             helper.make_node("Add", ["sum", "x"], ["shifted"]),
             helper.make_node("Less", ["step", "limit"], ["still"])]
    inside = body(inner, [value("step", [], TensorProto.INT64), value("go", [], TensorProto.BOOL),
                          value("total", [2])],
                  [value(goes_on, [], TensorProto.BOOL), value("sum", [2]),
                   value("shifted", [2])], [constant("limit", 3, "int64")])
    node = helper.make_node("Loop", ["count", "first", "start"], ["last", "all"], body=inside)
    return graph_model([node], [value("x", [2])], ["last", "all"], [
        constant("count", steps, "int64"), constant("first", True, bool),
        constant("start", [1, 2])])


@pytest.mark.parametrize("steps", [1, 3, 9])
def test_every_step_of_a_loop_is_read(steps):
    agree(counting(steps), x=real(2))


def test_a_loop_of_no_steps_gives_what_it_got():
    graph = read_onnx(counting(0).SerializeToString())
    found = evaluate(graph, {"x": real(2)})
    assert found["last"].tolist() == [1, 2]
    assert found["all"].shape[0] == 0


@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_every_step_of_a_scan_is_read(axis, backwards):
    inner = [helper.make_node("Add", ["total", "part"], ["sum"]),
             helper.make_node("Mul", ["sum", "part"], ["kept"])]
    inside = body(inner, [value("total", [3]), value("part", [3])],
                  [value("sum", [3]), value("kept", [3])])
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "all"], body=inside, num_scan_inputs=1,
        scan_input_axes=[axis], scan_input_directions=[backwards], scan_output_axes=[axis],
        scan_output_directions=[1 - backwards])
    shape = [4, 3] if axis == 0 else [3, 4]
    agree(graph_model([node], [value("start", [3]), value("x", shape)], ["last", "all"]),
          start=real(3), x=real(*shape))


def function(name, inputs, outputs, nodes, attributes=(), defaults=()):
    return helper.make_function(OWN, name, inputs, outputs, nodes, [
        helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)], attributes, defaults)


def with_functions(nodes, functions, inputs, outputs):
    model = graph_model(nodes, inputs, outputs)
    model.opset_import.append(helper.make_opsetid(OWN, 1))
    model.functions.extend(functions)
    return model


def with_alpha(op, x, y, of):
    """A node whose attribute alpha is one of a function."""
    node = helper.make_node(op, [x], [y])
    node.attribute.add(name="alpha", type=AttributeProto.FLOAT, ref_attr_name=of)
    return node


def leaky():
    node, other = with_alpha("LeakyRelu", "a", "t", "slope"), with_alpha("Elu", "t", "b", "bend")
    return function("Leaky", ["a"], ["b"], [node, other], ["bend"],
                    [helper.make_attribute("slope", 0.5)])


def test_functions_of_a_model_have_attributes_with_and_without_defaults():
    twice = function("Twice", ["a", "unused"], ["b"], [
        helper.make_node("Leaky", ["a"], ["t"], domain=OWN, bend=0.25),
        helper.make_node("Leaky", ["t"], ["b"], domain=OWN, slope=0.1)])
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain=OWN),
             helper.make_node("Twice", ["t", "x"], ["y"], domain=OWN)]
    agree(with_functions(nodes, [leaky(), twice], [value("x", [5])], ["y"]), x=real(5))


def test_an_operator_that_onnx_defines_as_a_function_is_read_as_it():
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2])
    agree(graph_model([node], [value("x", [2, 3, 4])], ["y"]), x=real(2, 3, 4))


def refused(model, words):
    with pytest.raises(GraphError, match=words) as raised:
        read_onnx(model.SerializeToString(), "model")
    assert "\n" not in str(raised.value)


def test_a_function_that_calls_itself_is_refused():
    again = function("Again", ["a"], ["b"], [helper.make_node("Again", ["a"], ["b"], domain=OWN)])
    node = helper.make_node("Again", ["x"], ["y"], domain=OWN)
    refused(with_functions([node], [again], [value("x", [1])], ["y"]), "16 deep")


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(reader, "MOST_EXPANDED", 1000)


@pytest.mark.usefixtures("few")
def test_a_few_functions_that_stand_for_many_nodes_are_refused():
    functions = [function("F0", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])])]
    for level in range(1, 12):
        nodes = [helper.make_node(f"F{level - 1}", [f"t{each}"], [f"t{each + 1}"], domain=OWN)
                 for each in range(8)]
        functions.append(function(f"F{level}", ["t0"], ["t8"], nodes))
    node = helper.make_node("F11", ["x"], ["y"], domain=OWN)
    refused(with_functions([node], functions, [value("x", [1])], ["y"]), "more than 1000 nodes")


@pytest.mark.usefixtures("few")
def test_loops_in_loops_without_end_are_refused():
    inside = body([], [value("step", [], TensorProto.INT64), value("go", [], TensorProto.BOOL)],
                  [value("go", [], TensorProto.BOOL)])
    for _ in range(3):
        node = helper.make_node("Loop", ["", ""], [], body=inside)
        inside = body([node], [value("step", [], TensorProto.INT64),
                               value("go", [], TensorProto.BOOL)],
                      [value("go", [], TensorProto.BOOL)])
    model = graph_model([node, helper.make_node("Neg", ["x"], ["y"])], [value("x", [1])], ["y"])
    refused(model, "more than 1000 nodes")


def test_a_loop_that_numbers_decide_about_is_refused():
    model = counting(9)
    model.graph.node[0].input[1] = "flag"
    model.graph.input.append(value("flag", [], TensorProto.BOOL))
    refused(model, "whether a loop goes on is 'flag', which is computed")


@pytest.mark.parametrize(("change", "words"), [
    ({"num_scan_inputs": 0}, "0 of 2 operands are scanned"),
    ({"num_scan_inputs": 3}, "3 of 2 operands are scanned"),
    ({"scan_input_axes": [0, 0]}, "an axis and a direction for each"),
    ({"scan_input_axes": [5]}, "axis is 5"),
    ({"body": body([], [value("a", [3])], [value("a", [3])])}, "a body has 1 inputs")])
def test_a_scan_that_makes_no_sense_is_refused(change, words):
    inside = body([helper.make_node("Add", ["a", "b"], ["c"])],
                  [value("a", [3]), value("b", [3])], [value("c", [3])])
    settings = {"body": inside, "num_scan_inputs": 1} | change
    node = helper.make_node("Scan", ["s", "x"], ["y"], **settings)
    refused(graph_model([node], [value("s", [3]), value("x", [4, 3])], ["y"]), words)
