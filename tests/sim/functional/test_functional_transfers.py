"""LOAD and STORE: boxes, borders, strides and packing, against the reference and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer, Load, MicroOp, Store
from microtron.isa.stream import encode_micro_ops
from microtron.sim.functional.scratchpads import pack, unpack
from microtron.sim.functional.simulator import Functional

from .support import CONFIGS, configs, program, random_lanes, same_as_reference, seeds

extents = st.integers(0, 3)
borders = st.tuples(*[st.integers(0, 2)] * 4)
strides = st.tuples(*[st.integers(-3, 3)] * 2)
MIDDLE = 20                 # tiles into a segment: room for the strides above in both directions


def segment(config, seed, tiles=48):
    return np.random.default_rng(seed).integers(
        0, 256, tiles * max(config.tile_bytes(buffer) for buffer in Buffer), np.uint8)


@given(config=configs, seed=seeds, buffer=st.sampled_from(list(Buffer)[:5]),
       shape=st.tuples(extents, extents, extents), stride=strides, pad=borders,
       pad_value=st.integers(-8, 7), sram=st.integers(0, 5), sram_pitch=st.integers(0, 3))
def test_a_load_equals_the_reference(config, seed, buffer, shape, stride, pad, **fields):
    if buffer == Buffer.UOP or config.tiles(buffer) < 60:
        pad = (0, 0, 0, 0)
    tile = config.tile_bytes(buffer)
    load = Load(buffer=buffer, offset=MIDDLE * tile, shape=shape, pad=pad,
                stride=(stride[0] * tile, stride[1] * tile), **fields)
    same_as_reference(config, load, seed, segments={"data": segment(config, seed)})


@given(config=configs, seed=seeds, buffer=st.sampled_from((Buffer.OUT, Buffer.ACC)),
       shape=st.tuples(extents, extents, extents), stride=strides, sram=st.integers(0, 5),
       sram_pitch=st.tuples(*[st.integers(0, 4)] * 2))
def test_a_store_equals_the_reference(config, seed, buffer, shape, stride, **fields):
    tile = config.tile_bytes(buffer)
    store = Store(buffer=buffer, offset=MIDDLE * tile, shape=shape,
                  stride=(stride[0] * tile, stride[1] * tile), **fields)
    same_as_reference(config, store, seed, segments={"data": len(segment(config, 0))})


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("buffer", Buffer)
def test_unpacking_undoes_packing(name, buffer):
    config = CONFIGS[name]
    data = np.random.default_rng(7).integers(0, 256, (2, 3 * config.tile_bytes(buffer)), np.uint8)
    tiles = unpack(data, buffer, config)
    assert tiles.shape[:2] == (2, 3)
    np.testing.assert_array_equal(pack(tiles, buffer, config), data)


def test_the_first_weight_of_a_byte_is_its_low_nibble_and_has_a_sign():
    config = CONFIGS["int4"]
    data = np.array([0x8F, 0x07], np.uint8).repeat(8)[None]
    weights = unpack(data, Buffer.WGT, config)[0].ravel()
    assert weights[:4].tolist() == [-1, -8, -1, -8]
    assert weights[-4:].tolist() == [7, 0, 7, 0]


def loaded(load, data, config=tiny, before=99):
    """The scratchpad that a load leaves where every lane was `before`."""
    machine = Functional(program(config, load, data=data))
    machine.scratchpads.of(load.buffer)[:] = before
    machine.execute(0)
    return machine.scratchpads.of(load.buffer)


BYTES = np.arange(256, dtype=np.uint8)


def test_rows_lie_inside_their_border():
    load = Load(shape=(1, 2, 1), stride=(0, 4), pad=(1, 1, 2, 1), pad_value=-128)
    inp = loaded(load, BYTES)[:, 0, 0]
    p = -128
    assert inp[:16].tolist() == [p, p, p, p, p, p, 0, p, p, p, 4, p, p, p, p, p]
    assert inp[16] == 99


def test_planes_are_a_pitch_apart_and_what_lies_between_stays():
    inp = loaded(Load(shape=(2, 1, 2), stride=(16, 0), sram_pitch=4), BYTES)[:7, 0, 0]
    assert inp.tolist() == [0, 4, 99, 99, 16, 20, 99]


def test_overlapping_planes_are_written_in_order():
    assert loaded(Load(shape=(3, 1, 2), stride=(8, 0), sram_pitch=1), BYTES)[:5, 0, 0].tolist() == [
        0, 8, 16, 20, 99]
    assert loaded(Load(shape=(3, 1, 1), stride=(8, 0)), BYTES)[:2, 0, 0].tolist() == [16, 99]


def test_the_border_of_a_plane_covers_what_the_plane_before_left_there():
    load = Load(shape=(2, 1, 1), stride=(8, 0), sram_pitch=1, pad=(0, 0, 1, 0), pad_value=7)
    assert loaded(load, BYTES)[:4, 0, 0].tolist() == [7, 7, 8, 99]


def test_negative_strides_read_backwards():
    inp = loaded(Load(offset=40, shape=(2, 2, 1), stride=(-16, -4), sram_pitch=2), BYTES)
    assert inp[:4, 0, 0].tolist() == [40, 36, 24, 20]


def test_a_stride_of_zero_repeats_a_row():
    assert loaded(Load(offset=8, shape=(1, 3, 1)), BYTES)[:4, 0, 0].tolist() == [8, 8, 8, 99]


@pytest.mark.parametrize(("shape", "pad", "tiles"), [
    ((1, 0, 3), (1, 1, 0, 0), 6),           # two rows of three
    ((1, 3, 0), (0, 0, 1, 1), 6),           # three rows of two
    ((1, 0, 0), (1, 0, 1, 0), 1),
    ((2, 0, 2), (1, 0, 0, 0), 4),           # two planes
])
def test_an_empty_box_writes_its_border_and_reads_nothing(shape, pad, tiles):
    load = Load(shape=shape, pad=pad, pad_value=-5, segment=7, offset=1 << 20, sram_pitch=2)
    inp = loaded(load, BYTES)[:, 0, 0]
    assert (inp[:tiles] == -5).all()
    assert (inp[tiles:] == 99).all()


@pytest.mark.parametrize(("shape", "pad"), [
    ((0, 2, 2), (1, 1, 1, 1)), ((1, 0, 3), (0, 0, 1, 1)), ((1, 3, 0), (1, 1, 0, 0)),
    ((0, 0, 0), (0, 0, 0, 0))])
def test_no_planes_or_no_border_beside_an_empty_box_writes_nothing(shape, pad):
    assert (loaded(Load(shape=shape, pad=pad, sram=65535), BYTES) == 99).all()


def test_every_lane_of_the_border_has_the_value():
    for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8):
        load = Load(buffer=buffer, shape=(1, 1, 0), pad=(0, 0, 1, 0), pad_value=-8)
        for config in CONFIGS.values():
            assert (loaded(load, BYTES, config)[0] == -8).all()


def test_bytes_for_the_accumulator_keep_their_sign():
    data = np.array([0, 1, 127, 128, 255, 0, 0, 0], np.uint8)
    acc = loaded(Load(buffer=Buffer.ACC8, shape=(1, 1, 2)), data)
    assert acc[:2, 0].tolist() == [[0, 1, 127, -128], [-1, 0, 0, 0]]


def test_words_for_the_accumulator_are_little_endian():
    acc = loaded(Load(buffer=Buffer.ACC), BYTES)
    assert acc[0, 0].tolist() == [0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C]


def test_micro_ops_arrive_field_by_field():
    micro_ops = [MicroOp(dst=1, src=2, wgt=3, bias=65535), MicroOp(dst=40000)]
    uop = loaded(Load(buffer=Buffer.UOP, sram=3, shape=(1, 1, 2)), encode_micro_ops(micro_ops))
    assert uop[3:5].tolist() == [[1, 2, 3, 65535], [40000, 0, 0, 0]]


def stored(store, size=64):
    """A segment after a store from an out scratchpad whose tile n holds n."""
    machine = Functional(program(tiny, store, data=size))
    machine.scratchpads.out[:] = np.arange(512)[:, None, None] % 100
    machine.execute(0)
    return machine.memory.segments[0][::4]


def test_a_store_gathers_by_pitch_and_scatters_by_stride():
    store = Store(sram=1, shape=(2, 2, 2), sram_pitch=(10, 3), stride=(32, 12))
    assert stored(store).tolist() == [1, 2, 0, 4, 5, 0, 0, 0, 11, 12, 0, 14, 15, 0, 0, 0]


def test_a_store_may_interleave_planes():
    store = Store(shape=(2, 2, 1), sram_pitch=(2, 1), stride=(4, 8))
    assert stored(store)[:5].tolist() == [0, 2, 1, 3, 0]


def test_rows_that_overlap_in_memory_are_written_in_order():
    forwards = Store(sram=5, shape=(1, 3, 2), sram_pitch=(0, 2), stride=(0, 4))
    assert stored(forwards)[:5].tolist() == [5, 7, 9, 10, 0]
    backwards = replace(forwards, offset=8, stride=(0, -4))
    assert stored(backwards)[:5].tolist() == [9, 10, 8, 6, 0]
    assert stored(Store(sram=5, shape=(3, 1, 1), sram_pitch=(1, 0)))[:2].tolist() == [7, 0]


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_an_empty_store_touches_nothing_wherever_it_points(shape):
    store = Store(shape=shape, sram=65535, segment=7, offset=1 << 20)
    assert (stored(store) == 0).all()


def test_accumulators_are_stored_whole():
    machine = Functional(program(CONFIGS["batch"], Store(buffer=Buffer.ACC), data=32))
    lanes = random_lanes(np.random.default_rng(0), np.int32, (2, 4), CONFIGS["batch"])
    machine.scratchpads.acc[0] = lanes
    machine.execute(0)
    assert (machine.memory.segments[0].view("<i4").reshape(2, 4) == lanes).all()
