"""Channels that are joined and cut at any place: one stream, without the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Concat, Slice
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.quantize import Lookup
from microtron.compiler.network.channels.align_channels import align_channels
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.network import HostStep, Where
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import base, tiny
from tests.compiler.network.networks import Layers, execute

BLOCK = tiny.block_out
CONFIGS = {"square": replace(tiny, tables=8), "deep": replace(tiny, block_in=8, tables=8),
           "wide": replace(tiny, block_out=8, tables=8), "pair": replace(tiny, batch=2, tables=8)}


def cut(layers, name, x, first, last):
    shape = layers.builder.type_of(x).shape
    starts, stops = [0] * len(shape), list(shape)
    starts[layers.axis], stops[layers.axis] = first, last
    return layers.builder.add(name, Slice(x=x, starts=tuple(starts), stops=tuple(stops),
                                          steps=(1,) * len(shape)))


def check(graph, config=tiny):
    """A network of one program whose outputs are those of the graph."""
    graph_after = run_passes(graph)
    network = compile_network(graph_after, config)
    shape = graph.type_of("x").shape
    x = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    found, wanted = execute(network, {"x": x}, "functional"), evaluate(graph, {"x": x})
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
    assert not any(isinstance(step, HostStep) for step in network.steps)
    assert len(network.programs) == 1
    return network


class RandomLayers(Layers):
    """Layers on tensors of any number of channels, all of one scale, so that any may be joined."""

    def step(self, number):
        builder, rng, name = self.builder, self.rng, f"t{number}"
        tensors = [each for each in builder.nodes if not each.endswith(".sum")]
        x = tensors[rng.integers(len(tensors))]
        channels = builder.type_of(x).shape[self.axis]
        kind = rng.integers(7)
        if kind == 0:
            self.conv(name, x, int(rng.integers(1, 15)), int(rng.choice([1, 3])))
        elif kind == 1:
            parts = [tensors[each] for each in rng.integers(len(tensors), size=rng.integers(2, 4))]
            builder.add(name, Concat(parts=tuple(parts), axis=self.axis))
        elif kind == 2 and channels > 1:
            first = int(rng.integers(channels - 1))
            cut(self, name, x, first, int(rng.integers(first + 1, channels + 1)))
        elif kind == 3:
            builder.add(name, Pool(x=x, kind=PoolKind.MAX, kernel=(3, 3), pad=(1, 1, 1, 1),
                                   channel_axis=self.axis))
        elif kind == 4:
            self.conv(name, x, channels, 3, groups=channels)
        elif kind == 5:
            scale = builder.type_of(x).quantization
            table = builder.constant(f"{name}.table", rng.integers(-128, 128, 256).astype(np.int8),
                                     scale)
            builder.add(name, Lookup(x=x, table=table), quantization=scale)
        else:
            self.conv(f"{name}.side", x, channels, 1)
            self.add(f"{name}.sum", x, f"{name}.side")
            self.conv(name, f"{name}.sum", channels + 1, 1)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(6))
def test_random_layers_are_one_stream(seed, config):
    axis = 1 + 2 * (seed % 2)
    layers = RandomLayers((1, 3, 5, 4) if axis == 1 else (1, 5, 4, 3), axis, seed)
    layers.conv("a", "x", 5, 1)
    layers.conv("b", "x", 7, 3)
    for number in range(8):
        layers.step(number)
    last = [name for name in layers.builder.nodes if name.startswith("t")][-1]
    layers.conv("y", last, 3, 1)
    layers.conv("z", "t0" if "t0" in layers.builder.nodes else "b", 6, 1)
    graph = layers.builder.graph(("y", "z"))
    check(graph, CONFIGS[config])


def test_halves_that_fill_no_tiles_cost_no_layer():
    """A cross-stage block: halves of a tensor, and both joined with what one goes through."""
    layers = Layers((1, 3, 6, 5), 1)
    half = BLOCK + 2
    layers.conv("a", "x", 2 * half, 1)
    cut(layers, "low", "a", 0, half)
    cut(layers, "high", "a", half, 2 * half)
    layers.conv("b", "high", half, 3)
    layers.builder.add("all", Concat(parts=("low", "high", "b"), axis=1))
    layers.conv("y", "all", 2 * BLOCK, 1)
    network = check(layers.builder.graph(("y",)))
    assert len(network.programs[0].labels) == 3


def test_a_copy_where_a_tensor_would_lie_in_two_others():
    layers = Layers((1, 3, 6, 5), 1)
    layers.conv("a", "x", BLOCK, 1)
    layers.conv("b", "x", BLOCK, 1)
    for number, parts in enumerate((("a", "b"), ("b", "a"), ("a", "a"))):
        layers.builder.add(f"all{number}", Concat(parts=parts, axis=1))
        layers.conv(f"y{number}", f"all{number}", 3, 1)
    network = check(layers.builder.graph(("y0", "y1", "y2")))
    assert {network.decisions[f"all{number}"].where for number in range(3)} == {Where.VIEW}
    assert len(network.programs[0].labels) == 5 + 4


@pytest.mark.parametrize("axis", [1, 3])
def test_parts_of_several_images_are_added_up(axis):
    layers = Layers((3, 3, 4, 4) if axis == 1 else (3, 4, 4, 3), axis)
    layers.conv("a", "x", BLOCK + 1, 1)
    layers.conv("b", "x", BLOCK, 1)
    layers.builder.add("all", Concat(parts=("a", "b", "a"), axis=axis))
    layers.conv("y", "all", 3, 1)
    check(layers.builder.graph(("y", "all")))


def test_a_graph_that_joins_nothing_stays_as_it_is():
    layers = Layers((1, 3, 6, 5), 1)
    layers.conv("a", "x", 5, 1)
    layers.conv("y", "a", 6, 3)
    graph = run_passes(layers.builder.graph(("y",)))
    assert align_channels(graph, base) is graph
