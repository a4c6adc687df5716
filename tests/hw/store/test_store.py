"""STORE with its writer against the functional simulator, on a rude bus."""

import random
from dataclasses import replace

import pytest

from microtron.isa.instructions import Buffer, Engines, Store

from ..transfer.boxes import CONFIGS, STORED, random_store
from ..transfer.transfers import Machine


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [0.3, 0.0])
def test_random_stores_leave_what_the_functional_simulator_leaves(name, stall):
    check_random_stores(name, stall, seed=1, count=11)


@pytest.mark.soak
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [0.3, 0.0])
def test_many_random_stores_leave_what_the_functional_simulator_leaves(name, stall):
    for seed in range(2, 12):
        check_random_stores(name, stall, seed, count=36)


def check_random_stores(name, stall, seed, count):
    rng = random.Random(f"{name} {stall} {seed}")
    stores = [random_store(rng, CONFIGS[name], rng.choice(STORED)) for _ in range(count)]
    machine = Machine(CONFIGS[name], stores, seed, stall=stall, beats_first=stall != 0).run()
    machine.assert_as_expected()


@pytest.mark.parametrize("name", ["tiny", "wider out", "bytes on 256"])
def test_a_read_side_that_is_often_refused_loses_nothing(name):
    rng = random.Random(name)
    stores = [random_store(rng, CONFIGS[name], Buffer.ACC) for _ in range(12)]
    Machine(CONFIGS[name], stores, 2, stall=0.0, refusals=0.8).run().assert_as_expected()


@pytest.mark.parametrize("seed", range(3))
def test_stores_without_tiles_end_in_their_turn(seed):
    rng = random.Random(seed)
    stores = [Store(sram=rng.randrange(40), offset=8 * rng.randrange(40), segment=1,
                    shape=rng.choice(((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1), (1, 2, 3))),
                    stride=(0, 64), sram_pitch=(1, 5), post=Engines.LOAD) for _ in range(40)]
    machine = Machine(CONFIGS["tiny"], stores, seed, stall=0.0, latency=(1 + 8 * seed, 20))
    machine.run().assert_as_expected()


def test_rows_that_overlap_in_memory_are_written_in_order():
    stores = [Store(segment=1, shape=(3, 4, 3), sram_pitch=(20, 5), stride=stride, offset=0x100)
              for stride in ((0, 0), (0, 4), (-4, -4), (4, 0))]
    for store in stores:
        Machine(CONFIGS["tiny"], [store], 4).run().assert_as_expected()


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
def test_long_rows_at_any_offset_are_cut_on_the_grid(bus_bits):
    config = CONFIGS[{64: "tiny", 128: "tiny on 128", 256: "tiny on 256"}[bus_bits]]
    rng = random.Random(bus_bits)
    stores = [Store(segment=1, sram=rng.randrange(8), offset=4 * rng.randrange(600),
                    shape=(1, 1, 400)) for _ in range(4)]
    machine = Machine(config, stores, bus_bits).run()
    machine.assert_as_expected()
    assert len(machine.bus.bursts) > len(stores)


def test_a_store_waits_for_its_tokens_and_posts_when_it_ends():
    stores = [Store(segment=1, wait=Engines.GEMM | Engines.ALU, post=Engines.LOAD, shape=(1, 1, 3))
              for _ in range(6)]
    machine = Machine(CONFIGS["tiny"], stores, 3, stall=0.7).run()
    machine.assert_as_expected()
    assert [position for _, position in machine.commander.starts] == list(range(10, 16))


def test_a_store_ends_only_after_its_last_answer():
    stores = [Store(segment=1, shape=(1, 4, 2), stride=(0, 0x100), sram_pitch=(0, 2))] * 3
    config = replace(CONFIGS["tiny"], writes_in_flight=2)
    machine = Machine(config, stores, 6, latency=(50, 60)).run()
    machine.assert_as_expected()
    last_answers = machine.bus.answers_at[3::4]
    assert [cycle for cycle, _ in machine.commander.ends] == [each + 1 for each in last_answers]
