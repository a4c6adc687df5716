"""States that model files have as inputs and outputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.frontends.declare_states import declare_states
from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.types import GraphError, Quantization, TensorType

from ....command import bad, good
from .onnx_models import graph_model, runtime

SIZE, STEPS = 3, 2


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def recurrent_model(kind: str, seed: int = 0, **shapes) -> onnx.ModelProto:
    """A recurrent layer whose state comes in as `h` and goes out as `hn`; what came in before is
    `last`, and goes out as `x`, which is an input."""
    rng = np.random.default_rng(seed)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    constants = [numpy_helper.from_array(rng.uniform(-1, 1, (1, gates * SIZE, inner)).astype(
        np.float32), name) for name, inner in (("w", 4), ("r", SIZE))]
    nodes = [helper.make_node("Add", ["x", "last"], ["both"]),
             helper.make_node(kind, ["both", "w", "r", "", "", "h"], ["y", "hn"],
                              hidden_size=SIZE)]
    return graph_model(nodes, [value("x", shapes.get("x", (STEPS, 1, 4))),
                               value("h", shapes.get("h", (1, 1, SIZE))),
                               value("last", (STEPS, 1, 4))], ["y", "hn", "x"], constants)


PAIRS = {"hn": "h", "x": "last"}


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_remember_as_the_runtime_would(kind, tmp_path):
    data = recurrent_model(kind).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    model = microtron.compile(tmp_path / "m.onnx", "tiny", states=PAIRS)
    assert (list(model.inputs), list(model.outputs), list(model.states)) == (
        ["x"], ["y"], ["h", "last"])
    rng, session = np.random.default_rng(1), runtime(data)
    h, last = np.zeros((1, 1, SIZE), np.float32), np.zeros((STEPS, 1, 4), np.float32)
    with model.session("functional") as ours:
        for _ in range(6):
            x = rng.uniform(-1, 1, (STEPS, 1, 4)).astype(np.float32)
            y, h, last = session.run(["y", "hn", "x"], {"x": x, "h": h, "last": last})
            np.testing.assert_allclose(ours.run(x)["y"], y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ours.state["h"], h, rtol=1e-5, atol=1e-6)
        assert np.array_equal(ours.state["last"], x)
        ours.reset()
        assert not ours.state["h"].any()


@pytest.mark.parametrize(("pairs", "words"), [
    ({"hm": "h"}, "there is no output hm that could be a state; outputs are y, hn, x"),
    ({"hn": "g"}, "there is no input g .*that could be a state; inputs are x, h, last"),
    ({"hn": "last"}, r"the output hn is float32\[1, 1, 3\], but the input last, which it becomes, "
                     r"is float32\[2, 1, 4\]"),
    ({"hn": "h", "y": "h"}, "the input h is the state of two outputs"),
    ({"hn": "hn"}, "there is no input hn")])
def test_pairs_that_are_none_are_refused(pairs, words):
    graph = read_onnx(recurrent_model("RNN").SerializeToString(), "m")
    with pytest.raises(GraphError, match=words):
        declare_states(graph, pairs)


def test_a_network_must_give_something():
    builder = Builder()
    builder.input("x", TensorType((2,), "int8", Quantization((0.5,), (7,))))
    builder.add("y", Reshape(x="x", shape=(2,)))
    with pytest.raises(GraphError, match="all outputs are states"):
        declare_states(builder.graph(("y",)), {"y": "x"})
    graph = declare_states(builder.graph(("y", "x")), {"y": "x"})
    assert graph.user_outputs == ("x",)
    assert graph.states["x"].initial.tolist() == [7, 7]         # the zero of its scale


def test_the_option_of_the_command_line(tmp_path):
    onnx.save(recurrent_model("GRU"), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones((3, STEPS, 1, 4), np.float32))
    good("run", "m.onnx", "--config", "tiny", "--device", "functional", "--state", "hn=h",
         "--state", "x=last", "--frames", "-i", "x.npy", "-o", "y.npy", "--state-out", "h=h.npy",
         cwd=tmp_path)
    assert np.load(tmp_path / "y.npy").shape == (3, STEPS, 1, 1, SIZE)
    assert np.array_equal(np.load(tmp_path / "y.npy")[-1, -1], np.load(tmp_path / "h.npy"))
    for given, words in ((["--state", "hn"], "--state 'hn' must be an output and an input"),
                         (["--state", "hn=h", "--state", "hn=last"], "names the output 'hn' twice"),
                         (["--state", "nh=h"], "there is no output nh")):
        assert words in bad("inspect", "m.onnx", *given, cwd=tmp_path)


def test_states_in_python_are_names(tmp_path):
    onnx.save(recurrent_model("GRU"), tmp_path / "m.onnx")
    for states, words in (({"hn": 3}, "a name in states"), ("hn=h", "a mapping from names of")):
        with pytest.raises(MicrotronError, match=words):
            microtron.compile(tmp_path / "m.onnx", "tiny", states=states)
