"""Files that are damaged, or made to harm, end in one line, with little time and memory."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tflite

from microtron.base.errors import MicrotronError
from microtron.compiler.frontends.read_model import read_model
from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.frontends.tflite.operator_node import Reading
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError

from . import tflite_moves  # noqa: F401  (declares cases)
from .tflite_cases import CASES
from .tflite_files import Operator, Tensor, file_of, single
from .tflite_wild import wild_model

SMALL = 200_000                 # elements of a graph that is evaluated
SCRIPT = Path(__file__).parent / "tflite_mutations.py"


def refused(data: bytes, words: str) -> None:
    with pytest.raises(GraphError, match=words) as raised:
        read_tflite(data, "bad.tflite")
    text = str(raised.value)
    assert text.startswith("bad.tflite: ")
    assert text.isprintable()


def mutate(folder: Path, first: int, count: int) -> tuple[int, int]:
    """How many of so many mutated files were graphs, and how many were refused."""
    for (name, dtype), function in CASES.items():
        model, _ = function(np.random.default_rng(1), dtype, name)
        (folder / f"{name}_{dtype}").write_bytes(model.data())
    done = subprocess.run([sys.executable, SCRIPT, folder, str(first), str(count)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    graphs, errors = map(int, done.stdout.split())
    return graphs, errors


def test_mutated_files_give_a_graph_or_one_line(tmp_path):
    graphs, errors = mutate(tmp_path, 0, 300)
    assert graphs + errors == 300
    assert graphs > 10
    assert errors > 100


@pytest.mark.soak
def test_many_mutated_files_give_a_graph_or_one_line(tmp_path):
    assert sum(mutate(tmp_path, 300, 30_000)) == 30_000


def wild(numbers):
    """Models that do not fit together are graphs with a meaning, or are refused in one line."""
    counts = {"graph": 0, "refused": 0}
    for number in numbers:
        rng = np.random.default_rng(number)
        (name, dtype), function = list(CASES.items())[number % len(CASES)]
        data = wild_model(rng, function(rng, dtype, name)[0]).data()
        try:
            graph, text = read_tflite(data, "wild.tflite"), ""
        except GraphError as error:
            graph, text = None, str(error)
        assert text == "" or (text.isprintable() and len(text) < 400), f"{number}: {text}"
        counts["graph" if graph else "refused"] += 1
        if graph is None:
            continue
        if sum(type_.size for type_ in graph.types.values()) < SMALL:
            inputs = {tensor: np.ones(type_.shape, type_.dtype)
                      for tensor, type_ in graph.inputs.items()}
            with contextlib.suppress(GraphError):           # indices may be outside
                evaluate(graph, inputs)
    return counts


def test_parts_that_do_not_fit_are_refused_or_have_a_meaning():
    assert min(wild(range(500)).values()) > 100


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_many_parts_that_do_not_fit_are_refused_or_have_a_meaning(part):
    wild(range(500 + 2_000 * part, 2_500 + 2_000 * part))


@pytest.mark.parametrize("length", range(0, 200, 7))
def test_truncated_files_are_refused(length):
    model, _ = CASES["CONV_2D", "int8"](np.random.default_rng(1), "int8", "CONV_2D")
    refused(model.data()[:length], "no TFLite file|no valid FlatBuffer")


def identity(*tensors: Tensor) -> bytes:
    x = Tensor((2, 3), name="x")
    return single("ABS", [tensors[0] if tensors else x], Tensor((2, 3), name="y"))


def test_what_is_no_tflite_file_is_refused():
    refused(b"", "no TFLite file")
    refused(b"\0" * 64, "bytes 4 to 7 must be TFL3")
    x = Tensor((1,))
    refused(file_of([x, x], [Operator("ABS", [0], [1])], [0], [1], version=2), "version 2")


def test_huge_counts_are_refused_before_they_are_walked():
    data = bytearray(identity())
    root = struct.unpack_from("<I", data, 0)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    for slot in (6, 8, 12):                     # codes, subgraphs and buffers
        place = root + struct.unpack_from("<H", data, vtable + slot)[0]
        vector = place + struct.unpack_from("<I", data, place)[0]
        damaged = bytearray(data)
        struct.pack_into("<I", damaged, vector, 0x7FFFFFFF)
        refused(bytes(damaged), "no valid FlatBuffer: .* has 2147483647 elements in 284 bytes")


def test_one_long_vector_that_all_tensors_share_is_refused():
    """Offsets may lead to one table, so that a small file seems to hold much."""
    first = Tensor((2, 3), "int8", [0.1] * 3, axis=1, name="long " * 1000)
    data = bytearray(file_of([first, *[Tensor((2, 3))] * 200], [], [0], [0]))
    table = tflite.Model.GetRootAs(bytes(data)).Subgraphs(0)._tab
    vector = table.Vector(table.Offset(4))
    target = vector + struct.unpack_from("<I", data, vector)[0]
    for number in range(201):
        place = vector + 4 * number
        struct.pack_into("<I", data, place, target - place)
    refused(bytes(data), "share their elements")


@pytest.mark.parametrize(("tensor", "words"), [
    (Tensor((-2, 3)), "not negative"),
    (Tensor((1,) * 9), "at most 8 axes"),
    (Tensor((1 << 20, 1 << 20)), "more than 2147483648"),
    (Tensor((2, 3), "string"), "STRING"),
    (Tensor((2, 3), "int8", [0.1, 0.2], axis=1), "scales for axis 1, which has 3"),
    (Tensor((2, 3), "int8", [0.1, 0.2], axis=-7), "axis -7"),
    (Tensor((2, 3), "int8", -1.0), "positive numbers"),
    (Tensor((2, 3), "int8", float("nan")), "positive numbers"),
    (Tensor((2, 3), "int8", 0.1, 300), "zero point is 300"),
])
def test_tensors_that_make_no_sense_are_refused(tensor, words):
    refused(identity(tensor), words)


@pytest.mark.parametrize("offset", [0, 1, 2, 1 << 40])
def test_data_behind_the_flatbuffer_is_refused(offset):
    """Offsets 0 and 1 both say that it is inside."""
    weights = Tensor.constant([1, 2, 3], data_offset=offset)
    data = single("ADD", [Tensor((3,), "int32"), weights], Tensor((3,), "int32"), "AddOptions")
    if offset > 1:
        refused(data, "outside the flatbuffer")
    else:
        read_tflite(data, "good.tflite")


def test_indices_are_compared_with_what_they_point_into():
    x = Tensor((2, 3))
    for operators, inputs, outputs, words in (
            ([Operator("ABS", [5], [1])], [0], [1], "operator 0 names tensor 5, but there are 2"),
            ([Operator("ABS", [0], [-1])], [0], [1], "tensor -1"),
            ([Operator("ABS", [0], [1])], [9], [1], "tensor 9"),
            ([Operator("ABS", [0], [1])], [0], [-2], "tensor -2"),
            ([Operator("ABS", [-1], [1])], [0], [1], "input 0 is missing"),
            ([Operator("ABS", [0, 0], [1])], [0], [1], "2 inputs, but must be 1"),
            ([Operator("ABS", [0], [])], [0], [1], "0 results"),
            ([Operator("ABS", [0], [1])], [0, 0], [1], "twice among the inputs"),
            ([Operator("ABS", [0], [1])], [0], [], "no output"),
            ([Operator("ABS", [0], [1])] * 2, [0], [1], "computed twice"),
            ([Operator("ABS", [1], [1])], [0], [1], "before it is computed"),
            ([], [0], [1], "before it is computed")):
        refused(file_of([x, x], operators, inputs, outputs), words)


def test_operators_out_of_order_are_refused():
    x = Tensor((2, 3))
    circle = [Operator("ADD", [0, 2], [1], "AddOptions"), Operator("ABS", [1], [2])]
    refused(file_of([x] * 3, circle, [0], [2]), "order")


def test_all_unknown_operators_are_listed_at_once():
    x = Tensor((2, 3))
    operators = [Operator("ABS", [0], [1]), Operator("RFFT2D", [1], [2]),
                 Operator("CUSTOM", [2], [3], custom="My\nOwn"), Operator("WHILE", [3], [4])]
    refused(file_of([x] * 5, operators, [0], [4]),
            r"RFFT2D \(operator 1\), CUSTOM My�Own \(operator 2\), WHILE \(operator 3\)")


def test_a_long_name_is_quoted_in_part():
    name = "layer/" * 1000
    refused(identity(Tensor((-2, 3), name=name)), r"tensor (layer/){6}lay… has shape")
    x = Tensor((2, 3), name=name)
    refused(file_of([x, x], [Operator("ABS", [1], [1])], [0], [1]), "layer/.*… is read before")
    refused(file_of([x, x], [Operator("CUSTOM", [0], [1], custom=name)], [0], [1]),
            r"CUSTOM layer/.*… \(operator 0\)")


def test_names_are_made_printable_and_different():
    tensors = [Tensor((1,), name="a\nb"), Tensor((1,), name="same"), Tensor((1,), name="same"),
               Tensor((1,), name="same.2"), Tensor((1,), name=b"\xff")]
    operators = [Operator("ABS", [number], [number + 1]) for number in range(4)]
    graph = read_tflite(file_of(tensors, operators, [0], [4]), "names")
    assert list(graph.types) == ["a�b", "same", "same.2", "same.2.2", "�"]


def test_names_made_for_steps_are_none_that_the_file_has():
    """FULLY_CONNECTED reshapes its input first, under a name of its own."""
    w = Tensor.constant(np.ones((2, 6)), "float32")
    tensors = [Tensor((2, 3)), w, Tensor((1, 2), name="y"), Tensor((1, 2), name="y.rows")]
    data = file_of(tensors, [Operator("FULLY_CONNECTED", [0, 1], [2], "FullyConnectedOptions"),
                             Operator("ABS", [2], [3])], [0], [3])
    assert read_tflite(data, "names").outputs == ("y.rows",)


def test_a_buffer_must_have_the_bytes_of_its_tensor():
    w = Tensor((2, 3), data=np.zeros(5, np.float32))
    refused(single("ADD", [Tensor((2, 3)), w], Tensor((2, 3)), "AddOptions"),
            "takes 24 bytes, but its buffer has 20")


def test_many_copies_of_one_constant_are_refused():
    """Weights that thousands of layers share would be stored in another order by each."""
    w = Tensor.constant(np.ones((1024, 1024), np.int8), "int8", scale=0.1)
    x = Tensor((1, 1024), "int8", 0.1)
    operators = [Operator("FULLY_CONNECTED", [0, 1], [number], "FullyConnectedOptions")
                 for number in range(2, 42)]
    refused(file_of([x, w, *[x] * 40], operators, [0], [2]), "many times its size")


def test_names_of_many_parts_are_found_in_one_step_each(monkeypatch):
    """Whatever looks for a free name anew would take a time that grows with the square."""
    data = file_of([Tensor((1,)), Tensor((1,))], [Operator(
        "PACK", [0] * 500, [1], "PackOptions", {"ValuesCount": 500})], [0], [1])
    steps = []
    monkeypatch.setattr(Reading, "is_free", lambda self, name: steps.append(name) or (
        name not in self.builder.nodes))
    assert read_tflite(data, "parts").type_of("t1").shape == (500, 1)
    assert len(steps) <= 501


@pytest.mark.parametrize(("name", "inputs", "options", "words"), [
    ("AVERAGE_POOL_2D", [Tensor((1, 4, 4, 1))],
     ("Pool2DOptions", {"FilterHeight": 0x7FFFFFFF, "FilterWidth": 0x7FFFFFFF, "StrideH": 1,
                        "StrideW": 1}), "more than 2147483648"),
    ("MAX_POOL_2D", [Tensor((1, 1 << 30, 1, 1))],
     ("Pool2DOptions", {"FilterHeight": 1, "FilterWidth": 1, "StrideH": 1, "StrideW": 1}),
     "at most 65536 rows"),
    ("MAX_POOL_2D", [Tensor((1, 4, 4, 1))], ("Pool2DOptions", {}), "strides are"),
    ("RESIZE_NEAREST_NEIGHBOR", [Tensor((1, 2, 2, 1)), Tensor.constant([1 << 30, 1])],
     ("ResizeNearestNeighborOptions", {}), "sides are from 1 to"),
    ("TILE", [Tensor((2, 2)), Tensor.constant([1 << 30, 1 << 30])], ("TileOptions", {}),
     "more than"),
    ("RESHAPE", [Tensor((2, 2)), Tensor.constant([-1, -1])], ("ReshapeOptions", {}),
     "cannot become"),
    ("RESHAPE", [Tensor((2, 2)), Tensor((2,), "int32")], ("ReshapeOptions", {}),
     "must be constant"),
    ("TRANSPOSE", [Tensor((2, 2)), Tensor.constant([0, 0])], ("TransposeOptions", {}),
     "each of 2 axes"),
    ("STRIDED_SLICE", [Tensor((2, 2)), *map(Tensor.constant, ([0], [1], [0]))],
     ("StridedSliceOptions", {}), "step is 0"),
    ("SOFTMAX", [Tensor((2, 2))], ("Pool2DOptions", {}), "must be SoftmaxOptions"),
    ("ADD", [Tensor((2, 2)), Tensor((2, 2))], ("AddOptions", {"FusedActivationFunction": 4}),
     "fused activation is number 4"),
    ("ADD", [Tensor((2, 2), "int16", 0.1), Tensor((2, 2), "int16", 0.1)], ("AddOptions", {}),
     "int16"),
])
def test_settings_that_make_no_sense_are_refused(name, inputs, options, words):
    refused(single(name, inputs, Tensor((1,)), options[0], **options[1]), words)


def test_sixteen_bit_activations_are_refused_and_not_guessed():
    x, y = Tensor((1, 4, 4, 1), "int16", 0.1), Tensor((1, 4, 4, 1), "int16", 0.1)
    w = Tensor.constant(np.ones((1, 1, 1, 1)), "int8", scale=0.1)
    refused(single("CONV_2D", [x, w], y, "Conv2DOptions", StrideH=1, StrideW=1),
            "all must be int8, uint8 or real numbers")


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    for path in (tmp_path / "none.tflite", tmp_path, "a\0b"):
        with pytest.raises(MicrotronError, match=r"No such file|Is a directory|must be the path"):
            read_model(path)


def test_the_shape_of_an_input_cannot_be_changed(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(identity())
    assert read_model(path, {"x": (2, 3)}).inputs["x"].shape == (2, 3)
    with pytest.raises(GraphError, match=r"the shape \(4, 3\) for x does not fit 2,3"):
        read_model(path, {"x": (4, 3)})
    with pytest.raises(GraphError, match="no input z; inputs are x"):
        read_model(path, {"z": (4, 3)})
