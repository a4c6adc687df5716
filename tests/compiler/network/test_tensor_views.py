"""Concatenations and slices of channels that are nothing but places in memory."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Concat, Slice
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.types import Quantization
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.network import HostStep, Where
from microtron.compiler.network.tensor_views import first_channel
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import tiny
from tests.compiler.network.networks import Layers, execute

BLOCK = tiny.block_out


def layers_of(axis=1, images=1, channels=3):
    shape = (images, channels, 6, 5) if axis == 1 else (images, 6, 5, channels)
    return Layers(shape, axis)


def concat(layers, name, *parts, axis=None):
    return layers.builder.add(name, Concat(parts=parts, axis=axis or layers.axis))


def cut(layers, name, x, first, last):
    """Channels from `first` on, up to `last`."""
    shape = layers.builder.type_of(x).shape
    starts, stops = [0] * len(shape), list(shape)
    starts[layers.axis], stops[layers.axis] = first, last
    return layers.builder.add(name, Slice(x=x, starts=tuple(starts), stops=tuple(stops),
                                          steps=(1,) * len(shape)))


def check(graph, config=tiny):
    """A network whose outputs are those of the graph."""
    network = compile_network(run_passes(graph), config)
    shape = graph.type_of("x").shape
    x = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    found, wanted = execute(network, {"x": x}, "functional"), evaluate(graph, {"x": x})
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
    return network


def host(network):
    return [name for step in network.steps if isinstance(step, HostStep) for name in step.nodes]


@pytest.mark.parametrize("axis", [1, 3])
def test_parts_are_written_where_the_whole_is_read(axis):
    layers = layers_of(axis)
    layers.conv("a", "x", BLOCK, 3)
    layers.conv("b", "x", 2 * BLOCK, 1)
    layers.conv("c", "b", BLOCK - 1, 3)             # the last may leave lanes free
    concat(layers, "all", "a", "b", "c")
    layers.conv("y", "all", 5, 3)
    network = check(layers.builder.graph(("y",)))
    assert network.decisions["all"].where == Where.VIEW
    assert len(network.programs) == 1
    assert not host(network)
    assert len(network.programs[0].labels) == 4


def test_a_whole_in_a_whole_and_readers_of_all_of_them():
    layers = layers_of()
    for name in "abc":
        layers.conv(name, "x", BLOCK, 1)
    concat(layers, "two", "b", "c")
    concat(layers, "three", "a", "two")
    layers.conv("y", "three", BLOCK, 3)
    layers.conv("z", "two", BLOCK, 1)
    layers.conv("v", "b", BLOCK, 1)
    network = check(layers.builder.graph(("y", "z", "v")))
    assert len(network.programs) == 1
    assert not host(network)


def test_wholes_and_parts_may_be_outputs():
    layers = layers_of()
    layers.conv("a", "x", BLOCK, 1)
    layers.conv("b", "a", BLOCK, 3)
    concat(layers, "all", "a", "b")
    layers.conv("y", "b", 3, 1)
    network = check(layers.builder.graph(("b", "all", "y")))
    assert len(network.programs) == 1
    assert not host(network)


def test_along_rows_it_is_a_sum_of_windows():
    layers = layers_of()
    layers.conv("a", "x", 2 * BLOCK, 1)
    layers.conv("b", "x", 2 * BLOCK, 1)
    concat(layers, "all", "a", "b", axis=2)
    layers.conv("y", "all", 3, 1)
    network = check(layers.builder.graph(("y",)))
    assert network.decisions["all"].where in (Where.ACCELERATOR, Where.FUSED)


@pytest.mark.parametrize("axis", [1, 3])
def test_slices_of_whole_tiles_are_read_where_they_lie(axis):
    layers = layers_of(axis)
    layers.conv("a", "x", 3 * BLOCK, 1)
    cut(layers, "low", "a", 0, BLOCK)
    cut(layers, "high", "a", BLOCK, 3 * BLOCK - 1)
    layers.conv("y", "low", BLOCK, 3)
    layers.conv("z", "high", BLOCK, 1)
    network = check(layers.builder.graph(("y", "z", "high")))
    assert {network.decisions[name].where for name in ("low", "high")} == {Where.VIEW}
    assert len(network.programs[0].labels) == 3


def test_other_slices_are_written_where_a_tile_begins():
    layers = layers_of()
    layers.conv("a", "x", 2 * BLOCK, 1)
    cut(layers, "part", "a", 1, BLOCK + 1)
    layers.conv("y", "part", BLOCK, 3)
    layers.conv("z", "a", 3, 1)
    network = check(layers.builder.graph(("y", "z")))
    assert network.decisions["part"].where == Where.VIEW
    assert len(network.programs[0].labels) == 3


def test_a_cross_stage_block_is_one_stream():
    """Halves of a tensor, one of which goes through layers, and both joined with the result."""
    layers = layers_of()
    layers.conv("a", "x", 2 * BLOCK, 1)
    cut(layers, "low", "a", 0, BLOCK)
    cut(layers, "high", "a", BLOCK, 2 * BLOCK)
    layers.conv("b", "high", BLOCK, 3)
    layers.conv("c", "b", BLOCK, 3)
    concat(layers, "all", "low", "high", "b", "c")
    layers.conv("y", "all", 2 * BLOCK, 1)
    network = check(layers.builder.graph(("y",)))
    assert len(network.programs) == 1
    assert not host(network)
    assert len(network.programs[0].labels) == 4


def test_only_rows_of_the_identity_are_slices():
    layers = layers_of(channels=4)
    weights = np.eye(2, 4, 1).astype(np.int8)[..., None, None]
    for name, change in (("slice", (1, 1)), ("scaled", (2, 2)), ("other", (1, 2))):
        mine = weights * np.array(change, np.int8)[:, None, None, None]
        constant = layers.builder.constant(f"{name}.w", mine, Quantization((1.0,)))
        layers.builder.add(name, Conv(x="x", weights=constant, channel_axis=1, scales=(1.0,)),
                           dtype="int8", quantization=layers.builder.type_of("x").quantization)
    wider = layers.builder.constant("wider.w", np.eye(6, 4).astype(np.int8)[..., None, None],
                                    Quantization((1.0,)))       # zeros after all channels
    layers.builder.add("wider", Conv(x="x", weights=wider, channel_axis=1, scales=(1.0,)),
                       dtype="int8", quantization=layers.builder.type_of("x").quantization)
    graph = layers.builder.graph(("slice", "scaled", "other", "wider"))
    assert [first_channel(graph, graph.nodes[name]) for name in graph.outputs] == [
        1, None, None, None]


@pytest.mark.parametrize("axis", [1, 3])
def test_sums_alone_may_lie_so_too(axis):
    layers = layers_of(axis, channels=2 * BLOCK)
    builder = layers.builder
    layers.add("sum", "x", "x")                     # nothing before it has a layout
    cut(layers, "part", "sum", BLOCK, 2 * BLOCK)
    layers.conv("y", "part", 3, 1)
    network = check(builder.graph(("y",)))
    assert network.decisions["part"].where == Where.VIEW
    assert len(network.programs) == 1


def test_columns_of_sums_are_joined_by_the_cpu():
    layers = layers_of(channels=2 * BLOCK)
    layers.conv("y", "x", 3, 1)
    layers.add("one", "x", "x")
    layers.add("two", "one", "x")
    concat(layers, "all", "one", "two", axis=3)
    network = check(layers.builder.graph(("y", "all")))
    assert network.decisions["all"].where == Where.CPU
