"""Networks in one stream: every tensor as the graph means it, on every device, and why not the
rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.compiler.errors import CompileError
from microtron.compiler.graph.evaluate_graph import evaluate_all
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.types import Quantization
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.network import AcceleratorStep, Decision, HostStep, Where
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.isa.config import base, small, tiny
from microtron.isa.instructions import Rounding
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.verification.verifier import verify
from microtron.sim.simulate import simulate

from .networks import Layers, block, classifier, execute

CONFIGS = {"tiny": tiny, "small": small, "batch 2": replace(tiny, batch=2),
           "more in than out": replace(tiny, block_in=8),
           "more out than in": replace(tiny, block_out=16, wgt_bytes=16 << 10, acc_bytes=32 << 10,
                                       out_bytes=8 << 10),
           "more in than out, batch 2": replace(tiny, batch=2, block_in=8),
           "windows, tables": replace(tiny, window_taps=3, tables=8)}


def inputs_for(graph, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-128, 128, type_.shape).astype(type_.dtype)
            for name, type_ in graph.inputs.items()}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
@pytest.mark.parametrize("channel_axis", [1, 3])
def test_a_small_network_gives_what_its_graph_means(config, channel_axis):
    graph = classifier(channel_axis)
    network = compile_network(graph, config)
    given = inputs_for(graph)
    right = evaluate_all(graph, given)
    for program in network.programs:
        verify(program)
    for device in ("functional", "cycle"):
        found = execute(network, given, device)
        for name, values in found.items():
            np.testing.assert_array_equal(values, right[name], f"{name} on {device}")


RECTANGLES = {
    "8 × 4": replace(tiny, block_in=8),
    "4 × 8": replace(tiny, block_out=8, wgt_bytes=8 << 10, acc_bytes=16 << 10),
    "16 × 4": replace(tiny, block_in=16, inp_bytes=8 << 10, wgt_bytes=16 << 10),
    "2 × 8 × 4": replace(tiny, batch=2, block_in=8, window_taps=3),
    "4 × 4 × 8": replace(tiny, batch=4, block_out=8, inp_bytes=8 << 10, wgt_bytes=8 << 10,
                         acc_bytes=64 << 10, out_bytes=16 << 10)}


@pytest.mark.parametrize("config", RECTANGLES.values(), ids=list(RECTANGLES))
def test_a_network_is_one_program_on_arrays_with_different_blocks(config):
    layers = Layers((config.batch, 8, 9, 3), 3)
    layers.conv("stem", "x", 12, 3, stride=(2, 2), low=-5)
    layers.conv("wide", "stem", 24, 1)
    layers.conv("depthwise", "wide", 24, 3, groups=24)
    layers.conv("narrow", "depthwise", 12, 1)
    layers.add("sum", "narrow", "stem")
    layers.builder.add("pooled", Pool(x="sum", kind=PoolKind.MAX, kernel=(2, 2), stride=(2, 2),
                                      channel_axis=3))
    layers.conv("last", "pooled", 20, 1)
    layers.builder.add("flat", Reshape(x="last", shape=(config.batch, 80)))
    weights = layers.builder.constant("w", layers.rng.integers(-127, 128, (80, 5)).astype(np.int8),
                                      Quantization((0.01,)))
    layers.builder.add("dense", MatMul(left="flat", right=weights, scales=(0.001,)), dtype="int8",
                       quantization=Quantization((0.1,), (4,)))
    graph = layers.builder.graph(("dense",))
    network = compile_network(graph, config)
    step, = network.steps
    assert isinstance(next(each.spec for each in step.layers if each.node == "depthwise"),
                      Depthwise)                    # lane by lane, with few weights
    given = inputs_for(graph)
    right = evaluate_all(graph, given)["dense"]
    for device in ("functional", "cycle"):
        np.testing.assert_array_equal(execute(network, given, device)["dense"], right, device)


@pytest.mark.parametrize(("config", "cycles"), [("8 × 4", 2367), ("4 × 8", 2652)])
def test_columns_of_few_channels_share_tiles_on_arrays_with_different_blocks(config, cycles):
    """All but what a pool reads."""
    layers = Layers((1, 8, 8, 4), 3)
    layers.conv("stem", "x", 4, 3, low=-5)
    layers.conv("depthwise", "stem", 4, 3, groups=4)
    layers.conv("point", "depthwise", 4, 1)
    layers.conv("branch", "point", 4, 3)
    layers.add("sum", "branch", "point")
    layers.conv("shrunk", "sum", 4, 3, stride=(2, 2))
    layers.builder.add("pooled", Pool(x="shrunk", kind=PoolKind.MAX, kernel=(2, 2), stride=(2, 2),
                                      channel_axis=3))
    graph = layers.builder.graph(("pooled",))
    network = compile_network(graph, RECTANGLES[config], cost=microtron.simulated_cost())
    step, = network.steps
    packed = {each.node: (each.spec.columns_in, each.spec.columns_out) for each in step.layers
              if isinstance(each.spec, Conv2d)}
    assert packed == {"stem": (1, 2), "depthwise": (2, 2), "point": (2, 2), "sum": (2, 2),
                      "shrunk": (2, 1)}
    given = inputs_for(graph)
    right = evaluate_all(graph, given)["pooled"]
    np.testing.assert_array_equal(execute(network, given, "functional")["pooled"], right)
    assert simulate(step.program).cycles == cycles


def test_consecutive_layers_are_one_program_and_its_labels_are_the_nodes():
    graph = classifier(3)
    network = compile_network(graph, small)
    first, last = network.steps
    assert isinstance(first, AcceleratorStep)
    assert isinstance(last, HostStep)
    assert last.nodes == ("real", "probabilities")
    assert list(first.program.labels) == [layer.label for layer in first.layers]
    assert network.decisions["probabilities"].reason == "no exponential in the ALU"
    assert network.decisions["flat"].where == Where.VIEW
    assert first.plan.peak < first.plan.total


def test_a_residual_addition_is_part_of_its_convolution():
    graph = block(channels=16, size=8)
    network = compile_network(graph, small)
    assert network.decisions["second"].where == Where.FUSED
    assert network.decisions["second"].reason == "sum"
    step, = network.steps
    assert [layer.node for layer in step.layers] == ["first", "sum"]
    given = inputs_for(graph)
    assert (execute(network, given, "cycle")["sum"] == evaluate_all(graph, given)["sum"]).all()


def test_the_average_of_an_image_is_part_of_its_convolution():
    layers = Layers((1, 9, 8, 16), 3)
    layers.conv("conv", "x", 24, 1, zero_point=-7, low=-7)
    layers.builder.add("mean", Pool(x="conv", kind=PoolKind.AVERAGE, kernel=(9, 8),
                                    channel_axis=3, raw=True, rounding=Rounding.AWAY))
    graph = layers.builder.graph(("mean",))
    network = compile_network(graph, replace(small, vector_cycles=1))
    assert network.decisions["conv"] == Decision(Where.FUSED, "mean")
    step, = network.steps
    assert [layer.node for layer in step.layers] == ["mean"]
    given = inputs_for(graph)
    assert (execute(network, given, "cycle")["mean"] == evaluate_all(graph, given)["mean"]).all()


def test_an_average_stays_apart_where_the_alu_is_the_slower_engine():
    """With its convolution, the ALU adds all pixels; apart, the MAC array does."""
    layers = Layers((1, 25, 5, 64), 3)
    layers.conv("conv", "x", 64, 1)
    layers.builder.add("mean", Pool(x="conv", kind=PoolKind.AVERAGE, kernel=(25, 5),
                                    channel_axis=3, raw=True, rounding=Rounding.AWAY))
    graph = layers.builder.graph(("mean",))
    lanes = [compile_network(graph, replace(base, vector_cycles=cycles)) for cycles in (2, 4)]
    assert [each.decisions["conv"].where for each in lanes] == [Where.FUSED, Where.ACCELERATOR]


def separate():
    """A depthwise convolution and a pointwise one, then another that reads both."""
    layers = Layers((1, 12, 10, 24), 3)
    layers.conv("first", "x", 24, 3, groups=24, zero_point=3, low=-9, high=90)
    layers.conv("second", "first", 40, 1, zero_point=-7, low=-7)
    layers.conv("third", "second", 16, 3)
    return layers.builder.graph(("third",))


@pytest.mark.parametrize("config", [small, tiny], ids=["small", "tiny"])
def test_a_depthwise_convolution_is_part_of_the_pointwise_one_after_it(config):
    graph = separate()
    network = compile_network(graph, config, cost=lambda each: microtron.simulate(each).cycles)
    assert network.decisions["first"] == Decision(Where.FUSED, "second")
    step, = network.steps
    assert [layer.node for layer in step.layers] == ["second", "third"]
    verify(step.program)
    given = inputs_for(graph)
    assert (execute(network, given, "cycle")["third"] == evaluate_all(graph, given)["third"]).all()


def test_a_pointwise_convolution_whose_sums_stay_wide_is_apart_from_the_depthwise_one():
    layers = Layers((1, 12, 10, 24), 3)
    layers.conv("deep", "x", 24, 3, groups=24)
    weights = layers.builder.constant("w", layers.rng.integers(-99, 99, (40, 24, 1, 1)).astype(
        np.int8), Quantization((0.01,)))
    layers.builder.add("sums", Conv(x="deep", weights=weights, channel_axis=3), dtype="int32")
    graph = layers.builder.graph(("sums",))
    model = microtron.compile(graph, small, cost="estimate")
    assert [each.where for each in model.nodes] == [Where.ACCELERATOR, Where.ACCELERATOR]
    given = inputs_for(graph)
    found = model.run(given, "functional").outputs["sums"]
    np.testing.assert_array_equal(found, evaluate_all(graph, given)["sums"])


def test_where_gemm_does_not_read_results_both_convolutions_stay_apart():
    network = compile_network(separate(), replace(small, out_readers=1))
    step, = network.steps
    assert [layer.node for layer in step.layers] == ["first", "second", "third"]


def test_an_accelerator_that_is_too_small_leaves_a_layer_to_the_cpu_and_says_so():
    graph = block(channels=8, size=4)
    cramped = replace(tiny, uop_bytes=16, acc_bytes=128, inp_bytes=16, acc_banks=1)
    network = compile_network(graph, cramped)
    reasons = {decision.reason for decision in network.decisions.values()
               if decision.where == Where.CPU}
    assert any("but must be" in reason for reason in reasons)
    given = inputs_for(graph)
    assert (execute(network, given, "functional")["sum"]
            == evaluate_all(graph, given)["sum"]).all()
    with pytest.raises(CompileError, match="the accelerator does not take"):
        compile_network(graph, cramped, require_accelerator=True)


def test_constants_that_are_alike_are_in_memory_once():
    graph = block(channels=16, size=8)
    alone = compile_network(graph, small).programs[0].segment("constants").size
    same = {name: replace(constant, array=graph.constants["first.w"].array)
            if name == "second.w" else constant for name, constant in graph.constants.items()}
    shared = compile_network(replace(graph, constants=same), small)
    assert shared.programs[0].segment("constants").size <= alone - 16 * 16 * 9


def test_a_network_runs_on_the_hardware_too():
    graph = block(channels=5, size=5)
    network = compile_network(graph, tiny)
    given = inputs_for(graph)
    assert (execute(network, given, "rtl")["sum"] == evaluate_all(graph, given)["sum"]).all()


def test_tiles_of_another_size_are_not_taken_as_they_lie():
    """Results of 31 tiles of four lanes are no whole tiles of eight."""
    layers = Layers((1, 31, 1, 4), 3)
    layers.conv("conv", "x", 4, 1)
    layers.builder.add("flat", Reshape(x="conv", shape=(1, 124)))
    weights = layers.builder.constant("w", np.ones((124, 3), np.int8), Quantization((0.01,)))
    layers.builder.add("dense", MatMul(left="flat", right=weights, scales=(0.01,)), dtype="int8",
                       quantization=Quantization((1.0,)))
    graph = layers.builder.graph(("dense",))
    given = inputs_for(graph)
    for config in CONFIGS.values():
        found = execute(compile_network(graph, config), given, "functional")
        assert (found["dense"] == evaluate_all(graph, given)["dense"]).all()


@pytest.mark.parametrize("groups", [1, 6])
def test_weights_that_need_a_bit_more_without_their_zero_point_are_taken(groups):
    layers = Layers((1, 7, 6, 6), 3)
    rng = np.random.default_rng(3)
    weights = layers.builder.constant("w", rng.integers(0, 255, (6, 6 // groups, 3, 3)).astype(
        np.uint8), Quantization((0.01,), (120,)))
    layers.builder.add("y", Conv(x="x", weights=weights, scales=(0.0002,), groups=groups,
                                 pad=(1, 1, 1, 1)), dtype="int8",
                       quantization=Quantization((1.0,), (2,)))
    graph = layers.builder.graph(("y",))
    given = inputs_for(graph)
    for config in CONFIGS.values():
        network = compile_network(graph, config, require_accelerator=True)
        found = execute(network, given, "cycle")
        assert (found["y"] == evaluate_all(graph, given)["y"]).all()


def test_weights_that_need_more_than_that_are_not():
    layers = Layers((1, 4, 4, 4), 3)
    array = np.full((4, 4, 1, 1), 255, np.uint8)
    weights = layers.builder.constant("w", array, Quantization((0.01,), (0,)))
    layers.builder.add("y", Conv(x="x", weights=weights, scales=(0.001,)), dtype="int8",
                       quantization=Quantization((1.0,)))
    decision = compile_network(layers.builder.graph(("y",)), small).decisions["y"]
    assert decision.where == Where.CPU
    assert "weights from 255 to 255 without their zero point" in decision.reason


def test_tiles_that_are_more_than_an_operator_takes_begin_another_program():
    """One channel of four lanes: 20,000 elements are 80,000 bytes, more than a dense layer has
    inputs."""
    layers = Layers((1, 200, 100, 1), 3)
    layers.conv("conv", "x", 1, 1)
    layers.builder.add("flat", Reshape(x="conv", shape=(1, 20000)))
    weights = layers.builder.constant("w", np.ones((20000, 2), np.int8), Quantization((0.01,)))
    layers.builder.add("dense", MatMul(left="flat", right=weights, scales=(0.001,)), dtype="int8",
                       quantization=Quantization((1.0,)))
    graph = layers.builder.graph(("dense",))
    network = compile_network(graph, tiny, require_accelerator=True)
    assert len(network.programs) == 2
    given = inputs_for(graph)
    found = execute(network, given, "functional")
    assert (found["dense"] == evaluate_all(graph, given)["dense"]).all()


def test_rows_of_weights_stay_where_micro_ops_reach_them():
    """Depthwise micro-ops count rows: a quarter of these tiles is all that they can name."""
    large = replace(tiny, wgt_bytes=1 << 20)
    layers = Layers((1, 6, 6, 8), 3)
    layers.conv("depthwise", "x", 8, 3, groups=8)
    layers.conv("last", "depthwise", 8, 1)
    graph = layers.builder.graph(("last",))
    given = inputs_for(graph)
    for cost in (None, microtron.simulated_cost()):
        found = execute(compile_network(graph, large, cost=cost), given, "cycle")
        assert (found["last"] == evaluate_all(graph, given)["last"]).all()


def mobile(*, expands):
    """The beginning of a mobile network: a first layer and a separable convolution, or, after
    another layer, one whose channels are expanded and reduced."""
    layers = Layers((1, 13, 10, 3), 3)
    x = layers.conv("before", "x", 3, 3, zero_point=4) if expands else "x"
    layers.conv("stem", x, 6, 1 if expands else 3, stride=(1, 1) if expands else (2, 1), low=-5)
    layers.conv("depthwise", "stem", 6, 3, groups=6, zero_point=7, stride=(2, 2))
    layers.conv("pointwise", "depthwise", 5, 1)
    return layers.builder.graph(("pointwise",))


@pytest.mark.parametrize("config", [tiny, CONFIGS["windows, tables"]], ids=["tiny", "windows"])
@pytest.mark.parametrize("expands", [False, True])
def test_a_convolution_before_both_is_computed_with_them(expands, config):
    graph, slow = mobile(expands=expands), MemoryTiming(cycles_per_beat=64)
    network = compile_network(graph, config, memory=slow, cost=lambda each: microtron.simulate(
        each, memory=slow).cycles)
    assert network.decisions["stem"] == network.decisions["depthwise"] == Decision(
        Where.FUSED, "pointwise")
    step, = network.steps
    verify(step.program)
    given = inputs_for(graph)
    right = evaluate_all(graph, given)
    for device in ("functional", "cycle", *(("rtl",) if config is tiny else ())):
        found = execute(network, given, device)["pointwise"]
        np.testing.assert_array_equal(found, right["pointwise"], device)


def test_a_convolution_whose_result_others_read_stays_apart():
    graph = mobile(expands=False)
    network = compile_network(replace(graph, outputs=("pointwise", "stem")), tiny,
                              memory=MemoryTiming(cycles_per_beat=64))
    assert network.decisions["stem"] == Decision(Where.ACCELERATOR)
