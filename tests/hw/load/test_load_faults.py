"""What a bad load or a bad answer does to LOAD: a fault, nothing outside, a quiet bus."""

from dataclasses import replace

import pytest

from microtron.isa.config import base, tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import Buffer, Load

from ..bus.axi_memory import DECERR, EXOKAY, SLVERR
from ..transfer.boxes import CONFIGS, SEGMENT_BASES, SEGMENT_SIZES
from ..transfer.transfers import Machine

GOOD = Load(sram=300, shape=(1, 1, 60))
TILE = tiny.tile_bytes(Buffer.INP)
END = SEGMENT_SIZES[0]


def stop(load, cause, *, config=tiny, before=GOOD, stall=0.3, **options):
    """A bad load between good ones, on a machine that must stop with this cause."""
    machine = Machine(config, [before, load, GOOD, GOOD], 5, stall=stall, **options).run()
    machine.assert_stopped(cause, 11)
    assert bytes(machine.dram.content) == machine.before
    return machine


@pytest.mark.parametrize("load", [
    Load(offset=END),
    Load(offset=END - TILE, shape=(1, 1, 2)),
    Load(offset=8, shape=(1, 3, 1), stride=(0, -8)),
    Load(offset=END - 64, shape=(3, 2, 4), stride=(40, 16), sram_pitch=20),
    Load(offset=(1 << 32) - TILE, shape=(1, 1, 2)),
    Load(segment=5),
    Load(segment=7, offset=4, shape=(1, 1, 1), pad=(1, 1, 1, 1)),
])
def test_a_row_outside_its_window_is_an_address_fault(load):
    machine = stop(load, Fault.ADDRESS)
    assert machine.pads[Buffer.INP].tiles_written <= set(range(60)) | set(range(300, 360))


@pytest.mark.parametrize("fields", [
    {"offset": 2}, {"stride": (1, 0)}, {"stride": (0, -2)}, {"stride": (-1, 4)},
    {"offset": 3, "shape": (1, 0, 2), "pad": (1, 1, 0, 0)}, {"offset": 1, "shape": (0, 1, 1)}])
def test_bytes_between_tiles_are_an_alignment_fault_before_anything_is_written(fields):
    machine = stop(Load(sram=7, **fields), Fault.ALIGNMENT, stall=0.0)
    assert machine.pads[Buffer.INP].tiles_written <= set(range(300, 360))


@pytest.mark.parametrize(("config", "load", "good"), [
    (tiny, Load(sram=510, shape=(1, 1, 3)), {510, 511}),
    (tiny, Load(sram=511, shape=(1, 2, 1), stride=(0, 8)), {511}),
    (tiny, Load(sram=65535), set()),
    (tiny, Load(sram=510, shape=(1, 1, 1), pad=(0, 0, 0, 2)), {510, 511}),
    (tiny, Load(sram=1, shape=(2, 1, 1), sram_pitch=65535), {1}),
    (tiny, Load(buffer=Buffer.WGT, sram=255, shape=(1, 1, 2)), {255}),
    (tiny, Load(buffer=Buffer.UOP, sram=256), set()),
    (tiny, Load(buffer=Buffer.ACC, sram=511, shape=(1, 1, 2)), {511}),
    (tiny, Load(buffer=Buffer.ACC8, sram=511, shape=(1, 1, 2)), {511}),
    (CONFIGS["a word too few"], Load(sram=0, shape=(1, 1, 17)), set()),     # in one beat
    (CONFIGS["a word too few"], Load(sram=1, shape=(1, 1, 16)), set(range(1, 16))),
    (base, Load(buffer=Buffer.INP, sram=2047, shape=(1, 1, 2)), {2047}),
])
def test_a_tile_outside_its_scratchpad_is_an_index_fault_and_is_not_written(config, load, good):
    before = replace(GOOD, sram=0, shape=(1, 0, 0))
    machine = stop(load, Fault.INDEX, config=config, before=before)
    buffer = Buffer.ACC if load.buffer == Buffer.ACC8 else load.buffer
    assert machine.pads[buffer].tiles_written == good


@pytest.mark.parametrize("value", [8, -9, 127, -128])
def test_padding_that_does_not_fit_in_a_weight_is_illegal(value):
    config = CONFIGS["batch"]
    load = Load(buffer=Buffer.WGT, pad=(1, 0, 0, 0), pad_value=value)
    machine = stop(load, Fault.ILLEGAL, config=config, before=Load(shape=(1, 1, 9)))
    assert machine.pads[Buffer.WGT].tiles_written == set()
    for good in (7, -8):
        Machine(config, [replace(load, pad_value=good)]).run().assert_as_expected()


@pytest.mark.parametrize("response", [SLVERR, DECERR])
@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_an_error_on_the_bus_is_a_fault_and_its_beat_is_not_written(response, stall):
    load = Load(buffer=Buffer.WGT, offset=0x400, shape=(1, 1, 40))
    wrong = SEGMENT_BASES[0] + 0x400 + 16 * 9 + 8           # the second half of tile 9
    machine = stop(load, Fault.READ_ERROR, errors={wrong: response}, stall=stall)
    assert machine.pads[Buffer.WGT].tiles_written == set(range(10))
    tile = machine.pads[Buffer.WGT].content[9 * 16:10 * 16]
    assert (tile[8:] == machine.pads_before[Buffer.WGT][9 * 16 + 8:10 * 16]).all()
    assert len(machine.bus.beats_at) == sum(beats for _, beats in machine.bus.bursts)


def test_an_error_in_the_very_last_beat_keeps_the_load_from_ending():
    load = Load(buffer=Buffer.WGT, offset=0x400, shape=(1, 1, 4))
    stop(load, Fault.READ_ERROR, errors={SEGMENT_BASES[0] + 0x400 + 16 * 3 + 8: SLVERR})


def test_an_exclusive_okay_is_no_error():
    machine = Machine(tiny, [GOOD], errors={SEGMENT_BASES[0] + 8: EXOKAY}).run()
    machine.assert_as_expected()


@pytest.mark.parametrize("halt_at", [1, 2, 3, 5, 25, 60, 100])
def test_a_halt_stops_everything_and_drains_the_bus(halt_at):
    loads = [Load(shape=(2, 3, 12), pad=(0, 0, 1, 1), stride=(64, 128), sram_pitch=48)] * 20
    machine = Machine(tiny, loads, halt_at, halt_at=halt_at).run()
    machine.assert_stopped()
    assert len(machine.bus.beats_at) == sum(beats for _, beats in machine.bus.bursts)
