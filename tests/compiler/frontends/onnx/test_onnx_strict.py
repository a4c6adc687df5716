"""Models that contradict ONNX: what its checker and ONNX Runtime both refuse is refused, in one
line; what they take has its meaning."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, defs, helper, numpy_helper, shape_inference

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError

from .onnx_models import Known, graph_model, node_model, real, runtime
from .test_onnx_operators import CASES, QUANTIZED


def value(name, shape, type_=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type_, shape)


def network():
    """A convolution, a product and a recurrent layer."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("Reshape", ["r", "s"], ["f"], "reshape"),
             helper.make_node("Gemm", ["f", "g"], ["y"], "gemm", transB=1),
             helper.make_node("LSTM", ["t", "u", "v"], ["z"], "lstm", hidden_size=5)]
    constants = {"w": real(2, 3, 3, 3), "b": real(2), "s": np.array([1, 32]), "g": real(7, 32),
                 "u": real(1, 20, 3), "v": real(1, 20, 5)}
    model = graph_model(nodes, [value("x", (1, 3, 4, 4)), value("t", (2, 1, 3))], ["y", "z"],
                        [numpy_helper.from_array(each, name) for name, each in constants.items()])
    del model.graph.output[:]
    model.graph.output.extend([value("y", (1, 7)), value("z", (2, 1, 1, 5))])
    return model


def refusal(model):
    """The line with which a model is refused, or nothing."""
    try:
        read_onnx(model.SerializeToString(), "m")
    except GraphError as error:
        return str(error)
    return ""


def is_taken(model):
    """Whether ONNX's checker or ONNX Runtime takes a model."""
    try:
        checker.check_model(model)
        return True
    except checker.ValidationError:
        pass
    try:
        runtime(model.SerializeToString())
        return True
    except Exception:
        return False


def attribute(model, node, name):
    return next(each for each in model.graph.node[node].attribute if each.name == name)


def add_default(model, shape, type_=TensorProto.FLOAT):
    model.graph.input.append(value("b", shape, type_))


CHANGES = {
    "an extra operand": (lambda m: m.graph.node[1].input.append("b"), "Relu has 2 operands, but"),
    "an extra empty operand": (lambda m: m.graph.node[0].input.append(""), "Conv has 4 operands"),
    "an extra result": (lambda m: m.graph.node[1].output.append("n"), "Relu has 2 results, but"),
    "the same result twice": (lambda m: m.graph.node[4].output.extend(["z"]), "computed twice"),
    "an attribute twice": (
        lambda m: m.graph.node[3].attribute.append(m.graph.node[3].attribute[0]),
        "Gemm has the attribute 'transB' 2 times ('gemm')"),
    "an attribute with two values": (
        lambda m: setattr(attribute(m, 3, "transB"), "f", 1.0), "'transB' of Gemm has several"),
    "an attribute without a type": (
        lambda m: setattr(attribute(m, 3, "transB"), "type", 0), "transB must be INT"),
    "another type of an output": (
        lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", 7),
        "the output 'y' is declared as INT64, but is FLOAT"),
    "an output that is a sequence": (
        lambda m: m.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(
            helper.make_tensor_type_proto(1, None))), "'y' is declared as a sequence, but is"),
    "opset 0": (lambda m: setattr(m.opset_import[0], "version", 0), "the opset is 0, but must be"),
    "opset -3": (lambda m: setattr(m.opset_import[0], "version", -3), "the opset is -3, but must"),
    "no opset": (lambda m: m.ClearField("opset_import"), "the opset is 0, but must be from 1"),
    "opset 99": (lambda m: setattr(m.opset_import[0], "version", 99), "this is opset 99, but"),
    "two opsets": (lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx", 12)),
                   "opsets 17 and 12 of the domain 'ai.onnx' are both imported"),
    "no IR version": (lambda m: m.ClearField("ir_version"), "the IR version is 0, but must be"),
    "a new IR version": (lambda m: setattr(m, "ir_version", 99), "the IR version is 99"),
    "another hidden_size": (lambda m: setattr(attribute(m, 4, "hidden_size"), "i", 4),
                            "hidden_size is 4, but the recurrent weights have 5"),
    "hidden_size 0": (lambda m: setattr(attribute(m, 4, "hidden_size"), "i", 0),
                      "hidden_size is 0, but"),
    "another type of a default": (lambda m: add_default(m, (2,), 3), "declared as INT8 of shape"),
    "another shape of a default": (lambda m: add_default(m, (3,)), "but its default is FLOAT of"),
    "a shape of int32": (
        lambda m: m.graph.initializer[2].CopyFrom(numpy_helper.from_array(
            np.array([1, 32], np.int32), "s")), "operand 1 is int32, which Reshape does not take"),
    "weights of another type": (
        lambda m: m.graph.initializer[3].CopyFrom(numpy_helper.from_array(
            np.ones((7, 32)), "g")), "operands 0 and 1 are float32 and float64, but must be alike"),
    "numbers twice": (lambda m: m.graph.initializer[1].float_data.extend([1, 2]),
                      "the tensor 'b' has raw bytes and numbers beside them"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_contradicts_onnx_is_refused(name):
    change, words = CHANGES[name]
    model = network()
    assert not refusal(model)
    change(model)
    assert words in refusal(model)


TAKEN = {
    "an output twice": lambda m: m.graph.output.append(m.graph.output[0]),
    "an output without a type": lambda m: m.graph.output[0].ClearField("type"),
    "another shape of an output": lambda m: setattr(
        m.graph.output[0].type.tensor_type.shape.dim[1], "dim_value", 8),
    "two nodes of one name": lambda m: setattr(m.graph.node[1], "name", "conv"),
    "a default": lambda m: add_default(m, (2,)),
    "no name of the graph": lambda m: m.graph.ClearField("name"),
    "an opset of no operator": lambda m: m.opset_import.append(helper.make_opsetid("com.foo", 1)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_others_take_keeps_its_meaning(name):
    whole, model = network(), onnx.ModelProto()
    model.CopyFrom(whole)
    TAKEN[name](model)
    assert is_taken(model)
    inputs = {"x": real(1, 3, 4, 4), "t": real(2, 1, 3)}
    found = read_onnx(model.SerializeToString(), "m")
    assert found.outputs == ("y", "z")
    expected = evaluate(read_onnx(whole.SerializeToString(), "m"), inputs)
    for each, array in evaluate(found, inputs).items():
        assert np.array_equal(array, expected[each])


def case_model(case):
    op, operands, attributes, settings = (*case, {}, {})[:4]
    return node_model(op, operands, attributes, **settings)


def of_kind(cases):
    """One case of each operator."""
    return list({(case[0], str((*case, {}, {})[3].get("domain"))): case for case in cases}.values())


@pytest.mark.parametrize("case", of_kind([*CASES, *QUANTIZED]), ids=lambda each: each[0])
def test_nodes_with_too_much_are_refused(case):
    """An operand more than there may be, the attributes twice, a result more."""
    whole = case_model(case)
    node = whole.graph.node[0]
    assert not refusal(whole)
    version = next(each.version for each in whole.opset_import if each.domain == node.domain)
    most = most_out = 12
    if not node.domain:
        schema = defs.get_schema(node.op_type, version, "")
        most, most_out = schema.max_input, schema.max_output
    name = next(filter(None, node.input), "")
    if name and most < 100:
        model = onnx.ModelProto()
        model.CopyFrom(whole)
        more = model.graph.node[0].input
        more.extend([""] * (most - len(more)))
        more.append(name)
        assert "operands, but" in refusal(model)
        assert not is_taken(model)
    if most_out < 100 and not node.domain:
        model = onnx.ModelProto()
        model.CopyFrom(whole)
        more = model.graph.node[0].output
        more.extend([f"more{number}" for number in range(most_out + 1 - len(more))])
        assert "results, but" in refusal(model)
    for each in node.attribute[:1]:
        model = onnx.ModelProto()
        model.CopyFrom(whole)
        model.graph.node[0].attribute.append(each)
        assert "2 times" in refusal(model)


@pytest.mark.parametrize(
    "case", [each for each in of_kind(CASES) if "domain" not in (*each, {}, {})[3]],
    ids=lambda each: each[0])
def test_operands_of_other_types_are_refused_or_taken_by_all(case):
    """Each operand in each other type: a graph only where ONNX's own inference accepts it."""
    op, operands, attributes, settings = (*case, {}, {})[:4]
    for number, each in enumerate(operands):
        if each is None:
            continue
        array = each.array if isinstance(each, Known) else each
        for dtype in ("float64", "int32", "bool", "uint8"):
            with np.errstate(invalid="ignore"):     # of NaN to integers
                other = array.astype(dtype)
            changed = [*operands]
            changed[number] = Known(other) if isinstance(each, Known) else other
            model = node_model(op, changed, attributes, **settings)
            if refusal(model):
                continue
            shape_inference.infer_shapes(model, check_type=True)    # raises where types are wrong
