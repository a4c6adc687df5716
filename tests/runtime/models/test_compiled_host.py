"""The CPU's part of a model as machine code, judged by NumPy's meaning of the graph."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.base.machine_code import object_file
from microtron.base.processor import TARGETS, host, target
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.cpu.registry import LOWERINGS
from microtron.compiler.errors import CompileError
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.indexing import Gather
from microtron.compiler.graph.operations.data_movement.shape import Concat, Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import Softmax
from microtron.compiler.graph.operations.layers.reduction import Reduce, ReduceKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.types import GraphError, TensorType
from microtron.compiler.operators.layout import Layout, tile_images
from microtron.isa.config import Config
from microtron.runtime.models.compilation import ModelOptions, compile_model
from microtron.runtime.models.compiled_host import CompiledBackend
from microtron.runtime.models.host import NumpyBackend
from microtron.runtime.models.model import Model

from ...compiler.graph.random_graphs import networks, random_inputs
from ..small_model import small_graph


def attention(rows=24, depth=33):
    """softmax(x × w + m) summed up, with a reshape between."""
    builder = Builder("attention")
    rng = np.random.default_rng(3)
    x = builder.input("x", TensorType((2, rows, depth), "float32"))
    mask = builder.input("mask", TensorType((rows,), "float32"))
    w = builder.constant("w", rng.normal(size=(depth, rows)).astype(np.float32))
    product = builder.add("product", MatMul(left=x, right=w))
    masked = builder.add("masked", Binary(kind=BinaryKind.ADD, left=product, right=mask))
    weights = builder.add("weights", Softmax(x=masked))
    flat = builder.add("flat", Reshape(x=weights, shape=(2 * rows, rows)))
    builder.add("sums", Reduce(x=flat, kind=ReduceKind.SUM, axes=(0,)))
    return builder.graph(("weights", "sums"))


def inputs_of(graph, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=type_.shape).astype(type_.dtype)
            for name, type_ in graph.inputs.items()}


def check(graph, inputs, threads=1):
    found = CompiledBackend(threads).nodes(graph)(inputs)
    expected = NumpyBackend().nodes(graph)(inputs)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        if graph.type_of(name).is_float:
            np.testing.assert_allclose(found[name], array, 1e-5, 1e-6)
        else:
            np.testing.assert_array_equal(found[name], array)
    return found


def test_a_part_is_what_the_graph_means_and_nothing_is_left_to_numpy(monkeypatch):
    graph = attention()
    expected = NumpyBackend().nodes(graph)(inputs_of(graph))
    for kind in {type(node.operation) for node in graph.nodes.values()}:
        monkeypatch.setattr(kind, "compute", None)
    found = CompiledBackend(1).nodes(graph)(inputs_of(graph))
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, 1e-5, 1e-6)


def test_an_inference_of_a_network_leaves_nothing_to_numpy(monkeypatch):
    """Neither nodes nor tiles: two programs with the CPU before, between and after them."""
    model = Model(**vars(compile_model(small_graph(), "small", ModelOptions(), version="")))
    image = np.random.default_rng(0).integers(-128, 127, (1, 3, 3, 2)).astype(np.int8)
    expected = model.session("functional", backend=NumpyBackend()).run({"image": image})
    kinds = {type(node.operation) for node in small_graph().nodes.values()}
    for kind in kinds:
        monkeypatch.setattr(kind, "compute", None)
    for each in ("pack", "unpack"):
        monkeypatch.setattr(Layout, each, None)
    with model.session("functional") as session:
        found = session.run({"image": image})
    assert set(model.outputs) == {name for name in model.outputs
                                  if np.array_equal(found[name], expected[name])}


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("microtron.runtime.models.compiled_host.WORTH_SHARING", 1)
    graph = attention()
    alone = check(graph, inputs_of(graph))
    for threads in (2, 3, 7):
        for name, array in check(graph, inputs_of(graph), threads).items():
            assert array.tobytes() == alone[name].tobytes()


def test_code_that_is_not_optimized_gives_the_same_to_the_bit():
    graph = attention()
    quick, plain = (CompiledBackend(1, optimize=each).nodes(graph)(inputs_of(graph))
                    for each in (False, True))
    assert {name: array.tobytes() for name, array in quick.items()} == {
        name: array.tobytes() for name, array in plain.items()}


def test_every_run_has_arrays_of_its_own():
    graph = attention()
    run = CompiledBackend(1).nodes(graph)
    first, second = run(inputs_of(graph)), run(inputs_of(graph, 1))
    np.testing.assert_array_equal(first["sums"], run(inputs_of(graph))["sums"])
    assert not np.array_equal(first["sums"], second["sums"])


def test_inputs_that_do_not_lie_in_order_are_read_in_order():
    graph = attention()
    inputs = inputs_of(graph)
    turned = {name: np.asfortranarray(array) for name, array in inputs.items()}
    plain, other = (CompiledBackend(1).nodes(graph)(each) for each in (inputs, turned))
    np.testing.assert_array_equal(plain["sums"], other["sums"])


@given(networks(), st.integers(0, 100))
@settings(max_examples=15)
def test_random_quantized_networks_are_the_same_to_the_bit(graph, seed):
    check(graph, random_inputs(graph, seed))


def test_element_wise_chains_are_one_kernel():
    builder = Builder()
    name = builder.input("x", TensorType((5, 100), "float32"))
    for number in range(4):
        name = builder.add(f"y{number}", Binary(kind=BinaryKind.ADD, left=name, right=name))
    graph = builder.graph((name,))
    assert len(compile_part(graph, host()).kernels) == 1
    check(graph, inputs_of(graph))


def gathering():
    builder = Builder()
    x = builder.input("x", TensorType((5, 3), "float32"))
    indices = builder.input("indices", TensorType((4,), "int64"))
    builder.add("rows", Gather(x=x, indices=indices))
    return builder.graph(("rows",))


@pytest.mark.parametrize("wrong", [5, -6, 1 << 40])
def test_an_index_outside_is_an_error_that_names_the_node(wrong):
    graph = gathering()
    run = CompiledBackend(1).nodes(graph)
    inputs = {"x": np.arange(15, dtype=np.float32).reshape(5, 3),
              "indices": np.array([0, 4, -5, 1])}
    np.testing.assert_array_equal(run(inputs)["rows"], inputs["x"][inputs["indices"]])
    with pytest.raises(GraphError, match="rows: an index from data is outside its axis"):
        run({**inputs, "indices": np.array([0, wrong, 1, 2])})


def test_tensors_without_elements():
    builder = Builder()
    x = builder.input("x", TensorType((0, 3), "float32"))
    y = builder.input("y", TensorType((2, 3), "float32"))
    builder.add("both", Concat(parts=(x, y), axis=0))
    builder.add("none", Binary(kind=BinaryKind.ADD, left=x, right=x))
    builder.add("zeros", Reduce(x=x, kind=ReduceKind.SUM, axes=(0,)))
    graph = builder.graph(("both", "none", "zeros"))
    check(graph, inputs_of(graph))


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_tensors_are_packed_and_unpacked(dtype):
    layout, type_ = tile_images(1, 20, 5, 7, Config(), 16), TensorType((1, 20, 5, 7), dtype)
    tensor = np.random.default_rng(0).integers(-99, 99, type_.shape).astype(dtype)
    compiled, plain = CompiledBackend(1), NumpyBackend()
    tiles = compiled.pack(layout, type_)(tensor)
    np.testing.assert_array_equal(tiles, plain.pack(layout, type_)(tensor))
    np.testing.assert_array_equal(compiled.unpack(layout, type_)(tiles), tensor)


def test_an_operation_without_a_lowering_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("MICROTRON_ANEW", "1")           # nothing from the cache
    CompiledBackend(1).nodes(attention())               # all lowerings are there now
    monkeypatch.delitem(LOWERINGS, Softmax)
    with pytest.raises(CompileError, match="weights: softmax: there is no lowering for the CPU"):
        CompiledBackend(1).nodes(attention())


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_part_is_an_object_for_every_processor(name):
    part = compile_part(attention(5, 9), target(name))
    assert object_file(part.text, target(name), unroll=False)[:4] == b"\x7fELF"


def test_models_use_it_without_being_told():
    script = ("import sys\nimport microtron\nfrom microtron.runtime.models import session\n"
              "assert 'llvmlite' not in sys.modules\nprint(session._compiled_backend().name)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "compiled\n", done.stderr
