"""What a bad store or a bad answer does to STORE: a fault, nothing outside, a quiet bus."""

import pytest

from microtron.isa.config import base, tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import Buffer, Store

from ..bus.axi_memory import DECERR, EXOKAY, SLVERR
from ..transfer.boxes import CONFIGS, SEGMENT_BASES, SEGMENT_SIZES
from ..transfer.transfers import Machine

GOOD = Store(segment=1, sram=3, shape=(1, 1, 8))
TILE = tiny.tile_bytes(Buffer.OUT)
END = SEGMENT_SIZES[1]


def stop(store, cause, *, config=tiny, stall=0.3, position=11, **options):
    """A bad store between good ones, on a machine that must stop with this cause."""
    machine = Machine(config, [GOOD, store, GOOD, GOOD], 5, stall=stall, **options).run()
    machine.assert_stopped(cause, position)
    assert len(machine.bus.beats_at) == sum(beats for _, beats in machine.bus.bursts)
    return machine


def change(machine, number=1):
    """Bytes of a segment that are not what they were, in tiles."""
    start = SEGMENT_BASES[number]
    return {at // TILE for at in range(SEGMENT_SIZES[number])
            if machine.dram.content[start + at] != machine.before[start + at]}


def test_a_segment_for_reading_is_an_address_fault():
    machine = stop(Store(segment=0), Fault.ADDRESS)
    assert change(machine, 0) == set()


def test_an_empty_store_may_name_any_segment():
    Machine(tiny, [Store(segment=0, shape=(1, 0, 1), sram=65535, offset=1 << 30)]).run(
        ).assert_as_expected()


@pytest.mark.parametrize("store", [
    Store(segment=1, offset=END),
    Store(segment=1, offset=END - TILE, shape=(1, 1, 2)),
    Store(segment=1, offset=0x208, shape=(1, 3, 1), stride=(0, -0x200)),
    Store(segment=1, offset=END - 64, shape=(3, 2, 4), stride=(40, 16), sram_pitch=(20, 4)),
    Store(segment=1, offset=(1 << 32) - TILE, shape=(1, 1, 2)),
    Store(segment=5),
])
def test_a_row_outside_its_window_is_an_address_fault(store):
    machine = stop(store, Fault.ADDRESS)
    allowed = set(range(8)) | {2, 130} | set(range((END - 64) // TILE, END // TILE))
    assert change(machine) <= allowed


@pytest.mark.parametrize("fields", [
    {"offset": 2}, {"stride": (1, 0)}, {"stride": (0, -2)}, {"offset": 3, "shape": (1, 0, 2)}])
def test_bytes_between_tiles_are_an_alignment_fault_before_anything_is_written(fields):
    machine = stop(Store(segment=2, sram=7, **fields), Fault.ALIGNMENT, stall=0.0)
    assert change(machine, 2) == set()


@pytest.mark.parametrize(("config", "store", "good"), [
    (tiny, Store(segment=2, sram=510, shape=(1, 1, 3)), 2),
    (tiny, Store(segment=2, sram=511, shape=(1, 1, 2)), 1),
    (tiny, Store(segment=2, sram=65535), 0),
    (tiny, Store(segment=2, sram=5, shape=(2, 1, 1), sram_pitch=(65535, 0)), 1),
    (tiny, Store(segment=2, sram=5, shape=(1, 2, 1), sram_pitch=(0, 600)), 1),
    (tiny, Store(segment=2, buffer=Buffer.ACC, sram=511, shape=(1, 1, 2)), 1),
    (base, Store(segment=2, sram=2047, shape=(1, 1, 2)), 1),
    (CONFIGS["a word too few"], Store(segment=2, shape=(1, 1, 9)), 0),      # in one beat
])
def test_a_tile_outside_its_scratchpad_is_an_index_fault_and_is_not_read(config, store, good):
    around = Store(segment=1, shape=(1, 1, 2))
    machine = Machine(config, [around, store, around], 5).run()
    machine.assert_stopped(Fault.INDEX, 11)
    untouched = SEGMENT_BASES[2] + good * config.tile_bytes(store.buffer)
    end = SEGMENT_BASES[2] + SEGMENT_SIZES[2]
    assert machine.dram.content[untouched:end] == machine.before[untouched:end]


@pytest.mark.parametrize("response", [SLVERR, DECERR])
@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("row", range(3))
def test_an_error_on_the_bus_is_a_fault_of_the_store_it_answers(response, stall, row):
    store = Store(segment=2, shape=(1, 3, 40), sram_pitch=(0, 40), stride=(0, 0x200))
    wrong = SEGMENT_BASES[2] + 0x200 * row + 16
    stop(store, Fault.WRITE_ERROR, errors={wrong: response}, stall=stall)


def test_an_exclusive_okay_is_no_error():
    Machine(tiny, [GOOD], errors={SEGMENT_BASES[1] + 8: EXOKAY}).run().assert_as_expected()


@pytest.mark.parametrize("halt_at", [1, 2, 3, 5, 10, 25, 60, 100])
def test_a_halt_stops_everything_and_ends_the_bursts_that_have_begun(halt_at):
    stores = [Store(segment=1, shape=(2, 3, 40), stride=(0x800, 0x100), sram_pitch=(3, 44))] * 20
    machine = Machine(tiny, stores, halt_at, halt_at=halt_at).run()
    machine.assert_stopped()
    assert len(machine.bus.beats_at) == sum(beats for _, beats in machine.bus.bursts)
    machine.instructions = stores[:1]
    after = machine.expected().memory.segments[1]       # every store does the same
    for at, byte in enumerate(machine.dram.content[SEGMENT_BASES[1]:][:END]):
        assert byte in (machine.before[SEGMENT_BASES[1] + at], after[at])
