"""A pass that fails is left out with a note, and other faults of ours end in one line."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.cli.entry import run_command
from microtron.cli.main import app
from microtron.compiler.errors import InternalError, PassWarning, attributed_to
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.graph import with_nodes
from microtron.compiler.graph.operations.pointwise.quantize import Clamp, Rescale
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.network import placement
from microtron.compiler.passes import pipeline
from microtron.compiler.passes.pipeline import PASSES, Pass, run_passes
from microtron.isa.config import small
from microtron.runtime.models.compilation import ModelOptions, compile_model
from microtron.runtime.models.model import Model

X = np.arange(-30, 30).astype(np.int8).reshape(1, 4, 3, 5)


def graph_of():
    """A clamp of a rescaled input, which the model calls `layer/relu`."""
    builder = Builder()
    builder.input("x", TensorType(X.shape, "int8", Quantization((0.1,))))
    known = Quantization((0.05,), (3,))
    builder.add("r", Rescale(x="x"), dtype="int8", quantization=known)
    builder.add("y", Clamp(x="r", low=3), quantization=known)
    graph = builder.graph(("y",))
    return with_nodes(graph, {name: replace(node, origin="layer/relu" if name == "y" else "")
                              for name, node in graph.nodes.items()})


def fails_at_a_node(graph):
    for name, node in graph.nodes.items():
        assert not isinstance(node.operation, Clamp), f"{name} is a clamp"
    return graph


def breaks_the_graph(graph):
    """Clamps whose lowest number is above the highest."""
    return with_nodes(graph, {name: replace(node, operation=replace(
        node.operation, low=9, high=-9)) if isinstance(node.operation, Clamp) else node
        for name, node in graph.nodes.items()})


def refuses(graph):
    raise MicrotronError("this graph is not for me")


BROKEN = {fails_at_a_node: "layer/relu: AssertionError in test_failing_pass.py",
          breaks_the_graph: "no longer sound: layer/relu", refuses: "not for me"}


@pytest.fixture(params=BROKEN, ids=lambda each: each.__name__)
def broken(request, monkeypatch):
    """A pass in the middle of the list that fails."""
    passes = (*PASSES[:3], Pass("broken", request.param), *PASSES[3:])
    monkeypatch.setattr(pipeline, "PASSES", passes)
    return BROKEN[request.param]


def test_who_asks_for_nothing_else_gets_an_error(broken):
    with pytest.raises(InternalError, match="please report it") as caught:
        run_passes(graph_of())
    assert broken in str(caught.value)
    assert "pass broken" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pass_that_fails_is_left_out(broken):
    told = []
    found = run_passes(graph_of(), left_out=lambda *each: told.append(each))
    assert [name for name, _ in told] == ["broken"]
    np.testing.assert_array_equal(evaluate(found, {"x": X})["y"],
                                  evaluate(graph_of(), {"x": X})["y"])
    assert len(found.nodes) == 1, "the other passes did their work"


def test_a_compiled_model_says_which_passes_it_lacks(broken):
    with pytest.warns(PassWarning, match="pass broken.*please report it"):
        model = Model(**vars(compile_model(graph_of(), small, ModelOptions(), version="")))
    assert model.provenance["left_out"] == "broken"
    found = model.run({"x": X}, device="functional").outputs["y"]
    np.testing.assert_array_equal(found, evaluate(graph_of(), {"x": X})["y"])


def test_a_graph_that_is_not_sound_without_the_pass_either_is_an_error(broken):
    graph = graph_of()
    nodes = dict(graph.nodes)
    nodes["y"] = replace(nodes["y"], operation=Clamp(x="nowhere"))
    with pytest.raises(InternalError, match="nowhere, which is not computed"):
        run_passes(replace(graph, nodes=nodes), left_out=lambda *_: None)


def test_a_fault_in_a_layer_names_the_model_s_node(monkeypatch):
    def task_of(graph, name, *rest):
        if name == "y":
            raise KeyError(name)
        return rightly(graph, name, *rest)

    rightly = placement.task_of
    monkeypatch.setattr(placement, "task_of", task_of)
    with pytest.raises(InternalError, match=r"^layer/relu: KeyError in .*please report it"):
        compile_model(graph_of(), small, ModelOptions(optimize=False), version="")


def test_errors_of_users_and_of_the_system_stay_as_they_are():
    for error in (MicrotronError("bad"), OSError("full"), MemoryError()):
        with pytest.raises(type(error)) as caught, attributed_to("here"):
            raise error
        assert caught.value is error


def test_at_the_command_line_it_is_one_line_and_exit_code_2(broken, tmp_path, monkeypatch):
    """The pass is left out with a note; a fault without a way round is an error."""
    import onnx
    from onnx import TensorProto, helper

    sides = [1, 2, 4, 4]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sides) for name in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node(
        "Relu", ["x"], ["y"], "layer/relu")], "g", ends[:1], ends[1:]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path / "relu.onnx"
    onnx.save(model, path)

    def command():
        import typer
        return typer.main.get_command(app)

    told = io.StringIO()
    told.reconfigure = lambda **_: None         # as standard error has it
    arguments = ["compile", str(path), "--config", "small", "-o", str(tmp_path / "relu.mt")]
    with redirect_stderr(told):
        code = run_command(command, arguments)
    assert (code, "Traceback" in told.getvalue()) == (0, False)
    assert told.getvalue().count("pass broken") == 1

    def faulty(*_):
        raise IndexError("list index out of range")

    monkeypatch.setattr(placement, "task_of", faulty)
    with redirect_stderr(told):
        assert run_command(command, arguments) == 2
    last = told.getvalue().splitlines()[-1]
    assert "IndexError" in last
    assert "please report it" in last
