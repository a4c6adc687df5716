"""Networks that remember, as TFLite files: frame after frame as LiteRT, and files made to harm."""

from __future__ import annotations

import numpy as np
import pytest

import microtron
from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError

from .tflite_files import Operator, Subgraph, Tensor, file_of_subgraphs, reference_frames
from .tflite_streams import SCALE, ZERO, Stream, streaming_network


def evaluate_frames(data: bytes, frames: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """What the graph of a file gives, frame after frame."""
    graph = read_tflite(data, "stream.tflite")
    state = {name: each.initial for name, each in graph.states.items()}
    found = []
    for frame in frames:
        values = evaluate(graph, {**dict(zip(graph.user_inputs, frame, strict=True)), **state})
        state = {name: values[each.result] for name, each in graph.states.items()}
        found.append([values[name] for name in graph.user_outputs])
    return found


def assert_as_litert(data: bytes, frames: list[list[np.ndarray]]) -> None:
    found = evaluate_frames(data, frames)
    for ours, theirs in zip(found, reference_frames(data, frames), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert np.array_equal(one, other)
    assert len({tuple(each.ravel()) for (each,) in found}) > 1


@pytest.mark.parametrize("seed", range(12))
def test_random_streams_are_as_litert_frame_after_frame(seed):
    assert_as_litert(*streaming_network(seed))


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_a_compiled_stream_is_as_litert_on_devices(device, tmp_path):
    data, frames = streaming_network(5)
    (tmp_path / "stream.tflite").write_bytes(data)
    microtron.compile(tmp_path / "stream.tflite", "tiny").save(tmp_path / "stream.mt")
    model = microtron.load(tmp_path / "stream.mt")
    with model.session(device) as session:
        for _ in range(2):
            results = session.run_many(each for (each,) in frames)
            for result, (right,) in zip(results, reference_frames(data, frames), strict=True):
                assert np.array_equal(*result.outputs.values(), right)
            session.reset()


def counter(*, dtype: str = "float32", first: float = 5) -> Stream:
    """A stream with a variable: tensor 0 is the input, tensor 1 the handle, tensor 2 its value."""
    stream = Stream()
    stream.main.append(Tensor((1, 2), dtype))
    stream.begin("n", np.full((1, 2), first, dtype))
    stream.call_once()
    stream.handle("n")
    stream.main.append(Tensor((1, 2), dtype))
    stream.operator("READ_VARIABLE", [1], [2], "ReadVariableOptions")
    return stream


FLOATS = [[np.full((1, 2), value, np.float32)] for value in (1, -2, 3.5)]


def test_a_variable_counts_from_what_it_holds_first():
    stream = counter()
    stream.main.append(Tensor((1, 2)))
    stream.operator("ADD", [0, 2], [3], "AddOptions")
    stream.assign(1, 3)
    assert_as_litert(stream.data([0], [3]), FLOATS)
    assert np.array_equal(evaluate_frames(stream.data([0], [3]), FLOATS)[-1][0], [[7.5, 7.5]])


def test_what_was_assigned_in_this_frame_is_read():
    stream = counter()
    stream.assign(1, 0)
    stream.main.append(Tensor((1, 2)))
    stream.operator("READ_VARIABLE", [1], [3], "ReadVariableOptions")
    stream.main.append(Tensor((1, 2)))
    stream.operator("SUB", [3, 2], [4], "SubOptions")
    assert_as_litert(stream.data([0], [4]), FLOATS)


def test_variables_swap_and_pass_on_what_comes_in():
    """States that become inputs and each other: every one is what another was before."""
    stream = counter()
    stream.begin("older", np.full((1, 2), 9, np.float32))
    handle = stream.handle("older")
    stream.main.append(Tensor((1, 2)))
    stream.operator("READ_VARIABLE", [handle], [4], "ReadVariableOptions")
    stream.assign(1, 0)
    stream.assign(handle, 2)
    stream.main.append(Tensor((1, 2)))
    stream.operator("SUB", [4, 2], [5], "SubOptions")
    assert_as_litert(stream.data([0], [5]), FLOATS * 2)


def test_a_variable_that_is_only_read_is_a_constant():
    stream = counter()
    stream.main.append(Tensor((1, 2)))
    stream.operator("ADD", [0, 2], [3], "AddOptions")
    assert_as_litert(stream.data([0], [3]), FLOATS)
    assert not read_tflite(stream.data([0], [3]), "stream.tflite").states


def test_stored_numbers_are_kept_whatever_they_stand_for():
    stream = Stream()
    x = stream.tensor(1, 2)
    stream.begin("n", np.zeros((1, 2), np.int8))
    stream.call_once()
    handle = stream.handle("n")
    stream.main.append(Tensor((1, 2), "int8", 2 * SCALE, ZERO + 7))
    stream.operator("READ_VARIABLE", [handle], [2], "ReadVariableOptions")
    stream.main.append(Tensor((1, 2), "int8", 2 * SCALE, ZERO))
    stream.operator("ADD", [x, 2], [3], "AddOptions")
    stream.assign(handle, 3)
    frames = [[np.array([[10, -20]], np.int8)], [np.array([[90, -7]], np.int8)]] * 2
    assert_as_litert(stream.data([x], [3]), frames)


def test_names_of_states_are_those_of_the_variables():
    data, _ = streaming_network(1)
    assert set(read_tflite(data, "stream.tflite").states) <= {f"states/{n}" for n in range(3)}


def refused(data: bytes, words: str) -> None:
    with pytest.raises(GraphError, match=words) as raised:
        read_tflite(data, "bad.tflite")
    assert str(raised.value).startswith("bad.tflite: ")
    assert str(raised.value).isprintable()


def test_an_assignment_of_another_shape_or_type_is_refused():
    stream = counter()
    stream.main.append(Tensor((2, 1)))
    stream.operator("RESHAPE", [0, stream.constant([2, 1])], [3])
    stream.assign(1, 3)
    refused(stream.data([0], [2]), r"ASSIGN_VARIABLE 4: the variable n is float32\[1, 2\], but "
                                   r"float32\[2, 1\] is assigned to it")
    stream = counter()
    stream.main.append(Tensor((1, 2), "int32"))
    stream.operator("CAST", [0], [3])
    stream.assign(1, 3)
    refused(stream.data([0], [2]), r"the variable n is float32\[1, 2\], but int32\[1, 2\] is")


def test_a_variable_that_nothing_was_assigned_to_is_refused():
    stream = counter()
    stream.first, stream.first_steps = [], []
    stream.assign(1, 0)
    refused(stream.data([0], [2]), "READ_VARIABLE 2 .t2.: the variable n is read before anything "
                                   "is assigned to it")


def test_a_handle_that_is_none_is_refused():
    stream = counter()
    stream.steps[-1] = Operator("READ_VARIABLE", [0], [2], "ReadVariableOptions")
    refused(stream.data([0], [2]), "READ_VARIABLE 2 .t2.: t0 is no handle of a variable")
    stream = counter()
    stream.main.append(Tensor((), "resource"))
    stream.assign(3, 0)
    refused(stream.data([0], [2]), "ASSIGN_VARIABLE 3: t3 is no handle of a variable")
    stream = counter()
    refused(stream.data([0, 1], [2]), "the input n is RESOURCE, which is not supported")
    refused(stream.data([0], [1]), "n is RESOURCE, which is not supported")


@pytest.mark.parametrize(("number", "words"), [
    (0, "CALL_ONCE names subgraph 0, but must name one from 1 to 1"),
    (7, "CALL_ONCE names subgraph 7, but must name one from 1 to 1"),
    (-1, "CALL_ONCE names subgraph -1, but must name one from 1 to 1")])
def test_subgraphs_that_are_not_there_are_refused(number, words):
    stream = counter()
    stream.steps[0] = Operator("CALL_ONCE", [], [], "CallOnceOptions",
                               {"InitSubgraphIndex": number})
    refused(stream.data([0], [2]), words)
    stream.steps[0] = Operator("CALL_ONCE", [], [])
    refused(stream.data([0], [2]), "CALL_ONCE 0 does not say which subgraph")


def test_subgraphs_that_call_each_other_are_refused():
    stream = counter()
    stream.first_steps.append(Operator("CALL_ONCE", [], [], "CallOnceOptions",
                                       {"InitSubgraphIndex": 1}))
    refused(stream.data([0], [2]), "a subgraph that is called once must not call another")


def test_an_initial_subgraph_must_be_one():
    stream = counter()
    stream.steps.append(stream.steps.pop(0))        # called after the variable is read
    refused(stream.data([0], [2]), "READ_VARIABLE 1 .t2.: the variable n is read before anything")
    stream = counter()
    stream.steps.insert(0, Operator("ASSIGN_VARIABLE", [1, 0], [], "AssignVariableOptions"))
    refused(stream.data([0], [2]), "CALL_ONCE 1: variables are read or assigned before the "
                                   "subgraph is called")
    stream = counter()
    stream.first.append(Tensor((1, 2)))
    data = file_of_subgraphs([Subgraph(stream.main, stream.steps, [0], [2]),
                              Subgraph(stream.first, stream.first_steps, [2])])
    refused(data, "CALL_ONCE 0: subgraph 1 is called once without operands, but has 1 inputs")


def test_a_type_that_is_read_as_another_is_refused():
    stream = counter()
    stream.main[2] = Tensor((1, 2), "int32")
    refused(stream.data([0], [2]), "READ_VARIABLE 2 .t2.: it reads float32 as int32")
