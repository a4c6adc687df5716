"""Depthwise convolutions give what NumPy gives, bit for bit, in one vector a cycle."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.accelerator.emission.scratchpads import tile_index, tiles_of
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.affine import Affine
from microtron.compiler.expression.expression import Axis, Constant
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.nest.nest import Buffer, Region, Scope
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.depthwise.depthwise import Depthwise, form_of
from microtron.compiler.operators.depthwise.depthwise_schedule import (
    OPERATOR,
    TEMPLATE,
    Knobs,
)
from microtron.compiler.operators.depthwise.weight_chunks import Chunks, chunks_of
from microtron.compiler.schedule.schedule import Schedule
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer as Scratchpad
from microtron.isa.instructions import Load, Rounding
from microtron.isa.stream import decode

from ..operations import CONFIGS, check, check_meaning

SPECS = {
    "3x3": Depthwise(height=9, width=8, channels_in=5, channels_out=5, pad=(1, 1, 1, 1),
                     zero_point_in=3, zero_point_out=-4, high=90),
    "stride 2, 3 images": Depthwise(height=9, width=8, channels_in=6, channels_out=6,
                                    stride=(2, 2), pad=(0, 1, 0, 1), images=3, zero_point_in=-128),
    "multiplier 2": Depthwise(height=5, width=6, channels_in=5, channels_out=10, kernel=(2, 3),
                              rounding=Rounding.EVEN),
    "multiplier 8 of one": Depthwise(height=10, width=4, channels_in=1, channels_out=8,
                                     kernel=(3, 1), zero_point_in=9),
    "dilated, stride above kernel": Depthwise(height=20, width=19, channels_in=3, channels_out=3,
                                              kernel=(5, 1), dilation=(2, 3), stride=(3, 4),
                                              pad=(2, 1, 3, 4), rounding=Rounding.AWAY),
    "window above the scratchpads": Depthwise(height=20, width=19, channels_in=3, channels_out=3,
                                              kernel=(18, 19), pad=(2, 1, 3, 4), images=2,
                                              zero_point_in=-7),
    "one pixel": Depthwise(height=1, width=1, channels_in=17, channels_out=17, kernel=(1, 1)),
    "border above kernel": Depthwise(height=2, width=1, channels_in=4, channels_out=4,
                                     kernel=(2, 2), pad=(3, 4, 2, 5), zero_point_in=100),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_depthwise_convolution_equals_numpy(spec, config):
    check(spec, config)


@settings(max_examples=25)
@given(st.data())
def test_any_shape_compiles_and_equals_numpy(data):
    def pair(low, high):
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    kernel, dilation = pair(1, 5), pair(1, 3)
    pad = tuple(data.draw(st.integers(0, 4)) for _ in range(4))
    height, width = (max(1, (taps - 1) * step + 1 - sum(border)) + more for taps, step, border, more
                     in zip(kernel, dilation, (pad[:2], pad[2:]), pair(0, 9), strict=True))
    channels = data.draw(st.integers(1, 10))
    spec = Depthwise(height=height, width=width, channels_in=channels,
                     channels_out=channels * data.draw(st.integers(1, 3)), kernel=kernel,
                     stride=pair(1, 4), dilation=dilation, pad=pad,
                     images=data.draw(st.integers(1, 3)),
                     zero_point_in=data.draw(st.integers(-128, 127)),
                     zero_point_out=data.draw(st.integers(-128, 127)))
    check(spec, CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))],
          seed=data.draw(st.integers(0, 99)))


@pytest.mark.parametrize(("stride", "columns", "taps"), [
    (1, 10, 3), (1, 3, 3), (2, 5, 3), (2, 2, 1)])
def test_steps_of_one_row_load_each_row_of_the_input_once(stride, columns, taps):
    """Columns at the edge of two steps are loaded for both."""
    config = replace(tiny, window_taps=taps)
    spec = Depthwise(height=9, width=10, channels_in=6, channels_out=6, pad=(1, 1, 1, 1),
                     stride=(stride, stride), images=2, zero_point_in=3)
    kernel, _ = check(spec, config, knobs=Knobs(blocks=2, rows=1, columns=columns))
    loads = [each for each in decode(kernel.program.code)
             if isinstance(each, Load) and each.buffer == Scratchpad.INP]
    shared = (-(-spec.out_width // columns) - 1) * (3 - stride)
    assert sum(prod(each.shape) for each in loads) == 2 * 2 * 9 * (10 + shared)


def test_every_candidate_gives_the_same():
    spec = Depthwise(height=7, width=6, channels_in=9, channels_out=9, pad=(1, 1, 1, 1))
    for config in (tiny, CONFIGS["windows"]):
        for knobs in candidates(TEMPLATE, form_of(spec, config))[::5]:
            check(spec, config, knobs=knobs)


def test_a_border_that_is_still_there_is_not_written_again():
    spec = Depthwise(height=5, width=6, channels_in=24, channels_out=24, pad=(1, 1, 1, 1),
                     zero_point_in=7)
    kernel, _ = check(spec, tiny, knobs=Knobs(blocks=1, rows=5, columns=6))
    loads = [each for each in decode(kernel.program.code)
             if isinstance(each, Load) and each.buffer == Scratchpad.INP]
    assert [each.pad for each in loads] == [(1, 1, 1, 1)] * 2 + [(0, 0, 0, 0)] * 4


def test_the_expressions_mean_a_depthwise_convolution():
    spec = SPECS["stride 2, 3 images"]
    check_meaning(spec, form_of(spec, replace(tiny, batch=2)))


def test_a_window_is_cut_into_chunks_only_if_it_does_not_fit():
    assert chunks_of(SPECS["3x3"], tiny).counts == (1, 1)
    cut = chunks_of(SPECS["window above the scratchpads"], tiny)
    assert cut.counts != (1, 1)
    assert all(taps * count >= kernel for taps, count, kernel in zip(
        cut.taps, cut.counts, (18, 19), strict=True))


def test_windows_slide_along_the_side_on_which_they_take_fewer_cycles():
    def axis(spec, config=CONFIGS["windows"]):
        return chunks_of(replace(SPECS["3x3"], **spec), config).slide

    assert axis({"height": 9, "width": 4}) == 0
    assert axis({"height": 4, "width": 9}) == 1
    assert axis({"height": 9, "width": 9}) == 1
    assert axis({"dilation": (1, 2)}) == 0                  # taps that are neighbours
    assert axis({"dilation": (2, 2)}) is None
    assert axis({"kernel": (1, 1)}) is None
    assert axis({"stride": (2, 1)}) == 1
    assert axis({"stride": (4, 4)}) is None                 # too much between what is needed
    assert axis({}, tiny) is None


@pytest.mark.parametrize(("slide", "rows"), [
    (None, "0 1 2 3 4 5"), (1, "0 1 2 . 3 4 5 ."), (0, "0 3 . . 1 4 . . 2 5 . .")])
def test_three_taps_along_the_side_that_slides_lie_in_four_rows(slide, rows):
    taps = (2, 3) if slide != 0 else (3, 3)
    weights = np.arange(1, 7, dtype=np.int8).reshape(1, 2, 3).repeat(4, 0)
    packed = Chunks(taps, (1, 1), slide=slide).pack(weights, 4)
    assert packed.shape == (1, 1, 1, len(rows.split()), 4)
    assert (packed == packed[..., :1]).all()
    assert packed[0, 0, 0, :, 0].tolist() == [
        0 if each == "." else int(each) + 1 for each in rows.split()]


def test_more_taps_than_three_are_several_windows():
    chunks = chunks_of(replace(SPECS["3x3"], kernel=(1, 5)), CONFIGS["windows"])
    assert (chunks.taps, chunks.slide) == ((1, 6), 1)
    packed = chunks.pack(np.arange(1, 6, dtype=np.int8).reshape(1, 1, 5), 1)
    assert packed.ravel().tolist() == [1, 2, 3, 0, 4, 5, 0, 0]


def test_channels_out_must_be_a_multiple():
    with pytest.raises(CompileError, match=re.escape(
            "depthwise: channels_out is 5, but must be a multiple of channels_in, which is 2")):
        Depthwise(height=3, width=3, channels_in=2, channels_out=5)


def test_rows_of_weights_are_loaded_in_whole_tiles():
    weights = placeholder("w", (2, 9, 16), "int8")
    copy = compute("copy", weights.shape, lambda c, row, lane: weights[c, row, lane])
    with pytest.raises(CompileError, match=re.escape(
            "stage copy: 9 rows are neither whole tiles of 16 rows, nor an even part of one")):
        Schedule(copy)[copy].address_rows(16)


def test_a_row_addressed_buffer_counts_tiles_to_place_it_and_rows_to_reach_it():
    buffer = Buffer("w.wgt", (3, 8, 4), "int8", Scope.WGT, tile_rows=4)
    assert tiles_of(buffer) == 6
    row = Axis("row", 8)
    reached = tile_index(Region(buffer, (Constant(2), row, Constant(0)), (1, 1, 4)))
    assert reached == Affine(16, {row: 1})


@pytest.mark.parametrize(("size", "channels", "stride", "efficiency"), [
    (56, 32, 1, 0.97), (7, 1024, 1, 0.97), (28, 256, 2, 0.90)])
def test_it_runs_near_one_vector_a_cycle_or_the_speed_of_the_bus(size, channels, stride,
                                                                 efficiency):
    pad = (1, 1, 1, 1) if stride == 1 else (0, 1, 0, 1)
    spec = Depthwise(height=size, width=size, channels_in=channels, channels_out=channels,
                     stride=(stride, stride), pad=pad)
    _, (report,) = check(spec, replace(base, window_taps=1), "cycle")
    vectors = spec.macs // base.depthwise_lanes
    # With stride 2, an output vector takes 9 products, but reads and writes are 10 beats.
    beats = sum((*report.counts.bytes_loaded.values(), *report.counts.bytes_stored.values()))
    assert max(vectors, beats / base.bus_bytes) / report.cycles >= efficiency


@pytest.mark.parametrize("taps", [1, 3])
def test_channel_blocks_of_many_lanes_share_tiles_of_weights(taps):
    """Of 64 rows of a tile, 3 × 3 taps fill 9, or 12 as windows: four blocks lie in one."""
    config = replace(base, block_in=64, block_out=64, window_taps=taps)
    spec = Depthwise(height=6, width=5, channels_in=350, channels_out=350, pad=1, zero_point_in=2)
    plain, dense = OPERATOR.forms_of(spec, config)
    assert [form.weights.shape[-2] for form in (plain, dense)] == [64, 16]
    assert [prod(form.shapes["weights"]) // config.tile_bytes(Scratchpad.WGT)
            for form in (plain, dense)] == [6, 2]
    assert {each.blocks for each in candidates(TEMPLATE, dense)} == {6}
    wider = form_of(replace(spec, channels_in=500, channels_out=500), config, chunks=dense.chunks)
    assert {each.blocks for each in candidates(TEMPLATE, wider)} == {8, 4}
    for each in candidates(TEMPLATE, dense)[::3]:
        check(spec, config, form=dense, knobs=each)
    for blocks in (8, 4):
        check(wider.spec, config, form=OPERATOR.forms_of(wider.spec, config)[1],
              knobs=Knobs(blocks=blocks, rows=1, columns=5))


def test_blocks_of_few_lanes_have_tiles_of_their_own():
    spec = Depthwise(height=6, width=5, channels_in=350, channels_out=350, pad=1)
    assert len(OPERATOR.forms_of(spec, base)) == 1
