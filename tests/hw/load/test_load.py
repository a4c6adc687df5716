"""LOAD with its reader against the functional simulator, on a rude bus."""

import random

import pytest

from microtron.isa.instructions import Buffer, Engines, Load

from ..transfer.boxes import CONFIGS, LOADED, random_load
from ..transfer.transfers import Machine


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [0.3, 0.0])
def test_random_loads_leave_what_the_functional_simulator_leaves(name, stall):
    check_random_loads(name, stall, seed=1, count=11)


@pytest.mark.soak
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("stall", [0.3, 0.0])
def test_many_random_loads_leave_what_the_functional_simulator_leaves(name, stall):
    for seed in range(2, 12):
        check_random_loads(name, stall, seed, count=36)


def check_random_loads(name, stall, seed, count):
    rng = random.Random(f"{name} {stall} {seed}")
    loads = [random_load(rng, CONFIGS[name], rng.choice(LOADED)) for _ in range(count)]
    Machine(CONFIGS[name], loads, seed, stall=stall).run().assert_as_expected()


@pytest.mark.parametrize("name", ["tiny", "bytes on 256"])
def test_a_write_side_that_is_often_refused_loses_nothing(name):
    rng = random.Random(name)
    loads = [random_load(rng, CONFIGS[name], rng.choice((Buffer.ACC, Buffer.ACC8, Buffer.INP)))
             for _ in range(12)]
    Machine(CONFIGS[name], loads, 2, stall=0.0, refusals=0.8).run().assert_as_expected()


@pytest.mark.parametrize("seed", range(2))
def test_loads_that_write_nothing_or_only_a_border_end_in_order(seed):
    rng = random.Random(seed)
    empty = [{"shape": (0, 2, 2), "pad": (1, 1, 1, 1)}, {"shape": (1, 0, 3), "pad": (0, 0, 1, 1)},
             {"shape": (1, 3, 0), "pad": (1, 1, 0, 0)}, {"shape": (0, 0, 0)}]
    border = [{"shape": (2, 0, 3), "pad": (1, 1, 0, 0)}, {"shape": (1, 3, 0), "pad": (0, 0, 1, 1)},
              {"shape": (1, 0, 0), "pad": (1, 0, 1, 0)}, {"shape": (1, 0, 0), "pad": (0, 1, 0, 1)}]
    some = [{"shape": (1, 1, 5), "pad": (0, 0, 2, 0)}, {"shape": (1, 2, 1)}]
    loads = [Load(sram=rng.randrange(40), sram_pitch=9, offset=rng.randrange(40) * 4, pad_value=-3,
                  stride=(8, 12), post=Engines.GEMM, segment=rng.choice((0, 1)),
                  **rng.choice((*empty, *border, *some))) for _ in range(30)]
    Machine(CONFIGS["tiny"], loads, seed, stall=0.2 * seed).run().assert_as_expected()


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
def test_long_rows_at_any_offset_are_cut_on_the_grid(bus_bits):
    config = CONFIGS[{64: "tiny", 128: "tiny on 128", 256: "tiny on 256"}[bus_bits]]
    rng = random.Random(bus_bits)
    loads = [Load(sram=rng.randrange(8), offset=4 * rng.randrange(400), shape=(1, 1, 240))
             for _ in range(4)]
    machine = Machine(config, loads, bus_bits).run()
    machine.assert_as_expected()
    assert len(machine.bus.bursts) > len(loads)


def test_a_load_waits_for_its_tokens_and_posts_when_it_ends():
    loads = [Load(wait=Engines.GEMM | Engines.STORE, post=Engines.ALU, shape=(1, 1, 3))
             for _ in range(6)]
    machine = Machine(CONFIGS["tiny"], loads, 3, stall=0.7).run()
    machine.assert_as_expected()
    assert [position for _, position in machine.commander.starts] == list(range(10, 16))
