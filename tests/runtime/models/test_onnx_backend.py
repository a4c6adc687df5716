"""ONNX's own tests of nodes, through its own harness; and what the adapter does beside them."""

from __future__ import annotations

import re
import tomllib
import unittest
import warnings
from collections import Counter
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper
from onnx.backend.test.runner import Runner

from microtron.base.errors import MicrotronError
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.graph.types import GraphError
from microtron.runtime.models.compiled_host import CompiledBackend
from microtron.runtime.models.host import NumpyBackend
from microtron.runtime.models.onnx_backend import MOST_KEPT, MicrotronBackend
from microtron.runtime.models.tensors import InputError

from ...emulated import EMULATED, run_part

FILE = Path(__file__).with_name("onnx_backend_exclusions.toml")
MOST_COMPILED = 1           # nodes of a kind
PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"


def exclusions() -> list[dict]:
    """Groups of excluded tests: a reason, glob patterns, and whether they run and differ."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))["excluded"]


def excluded(names: list[str]) -> dict[str, dict]:
    """The group of each excluded test. Every pattern has a test, and every test one pattern."""
    found: dict[str, dict] = {}
    for group in exclusions():
        for pattern in group["tests"]:
            matching = [name for name in names if fnmatchcase(name, pattern)]
            assert matching, f"no test is called {pattern}"
            for name in matching:
                assert name not in found, f"{name} is excluded twice"
                found[name] = group
    return found


class Quick(MicrotronBackend):
    """Code that runs once is not optimized. One node of each kind is compiled; others, and the
    same nodes once more, as the functions that they are (`_expanded`), are computed by the graph's
    own meaning: to compile them takes most of the time, and `make soak` does."""

    seen: ClassVar[Counter[str]] = Counter()

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        kind = model.graph.node[0].op_type
        expanded = model.graph.name.endswith("_expanded")
        cls.seen[kind] += not expanded
        options["backend"] = (NumpyBackend() if expanded or cls.seen[kind] > MOST_COMPILED
                              else CompiledBackend(1, optimize=False))
        return super().prepare(model, device, **options)


@pytest.mark.soak
def test_the_nodes_of_onnx_pass_in_its_own_harness_all_of_them_compiled():
    check_nodes(MicrotronBackend)


class EmulatedBackend(CompiledBackend):
    """Machine code for a processor that an emulator has."""

    def __init__(self, processor):
        super().__init__(1)
        self.processor = processor

    def nodes(self, part):
        compiled = compile_part(part, self.processor.target)
        empty = {name: np.empty(part.type_of(name).shape, part.type_of(name).dtype)
                 for name in part.outputs if part.type_of(name).size == 0}

        def run(inputs):
            outputs = run_part(compiled, inputs, self.processor) | empty
            return {name: outputs[name] for name in part.outputs}

        return run


@pytest.mark.soak
@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_the_nodes_of_onnx_pass_on_processors_of_both_families(name):
    processor = EMULATED[name]
    processor.check()

    class OnProcessor(MicrotronBackend):
        @classmethod
        def prepare(cls, model, device="CPU", **options):
            return super().prepare(model, device, backend=EmulatedBackend(processor), **options)

    check_nodes(OnProcessor)


def test_the_nodes_of_onnx_pass_in_its_own_harness_but_for_those_that_are_listed_with_a_reason():
    check_nodes(Quick)


def check_nodes(backend):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")         # of how ONNX computes what is right
        runner = Runner(backend, __name__)
        for group in exclusions():
            for pattern in group["tests"]:
                runner.xfail(translate(f"{pattern}_cpu"))
        suite = runner.test_cases["OnnxBackendNodeModelTest"]
        names = [each.removesuffix("_cpu") for each in dir(suite) if each.endswith("_cpu")]
        groups = excluded(names)
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(suite).run(result)
    wrong = [f"{test.id()}: {text.splitlines()[-1]}" for test, text in (*result.errors,
                                                                        *result.failures)]
    assert not wrong, "\n".join(wrong)
    assert not result.unexpectedSuccesses, "excluded, but they pass"
    assert {reason for _, reason in result.skipped} <= {"Backend doesn't support device CUDA"}
    assert len(result.expectedFailures) == len(groups)
    for test, text in result.expectedFailures:
        name = test.id().rpartition(".")[2].removesuffix("_cpu")
        refused = bool(re.search(r"^microtron\S+(?:GraphError|InputError): ", text, re.MULTILINE))
        assert refused != groups[name].get("differ", False), f"{name}: {text.splitlines()[-1]}"
    passed = result.testsRun - len(result.skipped) - len(groups)
    assert f"{passed:,} of its {len(names):,} tests of nodes" in " ".join(
        PAGE.read_text(encoding="utf-8").split())
    assert passed >= 1000


def model(nodes, inputs, outputs, *, opset=21):
    graph = helper.make_graph(nodes, "graph", inputs, [
        value(name, [f"{name}{axis}" for axis in range(axes)]) for name, axes in outputs.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def test_a_model_is_specialized_for_values_that_decide_about_shapes():
    nodes = [helper.make_node("Add", ["shape", "one"], ["wanted"]),
             helper.make_node("Reshape", ["x", "wanted"], {"y": 1})]
    prepared = MicrotronBackend.prepare(model(
        nodes, [value("x", ["n"]), value("shape", [2], TensorProto.INT64),
                value("one", [1], TensorProto.INT64)], {"y": 2}))
    x = np.arange(12, dtype=np.float32)
    for shape in ((3, 4), (2, 6), (3, 4)):
        found = prepared.run([x, np.array(shape) - 1, np.array([1])])
        np.testing.assert_array_equal(found.y, x.reshape(shape))
    assert len(prepared._kept) == 2
    assert prepared.run({"x": x[:2], "shape": np.array([0, 1]), "one": np.array([1])})[0].shape == (
        1, 2)


def test_what_was_compiled_last_is_kept_and_no_more():
    prepared = MicrotronBackend.prepare(model([helper.make_node("Neg", ["x"], {"y": 1})],
                                              [value("x", ["n"])], {"y": 1}))
    for size in (*range(MOST_KEPT + 1), 1):
        assert prepared.run([np.ones(size, np.float32)])[0].tolist() == [-1] * size
    sizes = [key[0][0] for key in prepared._kept]
    assert sizes == [(size,) for size in (*range(2, MOST_KEPT + 1), 1)]


def test_one_input_may_come_alone_and_results_have_names():
    prepared = MicrotronBackend.prepare(model([helper.make_node("Neg", ["x"], {"y": 1})],
                                              [value("x", [2])], {"y": 1}))
    assert prepared.run(np.ones(2, np.float32)).y.tolist() == [-1, -1]


@pytest.mark.parametrize("inputs", [
    [], [np.ones(2, np.float32)] * 2, {"z": np.ones(2, np.float32)}, {}, [None], ["text"],
    [[np.ones(2, np.float32)]]])
def test_wrong_inputs_are_refused(inputs):
    prepared = MicrotronBackend.prepare(model([helper.make_node("Neg", ["x"], {"y": 1})],
                                              [value("x", [2])], {"y": 1}))
    with pytest.raises(InputError):
        prepared.run(inputs)


def test_options_that_there_are_not_are_refused():
    small = model([helper.make_node("Neg", ["x"], {"y": 1})], [value("x", [2])], {"y": 1})
    with pytest.raises(MicrotronError, match="run has no option 'strict'"):
        MicrotronBackend.prepare(small).run([np.ones(2, np.float32)], strict=True)
    with pytest.raises(MicrotronError, match="neither"):
        MicrotronBackend.prepare(small, config="huge").run([np.ones(2, np.float32)])


def test_a_setting_that_no_input_decides_about_is_an_error():
    node = helper.make_node("Tile", ["x", "repeats"], {"y": 1})
    computed = helper.make_node("ReduceSum", ["repeats"], ["never"])
    with pytest.raises(GraphError, match="repeats are"):
        MicrotronBackend.run_model(
            model([node, computed], [value("x", [2]), value("repeats", [2], TensorProto.INT64)],
                  {"y": 1}), [np.ones(2, np.float32), np.array([1, 2])])


def test_a_node_runs_alone():
    node = helper.make_node("Concat", ["a", "b"], ["c"], axis=0)
    found = MicrotronBackend.run_node(node, [np.ones(1, np.float32), np.zeros(2, np.float32)])
    assert found.c.tolist() == [1, 0, 0]


@pytest.mark.parametrize("before", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("after", ["float16", "float32", "float64", "int32"])
def test_casts_among_all_floats(before, after):
    node = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(
        np.dtype(after)))
    x = np.array([[0, 1.5, -2], [300, 1e-3, 2049]]).astype(before)
    found = MicrotronBackend.run_node(node, [x], backend=CompiledBackend(1, optimize=False))
    np.testing.assert_array_equal(found.y, x.astype(after))


def test_the_only_device_is_the_machine_that_simulates():
    assert MicrotronBackend.supports_device("CPU")
    assert not MicrotronBackend.supports_device("CUDA")
    assert not MicrotronBackend.supports_device("CPU:1")
