"""Names from files reach a terminal as text: no escape sequence, line end, change of direction or
markup of theirs takes effect."""

from __future__ import annotations

import unicodedata

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import microtron
from microtron.base.checked_values import printable

from ..command import bad, command, good
from ..compiler.frontends.onnx.onnx_models import graph_model

EVIL = "\x1b[31m\n\r\x07\u202e\u2066[red]:smile:[/red]\x9b"


def evil_model():
    """A product on the accelerator and a softmax on the CPU, every name of which is hostile."""
    rng = np.random.default_rng(2)
    constants = {"s": np.float32(0.1), "z": np.int8(2), "t": np.float32(0.2),
                 "zero": np.int8(0), "u": np.float32(0.4),
                 "w": rng.integers(-9, 9, (8, 4)).astype(np.int8)}
    evil = {name: f"{name}{EVIL}" for name in (*constants, "x", "y", "r", "p")}
    nodes = [helper.make_node("QLinearMatMul", [evil[each] for each in
                                                ("x", "s", "z", "w", "t", "zero", "u", "z")],
                              [evil["y"]], f"product{EVIL}"),
             helper.make_node("DequantizeLinear", [evil[each] for each in ("y", "u", "z")],
                              [evil["r"]], f"real{EVIL}"),
             helper.make_node("Softmax", [evil["r"]], [evil["p"]], f"softmax{EVIL}")]
    model = graph_model(nodes, [helper.make_tensor_value_info(evil["x"], onnx.TensorProto.INT8,
                                                              (1, 8))], [evil["p"]],
                        [numpy_helper.from_array(np.asarray(array), evil[name])
                         for name, array in constants.items()])
    model.graph.name = f"graph{EVIL}"
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    onnx.save(evil_model(), folder / "evil.onnx")
    np.save(folder / "x.npy", np.arange(8, dtype=np.int8).reshape(1, 8))
    return folder


def check(text):
    """Nothing but lines of text that a terminal shows as they are."""
    wrong = [each for each in text if each != "\n" and unicodedata.category(each)[0] == "C"]
    assert not wrong, [hex(ord(each)) for each in wrong]


@pytest.mark.parametrize("arguments", [
    ("compile", "evil.onnx", "--show", "graph,passes,placement,plan"), ("inspect", "evil.onnx"),
    ("inspect", "evil.onnx", "--json"), ("profile", "evil.onnx", "--all"),
    ("run", "evil.onnx", "-i", "x.npy", "--all"), ("verify", "evil.onnx"), ("disasm", "evil.onnx"),
], ids=" ".join)
def test_names_are_shown_and_do_nothing(folder, arguments):
    ended = command(*arguments, "--config", "tiny", cwd=folder, columns=80)
    assert ended.code == 0, ended.error
    check(ended.out + ended.error)


def test_markup_in_names_is_text(folder):
    text = good("inspect", "evil.onnx", "--all", cwd=folder, columns=200)
    check(text)
    assert "softmax\\x1b[31m\\n\\r\\x07\\u202e\\u2066[red]:smile:[/" in text
    text = good("compile", "evil.onnx", "--config", "tiny", "--show", "graph", cwd=folder)
    assert "[red]:smile:[/red]" in text


@pytest.mark.parametrize("arguments", [
    ("run", "evil.onnx", "--config", "tiny", "-i", f"y{EVIL}=x.npy"), ("run", f"no{EVIL}.mt"),
    ("compile", "evil.onnx", "--config", "tiny", "--require-accelerator"),
    ("compile", "evil.onnx", "--shape", f"x{EVIL}=2,2"), ("inspect", f"--{EVIL}"),
], ids=ascii)
def test_names_in_complaints_do_nothing(folder, arguments):
    check(bad(*arguments, cwd=folder))


def test_an_image_with_such_names_is_written_and_shown_without_harm(folder):
    check(good("compile", "evil.onnx", "--config", "tiny", "-o", "evil.mt", cwd=folder))
    for name in ("inspect", "verify", "profile", "disasm"):
        check(good(name, "evil.mt", cwd=folder))


def test_models_and_results_show_their_names_as_text(folder):
    model = microtron.compile(folder / "evil.onnx", "tiny")
    check(repr(model))
    check(repr(model.run(np.load(folder / "x.npy"), "functional")))


def test_printable_text_stays_as_it_is():
    assert printable("layer 1/Größe 层") == "layer 1/Größe 层"
    assert printable("a\x1b\u202e\ud800\n") == "a\\x1b\\u202e\\ud800\\n"
