"""Tables of results in networks: with the layer before them, or alone, or on the CPU."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.graph.evaluate_graph import evaluate_all
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Lookup
from microtron.compiler.graph.types import Quantization
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.network import Where
from microtron.isa.config import tiny
from microtron.isa.instructions import Rounding, Table
from microtron.isa.verification.verifier import verify
from microtron.testing.campaign import SMALL

from .networks import Layers, execute

TABLES = replace(tiny, tables=8)
CONFIGS = {"tables": TABLES, "parts of vectors": replace(tiny, tables=8, vector_cycles=2),
           "wide tiles": SMALL["int4"]}
ACTIVATED = ("silu", "swish", "gelu", "mish", "elu", "scores")


def activate():
    """A table after each kind of layer, one that nobody else could be with, and one alone."""
    layers = Layers((1, 9, 8, 5), 3)
    builder, rng = layers.builder, np.random.default_rng(4)

    def table(name, x):
        values = builder.constant(f"{name}.t", rng.integers(-128, 128, 256).astype(np.int8),
                                  Quantization((0.04,), (7,)))
        return builder.add(name, Lookup(x=x, table=values))

    table("silu", layers.conv("stem", "x", 8, 3, most=7))
    table("swish", layers.conv("depthwise", "silu", 8, 3, groups=8, most=7))
    table("gelu", layers.conv("grouped", "swish", 12, 3, groups=2, most=7))
    layers.conv("other", "gelu", 8, 1, most=7)          # two read it
    table("alone", "other")
    layers.add("sum", "other", "alone")
    table("mish", "sum")
    table("again", "mish")                              # after a table
    table("elu", layers.conv("last", "again", 6, 3, stride=(2, 2), most=7))
    size = builder.type_of("elu").size
    builder.add("flat", Reshape(x="elu", shape=(1, size)))
    weights = builder.constant("dense.w", rng.integers(-7, 8, (size, 5)).astype(np.int8),
                               Quantization((0.01,)))
    builder.add("dense", MatMul(left="flat", right=weights, scales=(0.01,)), dtype="int8",
                quantization=Quantization((0.1,), (4,)))
    table("scores", "dense")
    return builder.graph(("scores", "sum"))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_tables_are_part_of_the_layers_before_them(config):
    graph = activate()
    network = compile_network(graph, config)
    for program in network.programs:
        verify(program)
    assert sum((program.code["opcode"] == Table.opcode).sum()
               for program in network.programs) == len(ACTIVATED) + 2
    where = {name: decision.where for name, decision in network.decisions.items()}
    assert all(where[name] == Where.FUSED
               for name in ("stem", "depthwise", "grouped", "last", "dense"))
    assert all(where[name] == Where.ACCELERATOR for name in (*ACTIVATED, "alone", "again", "sum"))
    rng = np.random.default_rng(1)
    given = {"x": rng.integers(-128, 128, (1, 9, 8, 5)).astype(np.int8)}
    right = evaluate_all(graph, given)
    for device in ("functional", "cycle"):
        for name, values in execute(network, given, device).items():
            np.testing.assert_array_equal(values, right[name], f"{name} on {device}")
    assert len(np.unique(right["scores"])) > 1


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_pools_and_broadcasts_look_up_too(config):
    """Maxima, averages with and without a border, and an image with a number for each channel."""
    layers = Layers((1, 6, 5, 7), 3)
    builder, rng = layers.builder, np.random.default_rng(6)

    def table(name, x):
        values = builder.constant(f"{name}.t", rng.integers(-128, 128, 256).astype(np.int8),
                                  Quantization((0.04,), (7,)))
        return builder.add(name, Lookup(x=x, table=values))

    builder.add("max", Pool(x="x", kind=PoolKind.MAX, kernel=(3, 3), pad=(1, 1, 1, 1)))
    table("first", "max")
    builder.add("average", Pool(x="first", kind=PoolKind.AVERAGE, kernel=(3, 2), raw=True,
                                pad=(1, 1, 0, 0), rounding=Rounding.AWAY))
    table("second", "average")
    builder.add("mean", Pool(x="second", kind=PoolKind.AVERAGE, kernel=(6, 4), scales=(1.0,),
                             rounding=Rounding.EVEN))
    table("third", "mean")
    builder.add("gate", Binary(kind=BinaryKind.MUL, left="second", right="third", scales=(0.02,)),
                quantization=Quantization((0.05,), (3,)))
    table("fourth", "gate")
    graph = builder.graph(("fourth",))
    network = compile_network(graph, config)
    verify(network.programs[0])
    where = {name: decision.where for name, decision in network.decisions.items()}
    assert {where[name] for name in ("max", "average", "mean", "gate")} == {Where.FUSED}
    given = {"x": rng.integers(-128, 128, (1, 6, 5, 7)).astype(np.int8)}
    right = evaluate_all(graph, given)["fourth"]
    assert len(np.unique(right)) > 1
    for device in ("functional", "cycle"):
        np.testing.assert_array_equal(execute(network, given, device)["fourth"], right, device)


def test_without_tables_the_cpu_looks_up():
    network = compile_network(activate(), tiny)
    decision = network.decisions["silu"]
    assert (decision.where, decision.reason) == (Where.CPU, "no table of values in the ALU")
    assert len(network.programs) > len(compile_network(activate(), TABLES).programs)
