"""Networks ahead of time: objects for every processor compute what the graph means."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtron
from microtron.base.processor import TARGETS
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.indexing import Gather
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.types import TensorType
from microtron.isa.config import PRESETS
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.aot.names import symbol_of
from microtron.runtime.aot.objects import objects
from microtron.runtime.aot.stages import memory_plan, stages_of
from microtron.runtime.models.compiled_model import CompiledModel, HostStep

from ...cross import PROCESSORS
from ...models import model_path, needs_models
from ..stream_model import frames, right, stream_graph
from .many_nodes import many_nodes
from .replay import record_frames, replay, replay_frames

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"
# What kernels may leave to others: memory, a compiler's own library, and functions of real numbers.
OUTSIDE = re.compile(r"mem(cpy|set|move)|__\w+|(floor|ceil|trunc|sqrt|fma|fmod|rint|roundeven"
                     r"|fmaximum|fminimum)f?")


def host(graph, name="many nodes"):
    """A model that the CPU computes alone."""
    return CompiledModel(
        name=name, config=PRESETS["tiny"], memory=MemoryTiming(), inputs=dict(graph.inputs),
        outputs={each: graph.type_of(each) for each in graph.outputs}, constants={},
        steps=(HostStep(graph),), nodes=(), provenance={})


@pytest.fixture(scope="module")
def digits():
    return microtron.compile(DIGITS, "small")


@pytest.mark.parametrize("processor", PROCESSORS)
def test_nodes_of_every_kind_are_what_the_graph_means(processor, tmp_path):
    graph, inputs = many_nodes()
    assert replay(host(graph), inputs, processor, tmp_path) == "equal"


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_network_of_both_halves(digits, processor, tmp_path):
    """The CPU quantizes, packs, unpacks and dequantizes; the accelerator's part is replayed."""
    rng = np.random.default_rng(3)
    inputs = {name: rng.random(type_.shape).astype(type_.dtype)
              for name, type_ in digits.inputs.items()}
    assert replay(digits, inputs, processor, tmp_path) == "equal"


@pytest.fixture(scope="module")
def stream():
    return microtron.compile(stream_graph(), "tiny", cost="estimate")


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_network_that_remembers(stream, processor, tmp_path):
    model = stream
    given = [{"frame": each} for each in frames(4)]
    assert replay_frames(model, given, processor, tmp_path) == "equal"
    assert [each.outputs["count"].tolist() for each in record_frames(model, given)] == [
        wanted["count"].tolist() for wanted in right(frames(4))]


@needs_models
@pytest.mark.parametrize("processor", ["rv32imac", "armv7-neon"])
def test_keyword_spotting(processor, tmp_path):
    model = microtron.compile(model_path("kws_ref_model.tflite"), "small")
    rng = np.random.default_rng(5)
    inputs = {name: rng.integers(-128, 128, type_.shape).astype(type_.dtype)
              for name, type_ in model.inputs.items()}
    assert replay(model, inputs, processor, tmp_path) == "equal"


def test_an_index_that_is_outside_ends_the_inference(tmp_path):
    builder = Builder("outside")
    builder.input("x", TensorType((3,), "float32"))
    builder.input("i", TensorType((2,), "int32"))
    builder.add("y", Gather(x="x", indices="i"))
    model = host(builder.graph(("y",)), "outside")
    inputs = {"x": np.ones(3, "float32"), "i": np.array([0, 2], "int32")}
    assert replay(model, inputs, "rv32imac", tmp_path) == "equal"
    source = tmp_path / "main.c"
    source.write_text(source.read_text().replace(
        "int status =", "memory[network->inputs[1].offset] = 3;\n        int status ="))
    compiler = PROCESSORS["rv32imac"]
    program = compiler.build(tmp_path, sorted(each for each in tmp_path.iterdir()
                                              if each.suffix in (".c", ".o")))
    with pytest.raises(AssertionError, match="stage 0, nodes: gather: 1"):
        compiler.run(program)


@pytest.mark.parametrize("processor", ["rv32im", "armv7-neon"])
def test_objects_need_little_from_outside(processor, tmp_path):
    PROCESSORS[processor].check()
    graph, _ = many_nodes()
    files = objects(host(graph), TARGETS[processor])
    tool = PROCESSORS[processor].compiler[0].replace("gcc", "nm")
    for name, content in files.items():
        if name.endswith(".o"):
            (tmp_path / name).write_bytes(content)
            listed = subprocess.run([tool, "--undefined-only", name], cwd=tmp_path, check=True,
                                    capture_output=True, text=True).stdout
            for symbol in re.findall(r"\bU (\S+)", listed):
                assert OUTSIDE.fullmatch(symbol), f"{name} needs {symbol}"


def test_the_same_model_gives_the_same_bytes(digits):
    assert objects(digits, TARGETS["rv32im"]) == objects(digits, TARGETS["rv32im"])


def test_tensors_that_live_at_the_same_time_lie_apart(digits):
    stages = stages_of(digits)
    plan = memory_plan(digits, stages, {})
    assert plan.peak <= plan.total
    for stage in stages:
        places = sorted(plan.offsets[name] for name in (*stage.reads, *stage.writes))
        assert len(set(places)) == len(places)


@pytest.mark.parametrize(("name", "symbol"), [
    ("digits.onnx", "digits_onnx"), ("8bit", "network_8bit"), ("", "network"),
    ("é/*", "network____"), ("_x", "network__x")])
def test_any_name_becomes_a_word_of_c(name, symbol):
    assert symbol_of(name) == symbol


def test_names_that_c_would_trip_over(tmp_path):
    builder = Builder("odd")
    builder.input('a "b" \\ */ ??/ é', TensorType((2, 2), "float32"))
    builder.add("y\n", Unary(kind=UnaryKind.NEG, x='a "b" \\ */ ??/ é'))
    model = host(builder.graph(("y\n",)), "*/ odd \n name")
    inputs = {'a "b" \\ */ ??/ é': np.ones((2, 2), "float32")}
    assert replay(model, inputs, "aarch64", tmp_path) == "equal"
