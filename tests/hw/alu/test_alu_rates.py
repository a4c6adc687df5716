"""How long the ALU engine takes, to the cycle."""

from dataclasses import replace

import pytest

from microtron.hw.alu.alu import start_to_end
from microtron.hw.alu.alu_lanes import latency
from microtron.isa.config import tiny
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer, Requantize, RequantizeFlags

from .alu_bench import Bench

# One lane, 4 banks of 128 tiles, by the cycles that a vector takes.
ONE_LANE = {lanes: replace(tiny, block_out=lanes, acc_bytes=2048 * lanes, out_bytes=512 * lanes,
                           vector_cycles=lanes) for lanes in (1, 2, 4, 16)}
ALONG = {"dst_stride": (0, 0, 1)}


def dependent(config):
    """Cycles between a step and one that reads what it wrote."""
    return latency(config) + 3


@pytest.fixture(params=[1, 4], ids="vector_cycles={}".format)
def config(request):
    return ONE_LANE[request.param]


def run(config, *instructions, alone):
    bench = Bench(config, list(instructions), alone=alone).run()
    assert bench.fault is None
    return bench


def test_the_latency_is_what_it_always_was():
    assert [(latency(each), start_to_end(each), start_to_end(each, 10))
            for each in ONE_LANE.values()] == [(14, 18, 27), (16, 20, 38), (18, 22, 58),
                                               (30, 34, 178)]


def test_immediate_and_tensor_operands_take_their_cycles_a_vector(config):
    instructions, wanted = [], []
    for steps in (1, 7, 40):
        along = {"loops": (1, 1, steps), "dst_stride": (0, 0, 1)}
        instructions += [
            AluI(op=AluOp.MAX, src_stride=(0, 0, 1), **along),
            Alu(op=AluOp.ADD, rhs=200, rhs_stride=(0, 0, 1), **along),
            Alu(op=AluOp.MOVE, rhs=20, rhs_stride=(0, 0, 1), **along),
            AluI(op=AluOp.MUL, src_stride=(0, 0, 1), target=Buffer.OUT, **along),
            AluI(op=AluOp.MOVE, **along),
        ]
        wanted += [start_to_end(config, steps)] * 5
    assert run(config, *instructions, alone=True).cycles == wanted


def test_requantize_takes_three_cycles_more_an_outer_iteration(config):
    instructions, wanted = [], []
    for outer, inner in ((1, 1), (1, 30), (3, 10), (5, 1)):
        for flags in (RequantizeFlags(0), RequantizeFlags.ACC):
            instructions.append(Requantize(
                flags=flags, params=300, params_stride=3, loops=(outer, 1, inner),
                dst_stride=(inner, 0, 1), src_stride=(inner, 0, 1)))
            wanted.append(start_to_end(config, outer * inner) + 3 * outer)
    assert run(config, *instructions, alone=True).cycles == wanted


def test_no_iterations_take_as_long_as_one(config):
    empty = [AluI(loops=(0, 1, 1)), Alu(loops=(1, 0, 1)), Requantize(loops=(1, 1, 0))]
    assert run(config, *empty, alone=True).cycles == [start_to_end(config)] * 3


def test_instructions_follow_one_another_without_a_bubble(config):
    bench = run(
        config,
        AluI(loops=(1, 2, 3), dst_stride=(0, 3, 1), src_stride=(0, 3, 1)),
        AluI(loops=(1, 1, 0)),
        Alu(dst=100, lhs=100, rhs=200),
        Alu(dst=101, lhs=101, rhs=201, target=Buffer.OUT),
        Requantize(src=130, params=300, dst=7),
        AluI(dst=400, loops=(1, 1, 9), op=AluOp.MOVE, immediate=3, **ALONG),
        alone=False)
    done = [start_to_end(config, steps) + (3 if steps > 9 else 0) for steps in range(1, 20)]
    assert bench.ends == [done[steps - 1] for steps in (6, 7, 8, 9, 10, 19)]
    assert bench.writes == [each for steps, each in enumerate(done, 1) if steps != 7]
    if config.vector_cycles == 1:
        assert bench.starts == [0, 6, 7, 8, 9, 13]


def test_operands_in_one_bank_take_a_cycle_more_a_vector(config):
    both = Alu(loops=(1, 1, 20), rhs=50, rhs_stride=(0, 0, 1), **ALONG)
    assert run(config, both, alone=True).cycles == [start_to_end(config, 20) + 20]


@pytest.mark.parametrize("gap", [1, 2, 16, 17])
def test_a_step_waits_until_what_it_reads_has_been_written(gap, config):
    steps = 4
    left = Alu(dst=0, lhs=0, rhs=200, loops=(1, steps, gap), **ALONG)
    right = Alu(dst=0, lhs=200, rhs=0, loops=(1, steps, gap), dst_stride=(0, 0, 1),
                rhs_stride=(0, 0, 1))
    immediate = AluI(dst=5, src=5, loops=(1, steps, gap), src_stride=(0, 0, 1), **ALONG)
    wanted = (steps - 1) * max(dependent(config), gap * config.vector_cycles)
    assert run(config, left, right, immediate, alone=True).cycles == [
        wanted + start_to_end(config, gap)] * 3


def test_parameters_wait_until_they_have_been_written(config):
    steps = 4
    multiplier = Requantize(dst=301, params=300, flags=RequantizeFlags.ACC, loops=(steps, 1, 1))
    # The multiplier waits; the shift and the next step follow.
    wanted = start_to_end(config) + 3 + (steps - 1) * (dependent(config) + 2)
    assert run(config, multiplier, alone=True).cycles == [wanted]


def test_tiles_that_differ_in_one_bit_are_not_waited_for(config):
    instructions = []
    for bit in range(4, 9):
        behind = (1 << bit) - 1         # but for this bit, the tile that the last step writes
        along = {"loops": (1, 1, 12), "dst_stride": (0, 0, 1)}
        instructions += [AluI(src=behind, src_stride=(0, 0, 1), **along),
                         Alu(op=AluOp.MOVE, rhs=behind, rhs_stride=(0, 0, 1), **along)]
    assert run(config, *instructions, alone=True).cycles == [
        start_to_end(config, 12)] * len(instructions)


def test_a_write_to_out_is_not_waited_for(config):
    same_number = AluI(dst=0, src=0, loops=(1, 1, 30), target=Buffer.OUT)
    assert run(config, same_number, alone=True).cycles == [start_to_end(config, 30)]


def test_dependences_reach_from_one_instruction_to_the_next(config):
    bench = run(config, AluI(dst=7, src=7), AluI(dst=8, src=7), alone=False)
    assert bench.ends == [start_to_end(config), start_to_end(config) + dependent(config)]
