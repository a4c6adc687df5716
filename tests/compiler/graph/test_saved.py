"""Graphs survive being saved, and data of strangers gives a graph or one line."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from enum import Enum
from types import NoneType, UnionType
from typing import Union, get_args, get_origin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate_all
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.operation import OPERATIONS
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Clamp
from microtron.compiler.graph.records import _hints, record, to_plain_data
from microtron.compiler.graph.saved import load_graph, save_graph
from microtron.compiler.graph.subgraph import extract_subgraph
from microtron.compiler.graph.types import GraphError, Quantization, TensorType
from microtron.compiler.graph.verify_graph import verify_graph

from .random_graphs import networks, random_inputs


def equal(one: Graph, other: Graph) -> bool:
    """Whether two graphs are the same, in the same order, with the same numbers."""
    return (list(one.inputs.items()) == list(other.inputs.items())
            and list(one.nodes.items()) == list(other.nodes.items())
            and list(one.constants) == list(other.constants)
            and all(each.type == other.constants[name].type
                    and each.array.tobytes() == other.constants[name].array.tobytes()
                    for name, each in one.constants.items())
            and (one.outputs, one.name) == (other.outputs, other.name))


@given(networks(), st.booleans())
@settings(max_examples=50)
def test_a_saved_graph_is_the_same_graph(graph, as_bytes):
    data, arrays = save_graph(graph)
    numbers = [each.tobytes() for each in arrays] if as_bytes else arrays
    assert equal(load_graph(json.loads(json.dumps(data)), numbers), graph)


@given(networks(), st.data())
@settings(max_examples=50)
def test_part_of_a_graph_computes_what_it_does_within_the_whole(graph, data):
    chosen = data.draw(st.sets(st.sampled_from(sorted(graph.nodes)), min_size=1))
    found = extract_subgraph(graph, chosen)
    verify_graph(found)
    assert set(found.nodes) == chosen
    whole = evaluate_all(graph, random_inputs(graph, 1))
    values = evaluate_all(found, {name: whole[name] for name in found.inputs})
    assert all((values[name] == whole[name]).all() for name in found.outputs)
    assert set(found.outputs) >= chosen & set(graph.outputs)


def test_a_part_gives_what_others_read():
    builder = Builder()
    builder.input("x", TensorType((2,), "int32"))
    for name, left, right in (("a", "x", "x"), ("b", "a", "x"), ("c", "a", "b")):
        builder.add(name, Binary(kind=BinaryKind.ADD, left=left, right=right))
    graph = builder.graph(("c",))
    assert extract_subgraph(graph, ["b", "a"]).outputs == ("a", "b")
    assert list(extract_subgraph(graph, ["c"]).inputs) == ["a", "b"]
    with pytest.raises(GraphError, match="no node x in the graph"):
        extract_subgraph(graph, ["x"])


@pytest.mark.parametrize("kind", sorted(OPERATIONS))
def test_every_operation_has_fields_that_can_be_saved(kind):
    """Their declared types are made of those that data is checked against."""
    left = list(_hints(OPERATIONS[kind]).values())
    while left:
        hint = left.pop()
        if get_args(hint):
            assert get_origin(hint) in (tuple, Union, UnionType)
            left += [each for each in get_args(hint) if each not in (..., NoneType)]
        else:
            assert hint in (int, float, str, bool) or issubclass(hint, Enum)


@pytest.mark.parametrize("low", [-100, -0.0, 0.1, float("inf"), 1e-310, -1 << 40])
def test_numbers_are_the_same_to_the_bit(low):
    data = json.loads(json.dumps(to_plain_data(Clamp(x="x", low=low)), allow_nan=True))
    assert data.pop("operator") == "Clamp"
    found = record(Clamp, data, "here")
    assert repr(found.low) == repr(low)


def test_numbers_of_numpy_are_saved_as_numbers():
    assert to_plain_data(Conv(x="x", weights="w", groups=np.int64(3), scales=(np.float64(0.1),)))[
        "groups"] == 3
    assert to_plain_data(replace(Clamp(x="x"), low=np.float32(0.5)))["low"] == 0.5


def example() -> tuple[dict, list]:
    """A graph with most kinds of fields, as data."""
    builder = Builder("example")
    builder.input("x", TensorType((1, 4, 4, 2), "int8", Quantization((0.5,), (3,))))
    builder.constant("w", np.ones((3, 2, 2, 2), np.int8), Quantization((0.1, 0.2, 0.3), axis=0))
    builder.constant("b", np.ones(3, np.int32))
    builder.constant("flag", np.ones(3, bool))
    builder.add("c", Conv(x="x", weights="w", bias="b", scales=(0.1,), low=-100), dtype="int8",
                quantization=Quantization((0.25,), (-4,)))
    builder.add("y", Binary(kind=BinaryKind.ADD, left="c", right="c"),
                quantization=Quantization((0.5,)), origin="layer/add")
    return save_graph(builder.graph(("y",)))


@pytest.mark.parametrize(("path", "value", "words"), [
    (["nodes", 0, "operation", "operator"], "Convolve", "node c: operation: there is no operation"),
    (["nodes", 0, "operation", "operator"], None, "there is no operation None"),
    (["nodes", 0, "operation", "operator"], "Scaled", "there is no operation 'Scaled'"),
    (["nodes", 0, "operation", "pads"], [], "there is no field 'pads'; fields are low, high"),
    (["nodes", 0, "operation", "pad"], [0, 0], "pad: a list of 2 must have 4 entries"),
    (["nodes", 0, "operation", "stride"], [1.0, 1], "stride: 1.0 must be a whole number"),
    (["nodes", 0, "operation", "stride"], [1 << 70, 1], "must be a whole number of 64 bits"),
    (["nodes", 0, "operation", "stride"], [True, 1], "stride: True must be a whole number"),
    (["nodes", 0, "operation", "rounding"], "UP", "'UP' must be one of TWICE, EVEN, AWAY"),
    (["nodes", 0, "operation", "rounding"], 1, "1 must be one of TWICE"),
    (["nodes", 0, "operation", "weights"], None, "weights: None must be text"),
    (["nodes", 0, "operation", "weights"], "a\nb", r"reads a\\nb, which is not computed before"),
    (["nodes", 0, "operation", "scales"], [-1.0], "c: conv: scale is -1.0"),
    (["nodes", 0, "operation", "low"], "nan", "low is nan"),
    (["nodes", 0, "operation", "low"], "inf", "low is inf"),
    (["nodes", 0, "type", "dtype"], "object", "type is 'object', but must be one of"),
    (["nodes", 0, "type", "shape"], [1, -1], "shape is"),
    (["nodes", 0, "type", "quantization", "scales"], [0], "scales are"),
    (["nodes", 1, "operation", "operator"], "Clamp", "there is no field"),
    (["nodes", 1, "name"], "c", "nodes: there are two of the name c"),
    (["nodes", 1], 5, "nodes: 5 must be an object"),
    (["nodes"], {}, "nodes: {} must be a list"),
    (["inputs", 0, "type", "shape"], [9, 9], "must have 4 axes"),
    (["inputs", 0, "extra"], 1, "inputs: x: fields are"),
    (["constants", 0, "array"], 3, "array is 3, but must be a whole number below 3"),
    (["constants", 1, "array"], 0, "constant b: the array is int8"),
    (["constants", 1, "name"], "x", "x is both an input and a constant"),
    (["outputs"], [], "the graph has no output"),
    (["outputs"], ["z"], "the output z is not computed"),
    (["name"], 3, "name: 3 must be text"),
    (["version"], 3, "graph: fields are"),
])
def test_wrong_data_is_refused_with_its_place(path, value, words):
    data, arrays = example()
    load_graph(data, arrays)
    *way, last = path
    here = data
    for each in way:
        here = here[each]
    here[last] = value
    with pytest.raises(GraphError, match=words) as raised:
        load_graph(data, arrays)
    assert "\n" not in str(raised.value)


def test_a_field_without_a_default_cannot_be_left_out():
    data, arrays = example()
    del data["nodes"][0]["operation"]["dilation"]           # has a default: older than the field
    load_graph(data, arrays)
    del data["nodes"][0]["operation"]["weights"]
    with pytest.raises(GraphError, match="node c: operation: the field weights is missing"):
        load_graph(data, arrays)


def test_numbers_of_constants_are_checked():
    data, arrays = example()
    raw = [each.tobytes() for each in arrays]
    for wrong, words in (([*raw[:2], raw[2][1:]], "there are 2 bytes, but bool"),
                         ([*raw[:2], b"\1\2\0"], "a truth value is 2"),
                         ([*arrays, arrays[0]], "array 3 of 4 belongs to no constant"),
                         (arrays[:2], "must be a whole number below 2")):
        with pytest.raises(GraphError, match=words):
            load_graph(data, wrong)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from(["x", "c", "y", "w", "inf", "nan", *OPERATIONS]),
    st.lists(st.integers(-2, 5), max_size=5), st.just({}), st.lists(st.floats(), max_size=2))


@given(st.data())
@settings(max_examples=400)
def test_mutated_data_gives_a_graph_or_one_line(data):
    saved, arrays = example()
    saved = copy.deepcopy(saved)
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(saved, data)
    try:
        found = load_graph(saved, arrays)
    except GraphError as error:
        message = str(error)
    else:
        verify_graph(found)
        message = ""
    assert "\n" not in message


def mutate(here, data) -> None:
    """Change, remove or repeat something, at any depth."""
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if not isinstance(here[key], dict | list) or data.draw(st.integers(0, 4)) == 0:
            break
        here = here[key]
    action = data.draw(st.integers(0, 3))
    if action == 0:
        del here[key]
    elif action == 1 and isinstance(here, list):
        here.append(copy.deepcopy(here[key]))
    else:
        here[key] = data.draw(JUNK)
