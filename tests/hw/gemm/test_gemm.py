"""GEMM against the functional simulator: every flag, any order of tiles, and to the cycle."""

import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.back import verilog

from microtron.hw.gemm.gemm import GemmEngine, start_to_end, write_stage
from microtron.isa.config import Config, base, tiny
from microtron.isa.instructions import Engines, Gemm, GemmFlags, Window
from microtron.sim.functional.scratchpads import Scratchpads

from .gemm_bench import expected_acc, random_gemms, random_pads, run, slots_of, writes_of

CONFIGS = {
    "tiny": tiny,
    "batch": replace(tiny, batch=2, block_in=8, block_out=2, bus_bits=128),
    "more outputs, int4": replace(tiny, block_in=2, block_out=8, wgt_bits=4, bus_bits=256),
    "one bank": replace(tiny, block_in=16, block_out=4, acc_banks=1, inp_bytes=1024),
    "windows": replace(tiny, window_taps=3),
    "windows, more outputs, int4": replace(tiny, block_out=16, wgt_bits=4, window_taps=3),
}
ONE = replace(tiny, block_in=1, block_out=1, inp_bytes=64, wgt_bytes=64, acc_bytes=256)


def random_program(name, seed, count=10):
    rng, config = random.Random(f"{name} {seed}"), CONFIGS.get(name, ONE)
    gemms, uops = random_gemms(rng, config, count)
    pads = random_pads(rng, config)
    pads.uop[...] = uops
    return config, gemms, pads


def check_times(config, gemms, result):
    """No instruction takes a cycle more than its slots, whatever happened around it."""
    for gemm, start, end in zip(gemms, result.starts, result.ends, strict=True):
        assert end - start == start_to_end(config, slots_of(gemm))
    for number, following in enumerate(result.starts[1:]):
        assert following - result.starts[number] >= max(1, slots_of(gemms[number]))
    assert len(result.writes) == sum(map(writes_of, gemms))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CONFIGS)
def test_random_instructions_leave_what_the_functional_simulator_leaves(name, seed):
    check_random_instructions(name, seed, count=10)


@pytest.mark.soak
@pytest.mark.parametrize("name", CONFIGS)
def test_many_random_instructions_leave_what_the_functional_simulator_leaves(name):
    for seed in range(2, 12):
        check_random_instructions(name, seed, count=28)


def check_random_instructions(name, seed, count):
    config, gemms, pads = random_program(name, seed, count)
    often = (0.3, 1)[seed % 2]
    result = run(config, gemms, pads, seed=seed, offered=often, granted=often)
    assert result.fault is None
    check_times(config, gemms, result)
    assert result.posts == [int(gemm.post) for gemm in gemms]
    np.testing.assert_array_equal(result.acc, expected_acc(gemms, pads))


def test_the_smallest_array_multiplies_too():
    config, gemms, pads = random_program("one", 0)
    result = run(config, gemms, pads)
    np.testing.assert_array_equal(result.acc, expected_acc(gemms, pads))


def sequence(config, dsts, bias=()):
    """Scratchpads with micro-ops that go to these accumulator tiles, each with other operands."""
    pads = random_pads(random.Random(3), config)
    for number, dst in enumerate(dsts):
        pads.uop[number] = (dst, number, number, bias[number] if bias else 0)
    return pads


def test_n_products_take_n_cycles_and_a_constant():
    constant = write_stage(tiny)
    assert constant == 10
    for products in (1, 2, 40):
        gemm = Gemm(count=products)
        result = run(tiny, [gemm], sequence(tiny, range(products)))
        assert result.starts == [0]
        assert result.writes == list(range(1 + constant, 1 + constant + products))
        assert result.ends == [constant + products] == [result.writes[-1]]


def test_back_to_back_instructions_have_no_bubble():
    gemms = [Gemm(count=5), Gemm(count=1), Gemm(count=1), Gemm(count=3, loops=(2, 1, 2)),
             Gemm(count=0), Gemm(count=2)]
    result = run(tiny, gemms, sequence(tiny, range(5)))
    assert result.starts == [0, 5, 6, 7, 19, 20]
    constant = write_stage(tiny)
    assert result.ends == [constant + slots for slots in (5, 6, 7, 19, 20, 22)]
    marker = 1 + constant + 19
    assert result.writes == [cycle for cycle in range(1 + constant, 1 + constant + 22)
                             if cycle != marker]


def test_a_window_writes_from_its_third_slot_on():
    config = CONFIGS["windows"]
    windows = [Window(loops=(1, 2, 5), dst_stride=(0, 3, 1)), Window(), Window(loops=(1, 1, 3))]
    result = run(config, windows, sequence(config, [0]))
    assert result.starts == [0, 10, 11]
    first = 1 + write_stage(config)
    assert result.writes == [first + slot for slot in (2, 3, 4, 7, 8, 9, 13)]
    assert result.ends == [first + slot for slot in (9, 10, 13)]


def test_the_constant_grows_with_the_adder_tree_only():
    assert [write_stage(replace(tiny, block_in=block)) for block in (4, 8, 16, 32, 64)] == [
        10, 11, 12, 13, 14]
    assert start_to_end(base, 100) == 112


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("flags", [GemmFlags(0), GemmFlags.START | GemmFlags.BIAS])
def test_a_tile_written_a_few_slots_ago_is_found(distance, flags):
    dsts = [number % distance for number in range(20)]
    pads = sequence(tiny, [dst if not flags else number + 30 for number, dst in enumerate(dsts)],
                    bias=[number + 30 - distance for number in range(20)] if flags else ())
    gemms = [Gemm(count=20, flags=flags)]
    np.testing.assert_array_equal(run(tiny, gemms, pads).acc, expected_acc(gemms, pads))


def test_random_orders_of_few_tiles_are_right_across_instructions():
    rng = random.Random(8)
    tiles = [rng.randrange(4) for _ in range(60)]
    pads = sequence(tiny, tiles, bias=[rng.randrange(4) for _ in tiles])
    start = GemmFlags.START
    gemms = [Gemm(uop=number, flags=rng.choice((0, 0, start, start | GemmFlags.BIAS)))
             for number in range(60)]
    np.testing.assert_array_equal(run(tiny, gemms, pads).acc, expected_acc(gemms, pads))


def test_sums_wrap_at_32_bits():
    pads = Scratchpads(tiny)
    pads.acc[0], pads.acc[1] = 2**31 - 1, -2**31
    pads.inp[0], pads.wgt[0], pads.inp[1] = 1, 1, -1
    pads.uop[0], pads.uop[1] = (0, 0, 0, 0), (1, 1, 0, 0)
    acc = run(tiny, [Gemm(count=2)], pads).acc
    assert (acc[0] == -2**31 + 3).all()
    assert (acc[1] == 2**31 - 4).all()


def test_an_instruction_waits_for_its_tokens_and_says_so():
    gemms = [Gemm(count=4, wait=Engines.LOAD), Gemm(count=1, wait=Engines.LOAD | Engines.ALU,
                                                     post=Engines.STORE), Gemm(count=2)]
    result = run(tiny, gemms, sequence(tiny, range(4)), granted=0.1, seed=5)
    check_times(tiny, gemms, result)
    slack = result.starts[0] + (result.starts[1] - result.starts[0] - 4)
    assert result.waits == slack > 0
    assert result.starts[2] == result.starts[1] + 1         # it waits for no token
    assert result.posts == [0, int(Engines.STORE), 0]


def test_halt_takes_no_command_and_posts_nothing():
    gemms = [Gemm(count=4, post=Engines.ALU) for _ in range(8)]
    result = run(tiny, gemms, sequence(tiny, range(4)), halt_at=15, cycles=60)
    assert result.starts == [0, 4, 8, 12]
    assert result.ends == [14]                              # the others would have ended later
    assert max(result.writes) == 14 + write_stage(tiny)     # issued before, so completed
    idle = run(tiny, gemms, sequence(tiny, range(4)), halt_at=1, cycles=20)
    assert idle.starts == [0]
    assert idle.writes == []                                # its first slot was never issued


# All that 16 bits can name; weights even more, by their rows.
LARGEST = Config(block_in=1, block_out=4, uop_bytes=512 << 10, inp_bytes=64 << 10,
                 wgt_bytes=256 << 10, acc_bytes=1 << 20, out_bytes=64 << 10)


def test_the_largest_scratchpads_are_reached_to_their_ends():
    pads, rng = Scratchpads(LARGEST), np.random.default_rng(1)
    pads.uop[65535] = (65535, 65535, 0, 65535)
    pads.uop[0] = (0, 0, 65535, 0)
    for where in (slice(0, 16), slice(32750, 32800), slice(65520, 65536)):      # what is reached
        for tiles in (pads.inp, pads.wgt, pads.acc):
            tiles[where] = rng.integers(-128, 128, tiles[where].shape)
    gemms = [
        Gemm(uop=65535, loops=(3, 2, 2), dst_stride=(-32767, 0, -1), src_stride=(-32767, 0, -1),
             wgt_stride=(32767, 32767, 32767), flags=GemmFlags.DEPTHWISE),
        Gemm(loops=(3, 2, 2), dst_stride=(32767, 0, 1), src_stride=(32767, 0, 1),
             wgt_stride=(-32767, 0, -1), flags=GemmFlags.START | GemmFlags.BIAS),
        Gemm(loops=(1, 1, 7), wgt_stride=(0, 0, 32767), flags=GemmFlags.DEPTHWISE),
    ]
    result = run(LARGEST, gemms, pads)
    assert result.fault is None
    np.testing.assert_array_equal(result.acc, expected_acc(gemms, pads))


def test_one_input_channel_needs_no_signal_without_bits():
    assert "[-1:0]" not in verilog.convert(GemmEngine(ONE), emit_src=False)
