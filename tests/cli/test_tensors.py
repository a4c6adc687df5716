"""Inputs in files, as the command line names them: .npy, and .npz with several arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.cli.tensors import output_files, read_inputs
from microtron.compiler.graph.types import Quantization, TensorType

INT8 = TensorType((2, 3), "int8", Quantization((0.5,)))
REAL = TensorType((2, 3), "float32")
WORDS = TensorType((4,), "int64")
TYPES = {"image": INT8, "scale=x": REAL, "words": WORDS}
VALUES = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", VALUES)
    np.save("swapped.npy", VALUES.astype(">f4"))
    np.save("w.npy", np.arange(4, dtype=np.int16))
    np.save("b.npy", VALUES.astype(np.int32))
    np.savez("one.npz", VALUES)
    np.savez_compressed("all.npz", image=VALUES, words=np.arange(4), **{"scale=x": VALUES})
    np.savez("more.npz", image=VALUES, wrods=np.arange(4))
    Path("x=y.npy").write_bytes(Path("a.npy").read_bytes())
    return tmp_path


@pytest.mark.parametrize(("given", "types"), [
    (["a.npy"], {"image": INT8}), (["a.npy"], {"x": REAL}), (["swapped.npy"], {"x": REAL}),
    (["image=a.npy"], TYPES), (["scale=x=a.npy"], TYPES), (["x=y.npy"], {"image": INT8}),
    (["one.npz"], {"image": INT8}), (["image=one.npz"], TYPES), (["image=all.npz"], TYPES),
    (["scale=x=all.npz"], TYPES)])
def test_one_array_of_any_type_that_python_takes(given, types):
    (name, array), = read_inputs(given, types).items()
    assert name in types
    assert array.dtype.kind == "f"
    assert np.array_equal(array, VALUES)


def test_narrower_integers_are_taken_for_words():
    assert read_inputs(["words=w.npy"], TYPES)["words"].tolist() == [0, 1, 2, 3]


def test_all_arrays_of_a_file_go_to_the_inputs_of_their_names():
    found = read_inputs(["all.npz"], TYPES)
    assert set(found) == set(TYPES)
    assert found["words"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("given", "message"), [
    (["more.npz"], "more.npz: there is no input wrods; the model has words, image, scale=x; did "
                   "you mean words?"),
    (["imgae=a.npy"], "--input: there is no input imgae; the model has image, scale=x, words; did "
                      "you mean image?"),
    (["foo=a.npy"], "--input: there is no input foo; the model has image, scale=x, words"),
    (["a.npy"], "--input a.npy must be a tensor and a file, as in image=input.npy; the model has"),
    (["image=", "x"], "--input image= must be a tensor and a file"),
    (["words=more.npz"], "more.npz: holds no array words; it has image, wrods"),
    (["image=b.npy"], "b.npy: holds int32 of shape (2, 3), but input image is int8 or float32 or "
                      "float64 or float16 of shape (2, 3)"),
    (["words=a.npy"], "a.npy: holds float64 of shape (2, 3), but input words is int64 or int8"),
    (["words=all.npz", "all.npz"], "--input names the tensor words twice"),
    (["nothing.npz"], "nothing.npz: cannot be read: No such file"),
    (["image=nothing.npy"], "nothing.npy: cannot be read: No such file"),
    (["image=\x1b[31m.npy"], "cannot be read: No such file"),
])
def test_what_is_wrong_is_said_in_one_line(given, message):
    with pytest.raises(MicrotronError) as error:
        read_inputs(given, TYPES)
    assert message in str(error.value)


def test_outputs_are_files_of_their_own():
    assert output_files(["a.npy"], ["y"]) == {"y": Path("a.npy")}
    assert output_files(["y=a.npy", "z=b.npy"], ["y", "z"]) == {"y": Path("a.npy"),
                                                               "z": Path("b.npy")}
    with pytest.raises(MicrotronError, match="--output: there is no output q; the model has y"):
        output_files(["q=a.npy"], ["y"])


def test_a_damaged_archive_is_refused_or_read(folder):
    content = Path("all.npz").read_bytes()
    for place in range(0, len(content), 23):
        Path("bad.npz").write_bytes(content[:place] + bytes([content[place] ^ 0x55])
                                    + content[place + 1:])
        for given in (["bad.npz"], ["image=bad.npz"]):
            said = ""
            try:
                read_inputs(given, TYPES)
            except MicrotronError as error:
                said = str(error)
            assert not said or "bad.npz" in said
    for end in range(0, len(content), 97):
        Path("bad.npz").write_bytes(content[:end])
        with pytest.raises(MicrotronError, match=r"bad.npz"):
            read_inputs(["bad.npz"], TYPES)


def test_an_archive_that_claims_much_takes_no_memory(folder):
    header = np.lib.format.header_data_from_array_1_0(np.zeros((1,), np.float32))
    with zipfile.ZipFile("huge.npz", "w") as archive, archive.open("image.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (1 << 40,)})
    with pytest.raises(MicrotronError, match="holds float32 of shape"):
        read_inputs(["huge.npz"], {"image": INT8})
