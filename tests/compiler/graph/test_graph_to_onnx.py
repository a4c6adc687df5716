"""Graphs as ONNX files to look at: every node, tensor, setting, scale and number is in them."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import numpy_helper

from microtron.base.errors import MicrotronError
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.dump_graphs import CONSTANTS, dump_graphs, make_folder
from microtron.compiler.graph.graph import Constant, Graph, Node
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Clamp
from microtron.compiler.graph.records import to_plain_data
from microtron.compiler.graph.types import TensorType
from microtron.compiler.passes.pipeline import PASSES, run_passes

from .random_graphs import networks


def check_file(path, graph):
    """A file shows a graph as it is, and onnx takes it for sound."""
    onnx.checker.check_model(str(path))
    model = onnx.load(path)                     # with the constants beside it
    found = model.graph
    assert [(each.op_type, each.output[0], each.domain) for each in found.node] == [
        (type(node.operation).__name__, name, "microtron") for name, node in graph.nodes.items()]
    for each, node in zip(found.node, graph.nodes.values(), strict=True):
        assert tuple(filter(None, each.input)) == node.operation.operands()
        assert each.doc_string == node.origin
        assert attributes(each) == expected_attributes(node.operation)
    constants = {each.name: numpy_helper.to_array(each) for each in found.initializer}
    for name, constant in graph.constants.items():
        assert np.array_equal(constants[name], constant.array)
        assert constants[name].dtype == constant.array.dtype
    shapes = {each.name: (onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type),
                          tuple(axis.dim_value for axis in each.type.tensor_type.shape.dim))
              for each in (*found.input, *found.output, *found.value_info)}
    for name in (*graph.inputs, *graph.nodes):
        assert shapes[name] == (np.dtype(graph.type_of(name).dtype), graph.type_of(name).shape)
    check_quantization(found, graph, constants)


def attributes(node):
    found = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    return {name: each.decode() if isinstance(each, bytes) else each
            for name, each in found.items()}


def expected_attributes(operation):
    plain = to_plain_data(operation)
    found = {}
    for each in fields(operation):
        value = plain[each.name]
        if each.metadata.get("operand") or value is None:
            continue
        whole = isinstance(value, int) or (
            isinstance(value, list) and value and all(isinstance(one, int) for one in value))
        found[each.name] = value if whole or isinstance(value, str) else json.dumps(value)
    return found


def check_quantization(found, graph, constants):
    told = {each.tensor_name: {entry.key: entry.value
                               for entry in each.quant_parameter_tensor_names}
            for each in found.quantization_annotation}
    quantized = {name: each.quantization for name, each in graph.types.items()
                 if each.quantization is not None}
    assert set(told) == set(quantized)
    for name, each in quantized.items():
        assert constants[told[name]["SCALE_TENSOR"]].ravel().tolist() == list(each.scales)
        assert constants[told[name]["ZERO_POINT_TENSOR"]].ravel().tolist() == list(
            each.zero_points)
        assert told[name].get("axis") == (None if each.axis is None else str(each.axis))


@settings(max_examples=10)
@given(networks())
def test_the_files_of_a_random_network_show_the_graph_after_each_pass(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("passes")
    graphs = [("graph", graph)]
    run_passes(graph, lambda name, after: graphs.append((name, after)))
    dump_graphs(graphs, folder)
    assert sorted(each.name for each in folder.iterdir()) == [
        "00_graph.onnx", *(f"{number:02}_{each.name}.onnx"
                           for number, each in enumerate(PASSES, 1)), CONSTANTS]
    for (_, each), path in list(zip(graphs, sorted(folder.glob("*.onnx")), strict=True))[::6]:
        check_file(path, each)


def test_equal_numbers_are_stored_once(tmp_path):
    build = Builder("twice")
    x = build.input("x", TensorType((1, 4096), "float32"))
    numbers = np.arange(4096, dtype=np.float32)[None]
    for number in range(4):
        name = build.constant(f"c{number}", numbers + number // 2)
        x = build.add(f"y{number}", Binary(kind=BinaryKind.ADD, left=x, right=name))
    graph = build.graph((x,))
    dump_graphs([("graph", graph), ("again", graph)], tmp_path)
    assert (tmp_path / CONSTANTS).stat().st_size == 2 * numbers.nbytes
    check_file(tmp_path / "01_again.onnx", graph)


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "scale", "unnamed", "<b>&", "näme\u202e"])
def test_a_tensor_may_have_any_name(name, tmp_path):
    type_ = TensorType((2, 3), "int8")
    graph = Graph(
        inputs={"x": type_}, constants={"unnamed ": Constant(type_, np.ones((2, 3), np.int8))},
        nodes={name: Node(Clamp(x="x", low=-3, high=4), type_, origin=f"<{name}>"),
               "y": Node(Reshape(x=name, shape=(3, 2)), TensorType((3, 2), "int8"))},
        outputs=("y",))
    dump_graphs([("graph", graph)], tmp_path)
    path = tmp_path / "00_graph.onnx"
    onnx.checker.check_model(str(path))
    first, second = onnx.load(path).graph.node
    assert second.input[0] == first.output[0] != ""
    assert first.output[0].isprintable()


def test_names_that_look_alike_stay_apart(tmp_path):
    type_ = TensorType((2,), "int8")
    nodes = {name: Node(Clamp(x="x", low=0, high=9), type_) for name in ("\n", "\\n", "\\n.2")}
    graph = Graph({"x": type_}, {}, nodes, tuple(nodes))
    dump_graphs([("graph", graph)], tmp_path)
    found = onnx.load(tmp_path / "00_graph.onnx").graph.node
    assert len({each.output[0] for each in found}) == 3


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MicrotronError, match="the folder cannot be made"):
        make_folder(tmp_path / "file" / "passes")
