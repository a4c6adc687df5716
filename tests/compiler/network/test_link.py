"""Streams that are joined: places move, order stays."""

from __future__ import annotations

import numpy as np

import microtron
from microtron.compiler.accelerator.emission.footprint import footprint
from microtron.compiler.graph.evaluate_graph import evaluate_all
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.linking.dram_places import Place
from microtron.compiler.network.linking.interleave_layers import (
    BEHIND,
    halve_scratchpads,
    interleave,
)
from microtron.compiler.network.tuning import overlap
from microtron.isa.config import small, tiny
from microtron.isa.instructions import (
    Alu,
    Buffer,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
)
from microtron.isa.stream import decode, encode
from microtron.isa.verification.verifier import verify

from .networks import Layers, execute


def test_the_footprint_is_the_last_tile_that_is_used():
    code = encode([
        Load(buffer=Buffer.INP, sram=3, shape=(2, 2, 4), sram_pitch=20, pad=(1, 0, 0, 1)),
        Load(buffer=Buffer.ACC8, sram=7, shape=(1, 1, 2)),
        Alu(dst=10, lhs=2, rhs=40, loops=(1, 1, 3), rhs_stride=(0, 0, 5)),
        Requantize(dst=4, src=1, params=60, loops=(2, 1, 3), dst_stride=(8, 0, 1),
                   params_stride=3),
        Requantize(flags=RequantizeFlags.ACC, dst=70),
        Store(sram=20, shape=(2, 1, 2), sram_pitch=(5, 0)), Sync()])
    # 3 + one plane further + three rows of five; the right operand's last; the stored box's last.
    assert footprint(code) == {Buffer.UOP: 0, Buffer.INP: 3 + 20 + 15, Buffer.WGT: 0,
                               Buffer.ACC: 71, Buffer.OUT: 27}


def test_a_reader_stands_some_stores_behind_what_it_reads():
    tile = tiny.tile_bytes(Buffer.OUT)
    first = encode([Store(segment=4, offset=tile * number) for number in range(10)])
    second = encode([Load(segment=4, offset=tile * number, shape=(1, 1, 2))
                     for number in range(0, 10, 2)])
    merged = interleave(first, second, tiny, Place(4, 0), 10 * tile)
    order = [(type(each).__name__, each.offset // tile) for each in decode(merged)]
    for kind in ("Store", "Load"):
        places = [place for name, place in order if name == kind]
        assert places == sorted(places)
    for number in range(0, 10, 2):
        stored = min(number + 1 + BEHIND, 9)
        assert order.index(("Load", number)) == order.index(("Store", stored)) + 1 + (
            stored == 9 and number > 6)


def test_halves_of_scratchpads_are_configurations():
    half = halve_scratchpads(small)
    assert half.tiles(Buffer.ACC) * 2 == small.tiles(Buffer.ACC)
    assert half.acc_bank_tiles == small.acc_bank_tiles


def test_neighbours_at_the_same_time_give_the_same(monkeypatch):
    layers = Layers((1, 16, 16, 8), 3)
    for number in range(4):
        layers.conv(f"conv{number}", "x" if not number else f"conv{number - 1}", 8, 3,
                    groups=8 if number % 2 else 1)
    graph = layers.builder.graph(("conv3",))
    given = {"x": np.random.default_rng(0).integers(-128, 128, (1, 16, 16, 8)).astype(np.int8)}
    right = evaluate_all(graph, given)["conv3"]
    alone = compile_network(graph, small)
    monkeypatch.setattr(overlap, "halve_layers", lambda group, layers: group)
    monkeypatch.setattr(overlap, "NEARLY", 0)
    monkeypatch.setattr(overlap, "WORTH_PAIRING", 2.0)        # try every pair ...
    costs = iter(range(1 << 20, 0, -1))                     # ... and take it
    paired = compile_network(graph, small, cost=lambda program: next(costs))
    verify(paired.programs[0])
    labels = paired.programs[0].labels
    assert labels["conv2"] == labels["conv3"]
    stored = [each.segment for each in decode(paired.programs[0].code[labels["conv3"]:])
              if isinstance(each, Store)]
    assert sorted(stored) != stored[::-1]           # what lies between, and the output, by turns
    for device in ("functional", "cycle"):
        assert (execute(paired, given, device)["conv3"] == right).all()
    exact = compile_network(graph, small, cost=microtron.simulated_cost())
    assert microtron.simulate(exact.programs[0]).cycles <= microtron.simulate(
        alone.programs[0]).cycles


def test_layers_that_leave_each_other_room_give_the_same(monkeypatch):
    """Each has half of every scratchpad, one after the other."""
    layers = Layers((1, 12, 12, 8), 3)
    for number in range(3):
        layers.conv(f"conv{number}", "x" if not number else f"conv{number - 1}", 8, 3)
    graph = layers.builder.graph(("conv2",))
    given = {"x": np.random.default_rng(1).integers(-128, 128, (1, 12, 12, 8)).astype(np.int8)}
    monkeypatch.setattr(overlap, "WORTH_PAIRING", 0.0)        # no two at the same time
    costs = iter(range(1 << 20, 0, -1))                     # what is tried last is best
    halved = compile_network(graph, small, cost=lambda program: next(costs))
    verify(halved.programs[0])
    assert len(set(halved.programs[0].labels.values())) == 3
    whole = compile_network(graph, small)
    assert footprint(halved.programs[0].code) != footprint(whole.programs[0].code)
    right = evaluate_all(graph, given)["conv2"]
    for device in ("functional", "cycle"):
        assert (execute(halved, given, device)["conv2"] == right).all()
