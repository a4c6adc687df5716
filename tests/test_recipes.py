"""What docs/recipes.md relies on: lists that are kept by hand have an entry for everything.

Most lists are derived, or refuse what is missing where they are made. These would go on in silence:
an instruction that no random program has, a setting that the simulator never hears of.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import random
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import microtron
from microtron import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.graph.operations.pointwise.binary import Binary
from microtron.compiler.network.select_operator import MAKERS, register_task
from microtron.compiler.operators.catalogue import OPERATORS
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import ISA, Alu, AluI, AluOp, Engine, Sync, Table
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Program
from microtron.isa.stream import decode, encode
from microtron.sim.counts import count
from microtron.sim.limit import work_of
from microtron.sim.twins.top import TIMING, timing_of
from microtron.testing.campaign import random_config, random_timing
from microtron.testing.random_programs import random_program

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = [field.name for field in dataclasses.fields(MemoryTiming)]
ON_ENGINES = [kind for kind in ISA if kind.engine is not None]
LOOPS = (2, 3, 4)
WINDOWS = dataclasses.replace(tiny, window_taps=3, tables=8)


def mnemonic(kind):
    return kind.mnemonic()


@pytest.fixture(scope="module")
def generated():
    """Instructions of random programs."""
    return [instruction for seed in range(12)
            for instruction in decode(random_program(WINDOWS, seed, length=60).code)]


@pytest.mark.parametrize("kind", ISA, ids=mnemonic)
def test_random_programs_have_every_instruction(generated, kind):
    assert any(type(each) is kind for each in generated)


@pytest.mark.parametrize("kind", [Alu, AluI], ids=mnemonic)
def test_random_programs_have_every_operation_of_the_alu(generated, kind):
    assert {each.op for each in generated if type(each) is kind} == set(AluOp)


@pytest.mark.parametrize("kind", [each for each in ON_ENGINES if each.engine == Engine.ALU],
                         ids=mnemonic)
def test_vectors_of_every_instruction_of_the_alu_are_counted(kind):
    steps = 64 if kind is Table else np.prod(LOOPS)
    code = encode([kind() if kind is Table else kind(loops=LOOPS), Sync()])
    assert count(code, tiny, {}).alu_vectors == steps


@pytest.mark.parametrize("kind", ON_ENGINES, ids=mnemonic)
def test_the_work_of_every_instruction_counts_towards_the_limit(kind):
    extents = {"loops": LOOPS} if hasattr(kind(), "loops") else {"shape": LOOPS}
    program = Program(tiny, encode([kind() if kind is Table else kind(**extents), Sync()]))
    assert work_of(program).tolist() == [64 if kind is Table else np.prod(LOOPS), 0]


def different(name: str) -> MemoryTiming:
    """A memory in which one setting is not what it is by default."""
    usual = getattr(MemoryTiming(), name)
    return MemoryTiming(**{name: not usual if isinstance(usual, bool) else usual + 1})


@pytest.mark.parametrize("name", SETTINGS)
def test_the_twin_of_memory_hears_of_every_setting(name):
    assert name in TIMING.names
    usual, other = (timing_of(each, 8, range(0)) for each in (MemoryTiming(), different(name)))
    assert usual[name] != other[name]


@pytest.mark.parametrize("file", ["runtime/devices/harness/memory.cpp", "sim/twins/bus/dram.py",
                                  "tests/runtime/devices/memory_reference.py"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_description_of_memory_uses_every_setting(file, name):
    text = (ROOT / file).read_text(encoding="utf-8")
    by_hash = name in ("stalls", "seed") and "is_stalled(self.timing" in text
    assert by_hash or re.search(rf"\btiming\.{name}\b", text)


@pytest.mark.parametrize("name", SETTINGS)
def test_campaigns_vary_every_setting_of_memory(name):
    rng = random.Random(0)
    assert len({getattr(random_timing(rng), name) for _ in range(50)}) > 1


@pytest.mark.parametrize("name", [
    field.name for field in dataclasses.fields(Config)
    if field.name not in ("inp_bits", "acc_bits", "out_bits")])         # have one value
def test_campaigns_vary_every_field_of_a_configuration(name):
    assert len({getattr(random_config(seed), name) for seed in range(50)}) > 1


@pytest.mark.parametrize("description", OPERATORS, ids=lambda each: each.operator)
def test_shapes_of_every_operator_are_tried_on_every_device(description):
    text = (ROOT / "tests" / "compiler" / "operators" / "shapes.py").read_text(encoding="utf-8")
    assert re.search(rf"\b{description.__name__}\b", text)


@pytest.fixture
def difference(monkeypatch, tmp_path):
    """The module of the recipe, as a user would have it."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    section = text.split("## An operator of your own, in networks\n")[1].split("\n## ")[0]
    code, = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    for known in (OPERATORS, MAKERS):
        for key, value in known.items():
            monkeypatch.setitem(known, key, value)          # as it is, and again afterwards
    path = tmp_path / "difference.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("difference", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "difference", module)
    spec.loader.exec_module(module)
    yield module
    del OPERATORS[module.Difference]


def network(kind: str, *, axes=(1, 8, 6, 5), seed=0):
    """Two convolutions over one input, then both together, then another one: an ONNX model."""
    rng = np.random.default_rng(seed)
    nodes, constants = [], []

    def constant(name, value):
        constants.append(onnx.numpy_helper.from_array(value, name))
        return name

    def quantized(name, scale, zero):
        given = [constant(f"{name}.s", np.float32(scale)), constant(f"{name}.z", np.int8(zero))]
        nodes.append(onnx.helper.make_node("QuantizeLinear", [name, *given], [f"{name}.q"]))
        nodes.append(onnx.helper.make_node("DequantizeLinear", [f"{name}.q", *given],
                                           [f"{name}.r"], name=f"{name}.dequantize"))
        return f"{name}.r"

    def conv(name, x, kernel):
        channels = axes[1]
        weights = rng.integers(-127, 128, (channels, channels, kernel, kernel)).astype(np.int8)
        nodes.append(onnx.helper.make_node("DequantizeLinear", [
            constant(f"{name}.w", weights), constant(f"{name}.ws", np.float32(0.002)),
            constant(f"{name}.wz", np.int8(0))], [f"{name}.wr"]))
        nodes.append(onnx.helper.make_node("Conv", [x, f"{name}.wr"], [name], name=name,
                                           pads=[kernel // 2] * 4))
        return quantized(name, rng.uniform(0.02, 0.05), int(rng.integers(-9, 9)))

    x = quantized("x", 0.03, 4)
    both = conv("one", x, 3), conv("other", x, 1)
    nodes.append(onnx.helper.make_node(kind, both, ["both"], name="both"))
    conv("last", quantized("both", 0.06, -7), 3)
    real = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes, "network", [onnx.helper.make_tensor_value_info("x", real, axes)],
        [onnx.helper.make_tensor_value_info("last.r", real, axes)], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)],
                                  ir_version=9).SerializeToString()


@pytest.mark.parametrize(("config", "axes"), [
    ("tiny", (1, 11, 6, 5)), ("base", (2, 16, 4, 4))])
def test_an_operator_of_one_s_own_runs_in_networks(difference, config, axes, tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(network("Sub", axes=axes))
    model = microtron.compile(path, config)
    mine = MAKERS[Binary]
    MAKERS[Binary] = ()                                     # and on the CPU, to compare
    plain = microtron.compile(path, config)
    MAKERS[Binary] = mine
    assert not any(node.title == "both" for node in model.host_nodes)
    assert any(node.title == "both" for node in plain.host_nodes)
    x = np.random.default_rng(1).normal(0, 1.5, axes).astype(np.float32)
    right = plain.run(x)["last.r"]
    assert len(np.unique(right)) > 50
    for device in ("functional", "cycle"):
        assert np.array_equal(model.run(x, device)["last.r"], right)


@pytest.mark.parametrize("scales", [(0.5, 0.25, 0.75), (0.01, 3.0, 0.9), (1.0, 1.0, 1.0)])
def test_an_operator_of_one_s_own_compiles_alone(difference, scales):
    left, right, out = scales
    spec = difference.Difference(channels=5, height=3, width=2, scale_left=left, scale_right=right,
                                 scale_out=out, zero_point_left=7, zero_point_right=-3,
                                 zero_point_out=2)
    rng = np.random.default_rng(0)
    given = {name: rng.integers(-128, 128, (1, 5, 3, 2)) for name in ("left", "right")}
    result, _ = compile_op(spec, "tiny").run(given, device="cycle")
    real = ((given["left"] - 7) * left - (given["right"] + 3) * right) / out + 2
    assert np.abs(result - np.clip(real, -128, 127)).max() <= 0.51


def test_what_an_operator_of_one_s_own_refuses_is_left_to_the_others(difference, tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(network("Add"))
    assert not any(node.title == "both" for node in microtron.compile(path, "tiny").host_nodes)


def test_only_an_operation_of_graphs_has_tasks():
    with pytest.raises(CompileError, match=r"^'Sub' is no operation of graphs; give a class"):
        register_task("Sub", lambda *given: None)
