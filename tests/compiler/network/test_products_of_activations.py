"""Products of two tensors that are both computed at run time, such as those of attention: heads
and transposes are addresses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Reshape, Transpose
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.network import HostStep, Where
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Rounding
from tests.compiler.network.networks import execute

BLOCK = tiny.block_in
WIDE = Config(block_in=8, block_out=4, uop_bytes=4 << 10, inp_bytes=4 << 10, wgt_bytes=8 << 10,
              acc_bytes=8 << 10, out_bytes=4 << 10)
CONFIGS = {"tiny": tiny, "batch": replace(tiny, batch=2), "rectangular": WIDE}


class Attention:
    """A graph of projections, and products between them."""

    def __init__(self, shape, seed=0):
        self.builder, self.rng = Builder(), np.random.default_rng(seed)
        self.builder.input("x", TensorType(shape, "int8", Quantization((0.02,), (3,))))

    def project(self, name, x, outputs, zero_point=-7):
        inputs = self.builder.type_of(x).shape[-1]
        weights = self.builder.constant(f"{name}.w", self.rng.integers(
            -127, 128, (inputs, outputs)).astype(np.int8), Quantization((0.01,)))
        return self._product(name, x, weights, 120 * inputs ** 0.5, zero_point)

    def multiply(self, name, left, right, zero_point=5):
        return self._product(name, left, right, 40 * self.builder.type_of(left).shape[
            -1] ** 0.5, zero_point)

    def _product(self, name, left, right, largest, zero_point):
        return self.builder.add(name, MatMul(left=left, right=right, scales=(1 / largest,),
                                             rounding=Rounding.EVEN), dtype="int8",
                                quantization=Quantization((0.05,), (zero_point,)))

    def heads(self, name, x, heads, order=(0, 2, 1, 3)):
        """(image, word, channel) by head, with axes in another order."""
        images, words, channels = self.builder.type_of(x).shape
        self.builder.add(f"{name}.split", Reshape(x=x, shape=(images, words, heads,
                                                              channels // heads)))
        return self.builder.add(name, Transpose(x=f"{name}.split", order=order))

    def join(self, name, x):
        images, heads, words, channels = self.builder.type_of(x).shape
        self.builder.add(f"{name}.turned", Transpose(x=x, order=(0, 2, 1, 3)))
        return self.builder.add(name, Reshape(x=f"{name}.turned",
                                              shape=(images, words, heads * channels)))

    def check(self, config, *outputs):
        """The network, whose outputs are those of the graph."""
        graph = self.builder.graph(outputs)
        network = compile_network(graph, config)
        x = self.rng.integers(-128, 128, graph.type_of("x").shape).astype(np.int8)
        found, wanted = execute(network, {"x": x}, "functional"), evaluate(graph, {"x": x})
        for name in outputs:
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
            several = min(8, wanted[name].size // 3)
            assert len(np.unique(wanted[name])) > several, "or the test says little"
        return network


def attention(images, words, channels, heads, width):
    """Attention without a softmax."""
    net = Attention((images, words, width))
    for name in ("q", "k", "v"):
        net.project(name, "x", heads * channels, {"q": -7, "k": 0, "v": 11}[name])
    net.heads("queries", "q", heads)
    net.heads("keys", "k", heads, (0, 2, 3, 1))
    net.heads("values", "v", heads)
    net.multiply("scores", "queries", "keys")
    net.multiply("weighted", "scores", "values", -20)
    net.project("out", net.join("joined", "weighted"), 2 * BLOCK)
    return net


def host(network):
    return [name for step in network.steps if isinstance(step, HostStep) for name in step.nodes]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("images", "words", "channels", "heads", "width"), [
    (1, 3 * BLOCK, 2 * BLOCK, 3, 2 * BLOCK),
    (2, 2 * BLOCK, BLOCK, 2, 7),
    (1, 9, BLOCK + 2, 3, 6),            # nothing fills its tiles
    (1, 1, 5, 2, 6),
    (3, 5, 2 * BLOCK, 1, BLOCK),
], ids=("whole tiles", "images", "parts of tiles", "one word", "one head"))
def test_attention_runs_on_the_accelerator(config, images, words, channels, heads, width):
    network = attention(images, words, channels, heads, width).check(CONFIGS[config], "out",
                                                                     "scores")
    moves = [name for name in host(network)
             if not isinstance(network.graph.nodes[name].operation, Reshape | Transpose)]
    assert moves == []


def test_heads_of_whole_tiles_follow_their_projections_in_one_program():
    net = attention(1, 3 * BLOCK, 2 * BLOCK, 3, 2 * BLOCK)
    network = net.check(tiny, "out")
    assert host(network) == []
    assert [[layer.node for layer in step.layers] for step in network.steps] == [
        ["q", "k", "v", "scores"], ["weighted", "out"]]
    assert network.decisions["keys"].where == network.decisions["joined"].where == Where.VIEW


def test_schedules_that_were_timed_together_give_the_same():
    """With a cost, results may stay on the chip and layers may overlap."""
    net = attention(1, 3 * BLOCK, 2 * BLOCK, 3, 2 * BLOCK)
    graph = net.builder.graph(("out",))
    x = net.rng.integers(-128, 128, graph.type_of("x").shape).astype(np.int8)
    found = microtron.compile(graph, "tiny").run({"x": x}, device="cycle").outputs["out"]
    np.testing.assert_array_equal(found, evaluate(graph, {"x": x})["out"])


def test_a_transpose_that_the_cpu_reads_is_computed():
    net = Attention((1, 2 * BLOCK, BLOCK))
    net.project("q", "x", 2 * BLOCK)
    net.heads("queries", "q", 2)
    net.heads("keys", "q", 2, (0, 2, 3, 1))
    net.multiply("scores", "queries", "keys")
    network = net.check(tiny, "scores", "keys")
    assert network.decisions["keys"].where == Where.CPU
    assert network.decisions["queries"].where == Where.VIEW


def test_a_tensor_is_multiplied_by_itself():
    net = Attention((2, 2 * BLOCK, 2 * BLOCK))
    net.project("q", "x", 2 * BLOCK)
    net.multiply("square", "q", "q")
    assert host(net.check(tiny, "square")) == []


def test_what_lies_beside_the_channels_of_a_result_does_not_count():
    """Lanes without a channel hold whatever a program leaves there."""
    net = Attention((1, BLOCK, BLOCK))
    net.project("q", "x", BLOCK + 1, 50)
    net.project("k", "x", BLOCK + 1, -50)
    net.builder.add("keys", Transpose(x="k", order=(0, 2, 1)))
    net.multiply("scores", "q", "keys")
    net.check(tiny, "scores")


def test_one_matrix_for_several_images():
    net = Attention((2, BLOCK, BLOCK))
    net.project("k", "x", BLOCK)
    net.builder.add("one", Reshape(x="k", shape=(2 * BLOCK, BLOCK)))
    net.multiply("scores", "k", net.builder.add("turned", Transpose(x="one", order=(1, 0))))
    assert host(net.check(tiny, "scores")) == []


def test_matrices_that_are_repeated_are_refused():
    net = Attention((2, BLOCK, BLOCK))
    net.project("k", "x", BLOCK)
    net.builder.add("one", Reshape(x="k", shape=(1, 2 * BLOCK, BLOCK)))
    net.multiply("scores", "k", net.builder.add("turned", Transpose(x="one", order=(0, 2, 1))))
    network = net.check(tiny, "scores")
    assert "repeated to meet the other" in network.decisions["scores"].reason


def test_a_dense_layer_takes_its_weights_to_where_a_transpose_found_its_inputs():
    net = Attention((1, 2, BLOCK))
    net.project("k", "x", 3 * BLOCK)
    net.builder.add("turned", Transpose(x="k", order=(0, 2, 1)))
    net.builder.add("flat", Reshape(x="turned", shape=(1, 6 * BLOCK)))
    net.project("out", "flat", 5)
    network = net.check(tiny, "out")
    assert host(network) == []
    assert len(network.steps) == 1
