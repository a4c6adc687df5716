"""What programs say about their inputs and results, read from their instructions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.network.linking.link import Layer
from microtron.compiler.network.linking.on_chip import can_stay, plan_on_chip
from microtron.compiler.network.linking.on_chip_analysis import (
    input_of,
    is_multiplied,
    leaves_late,
    result_of,
)
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.depthwise.separable import Knobs, Separable
from microtron.compiler.operators.pool.pool import Pool
from microtron.isa.config import small
from microtron.isa.instructions import Load, Opcode, Store

SPEC = Separable(height=6, width=5, channels_in=20, channels_out=20, channels_mixed=20, pad=1,
                 zero_point_in=-3)


def program(rows=6, blocks=1, config=small):
    return compile_op(SPEC, config, knobs=Knobs(rows=rows, blocks=blocks)).program


def change(given, kind, number, **fields):
    """A program with other fields in one instruction of a kind."""
    code = given.code.copy()
    position = np.flatnonzero(code["opcode"] == kind.opcode)[number]
    for name, value in fields.items():
        code.view(kind.dtype())[name][position] = value
    return replace(given, code=code)


def test_an_input_loaded_at_once_has_its_border_and_places():
    found = input_of(program(), "data")
    assert found.tiles == 3 * 8 * 7
    assert found.fill == -3
    right = np.arange(3 * 8 * 7).reshape(3, 8, 7)[:, 1:-1, 1:-1].ravel()
    np.testing.assert_array_equal(found.places, right)
    edge = np.ones((3, 8, 7), bool)
    edge[:, 1:-1, 1:-1] = False
    filled = np.zeros(3 * 8 * 7, int)
    for box in found.border:
        outer, middle, inner = (np.arange(count) * step
                                for count, step in zip(box.loops, box.strides, strict=True))
        filled[(box.first + outer[:, None, None] + middle[:, None] + inner).ravel()] += 1
    np.testing.assert_array_equal(filled, edge.ravel())


def test_an_input_that_is_loaded_in_steps_or_for_the_alu_is_none():
    assert input_of(program(rows=3, blocks=0), "data") is None
    pool = compile_op(Pool(kind="max", height=4, width=4, channels=8, kernel=2), small).program
    assert not is_multiplied(pool, "data")
    assert input_of(pool, "data") is None
    assert is_multiplied(program(), "data")


def test_a_second_load_of_the_same_tiles_or_of_others_is_refused():
    given = program()
    loads = given.code.view(Load.dtype())
    position = int(np.flatnonzero((given.code["opcode"] == Opcode.LOAD)
                                  & (loads["segment"] == 1))[0])
    assert given.segments[1].name == "data"
    twice = replace(given, code=np.insert(given.code, position, given.code[position]))
    assert input_of(twice, "data") is None
    part = given.code.copy()
    part.view(Load.dtype())["shape"][position, 0] -= 1
    assert input_of(replace(given, code=part), "data") is None


def test_results_are_found_with_who_makes_them():
    given = program()
    found = result_of(given, "output")
    tiles = np.concatenate(list(found.made.values()))
    np.testing.assert_array_equal(np.sort(tiles), np.arange(3 * 6 * 5))
    assert len(found.stores) == (given.code["opcode"] == Opcode.STORE).sum()
    assert found.rest == 3 * 6 * 5, "of what lies between both convolutions"


def test_a_result_that_gemm_reads_too_cannot_be_elsewhere():
    given = program(blocks=3)
    stores = given.code.view(Store.dtype())[given.code["opcode"] == Opcode.STORE]
    assert len(stores) == 1
    assert stores["sram"][0] > 0
    between = change(given, Store, 0, sram=0)
    assert result_of(between, "output") is None
    nothing = change(given, Store, 0, sram=400)
    assert result_of(nothing, "output") is None


def test_a_layer_at_once_leaves_its_result_when_it_has_read_all_of_its_input():
    assert leaves_late(program(), "output")
    assert not leaves_late(program(rows=2, blocks=0), "output")


def test_any_two_layers_can_share_a_result_if_the_second_takes_it_at_once():
    conv = compile_op(Conv2d(height=6, width=5, channels_in=8, channels_out=20, pad=1), small)
    assert can_stay(conv.program, program())
    assert can_stay(program(), program())
    assert can_stay(program(rows=3, blocks=0), program())
    assert not can_stay(conv.program, program(rows=3, blocks=0))


def test_places_do_not_meet_and_what_finds_none_is_refused():
    layers = [Layer("a", program(), {}, {}, stays=True)] + [
        Layer("b", program(), {}, {}, stays=True, takes="data") for _ in range(3)] + [
        Layer("c", program(), {}, {}, takes="data")]
    places = plan_on_chip(layers, small)
    for number, here in enumerate(places):
        own = range(here.rest, here.rest + 3 * 6 * 5)
        for stay in (here.taken, here.left):
            if stay is not None:
                assert not set(own) & set(range(stay.first, stay.first + stay.wanted.tiles))
        assert here.left is None or here.left.first == places[number + 1].taken.first
    with pytest.raises(CompileError, match="takes 318 tiles of out, but there are 128"):
        plan_on_chip(layers, replace(small, out_bytes=1 << 10))
    with pytest.raises(CompileError, match="not read, or not made, whole"):
        plan_on_chip([layers[0], replace(layers[-1], program=program(rows=3, blocks=0))], small)
