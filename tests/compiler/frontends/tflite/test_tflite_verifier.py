"""Files that are no FlatBuffers of TFLite's schema, judged as LiteRT judges them."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tflite

from microtron.compiler.frontends.tflite.verifier import choices_of, fields_of, verify_flatbuffer
from microtron.compiler.graph.types import GraphError

from .tflite_cases import CASES
from .tflite_files import Operator, Tensor, file_of
from .tflite_mutations import mutated

JUDGE = """
import sys
from ai_edge_litert.interpreter import Interpreter
for path in sys.argv[1:]:
    print("?", end="", flush=True)
    try:
        Interpreter(model_content=open(path, "rb").read())
        print("+", end="", flush=True)
    except (RuntimeError, ValueError) as error:
        print("-" if "valid Flatbuffer" in str(error) else "+", end="", flush=True)
"""


def small_model() -> bytes:
    """Two operators with settings, quantized tensors with names, and a custom operator's code."""
    x, y = Tensor((1, 4, 4, 2), "int8", 0.5, name="x"), Tensor((1, 32), "int8", 0.5, name="yes")
    shape = Tensor.constant([1, 32])
    return file_of([x, shape, y, Tensor((1, 32), "int8", 0.5)],
                   [Operator("RESHAPE", [0, 1], [2], "ReshapeOptions", {"NewShape": [1, 32]}),
                    Operator("CUSTOM", [2], [3], custom="mine")], [0], [3])


def is_valid(data: bytes) -> bool:
    try:
        verify_flatbuffer(data)
    except GraphError:
        return False
    return True


def by_litert(files: list[bytes], folder: Path) -> str:
    """A + for each file that LiteRT takes for a FlatBuffer. It may crash on what it takes for one
    and is then started again."""
    paths = []
    for number, data in enumerate(files):
        paths.append(folder / f"{number}.tflite")
        paths[-1].write_bytes(data)
    found = ""
    while len(found) < len(files):
        ended = subprocess.run([sys.executable, "-c", JUDGE, *paths[len(found):]], check=False,
                               capture_output=True, text=True, cwd=folder,
                               env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        answers = ended.stdout.replace("?", "", ended.stdout.count("?") - 1).replace("?+", "+")
        answers = answers.replace("?-", "-").replace("?", "+")
        assert answers, ended.stderr
        found += answers
    return found


def compare(numbers: range, folder: Path) -> tuple[int, int]:
    """Judge mutated files as LiteRT does; how many are valid, and how many not."""
    sources = [small_model(), *(CASES[key](np.random.default_rng(1), key[1], key[0])[0].data()
                                for key in (("CONV_2D", "int8"), ("SOFTMAX", "uint8")))]
    files = [mutated(sources[number % len(sources)], np.random.default_rng(number))
             for number in numbers]
    files = [data for data in files if data[4:8] == b"TFL3"]        # as the reader checks before
    expected = by_litert(files, folder)
    for data, good in zip(files, expected, strict=True):
        if is_valid(data) != (good == "+"):
            # LiteRT's schema has two fields of a model more than the package has.
            root, = struct.unpack_from("<I", data, 0)
            vtable = root - struct.unpack_from("<i", data, root)[0]
            assert struct.unpack_from("<H", data, vtable)[0] > 20
            assert good == "-"
    return expected.count("+"), expected.count("-")


def test_mutated_files_are_judged_as_litert_judges_them(tmp_path):
    assert min(compare(range(400), tmp_path)) > 40


@pytest.mark.soak
@pytest.mark.parametrize("part", range(5))
def test_many_mutated_files_are_judged_as_litert_judges_them(part, tmp_path):
    compare(range(400 + 2_000 * part, 2_400 + 2_000 * part), tmp_path)


def test_every_byte_that_is_cut_off_is_noticed_or_unused():
    data = small_model()
    assert is_valid(data)
    assert not any(is_valid(data[:length]) for length in range(8, len(data) - 8))


def test_fields_are_those_of_the_schema():
    tensor = {each.name: each for each in fields_of(tflite.Tensor)}
    assert tensor["Shape"].is_vector
    assert (tensor["Shape"].slot, tensor["Shape"].width) == (4, 4)
    assert tensor["Name"].is_text
    assert tensor["Quantization"].table is tflite.QuantizationParameters
    assert tensor["Buffer"].width == 4
    assert not tensor["Buffer"].is_vector
    codes = {(each.slot, each.width) for each in fields_of(tflite.OperatorCode)}
    assert codes == {(4, 1), (6, 0), (8, 4), (10, 4)}
    for union in ("BuiltinOptions", "BuiltinOptions2", "QuantizationDetails", "SparseIndexVector"):
        for kind in choices_of(union).values():
            assert all(each.slot >= 4 for each in fields_of(kind)), kind
    assert choices_of("BuiltinOptions")[tflite.BuiltinOptions.ReshapeOptions] is (
        tflite.ReshapeOptions)


def test_a_string_must_end():
    data = small_model()
    place = data.index(b"yes\0")
    assert not is_valid(data[:place + 3] + b"!" + data[place + 4:])
    assert is_valid(data[:place] + b"no!" + data[place + 3:])


def test_settings_of_an_operator_are_verified():
    data = small_model()
    numbers = struct.pack("<3I", 2, 1, 32)          # a vector of two numbers
    places = [place for place in range(0, len(data), 4) if data[place:place + 12] == numbers]
    assert len(places) == 3                         # shapes of two tensors, and the settings
    for place in places:
        damaged = bytearray(data)
        struct.pack_into("<I", damaged, place, 1 << 20)
        assert not is_valid(bytes(damaged))


def test_vectors_that_overlap_are_refused_and_not_walked():
    """A thousand subgraphs, whose vectors of tensors begin each an element after the last. What is
    an offset in one is the length of another; all lead to zeros, which are an empty table."""
    count, graphs = 1000, 44
    vectors = graphs + 4 + 12 * count
    target = vectors + 4 * count
    data = bytearray(target + 4 * (target - vectors) + 64)
    struct.pack_into("<I4s", data, 0, 24, b"TFL3")
    struct.pack_into("<5H", data, 8, 10, 8, 0, 0, 4)        # a model's vtable: subgraphs
    struct.pack_into("<3H", data, 18, 6, 8, 4)              # a subgraph's: tensors
    struct.pack_into("<iI", data, 24, 16, graphs - 28)
    struct.pack_into("<I", data, graphs, count)
    for number in range(count):
        entry, vector = graphs + 4 + 4 * number, vectors + 4 * number
        table = graphs + 4 + 4 * count + 8 * number
        struct.pack_into("<I", data, entry, table - entry)
        struct.pack_into("<iI", data, table, table - 18, vector - table - 4)
        struct.pack_into("<I", data, vector, target - vector)
    with pytest.raises(GraphError, match="its vectors overlap so often"):
        verify_flatbuffer(bytes(data))
