"""How long the ALU engine takes, to the cycle."""

from dataclasses import replace

import pytest

from microtron.hw.alu import START_TO_END
from microtron.hw.alu_lanes import LATENCY
from microtron.isa.config import tiny
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer, Requantize, RequantizeFlags

from .alu_bench import Bench

ONE_LANE = replace(tiny, block_out=1, acc_bytes=2048, out_bytes=512)     # 4 banks of 128 tiles
ALONG = {"dst_stride": (0, 0, 1)}
DEPENDENT = LATENCY + 4     # cycles between a step and one that reads what it wrote


def run(*instructions, alone):
    bench = Bench(ONE_LANE, list(instructions), alone=alone).run()
    assert bench.fault is None
    return bench


def test_the_latency_is_what_it_always_was():
    assert (LATENCY, START_TO_END) == (13, 18)


def test_immediate_and_tensor_operands_take_a_cycle_a_vector():
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
        wanted += [START_TO_END + steps - 1] * 5
    assert run(*instructions, alone=True).cycles == wanted


def test_requantize_takes_a_cycle_a_vector_and_three_an_outer_iteration():
    instructions, wanted = [], []
    for outer, inner in ((1, 1), (1, 30), (3, 10), (5, 1)):
        for flags in (RequantizeFlags(0), RequantizeFlags.ACC):
            instructions.append(Requantize(
                flags=flags, params=300, params_stride=3, loops=(outer, 1, inner),
                dst_stride=(inner, 0, 1), src_stride=(inner, 0, 1)))
            wanted.append(START_TO_END + outer * (3 + inner) - 1)
    assert run(*instructions, alone=True).cycles == wanted


def test_no_iterations_take_as_long_as_one():
    empty = [AluI(loops=(0, 1, 1)), Alu(loops=(1, 0, 1)), Requantize(loops=(1, 1, 0))]
    assert run(*empty, alone=True).cycles == [START_TO_END] * 3


def test_instructions_follow_one_another_without_a_bubble():
    bench = run(
        AluI(loops=(1, 2, 3), dst_stride=(0, 3, 1), src_stride=(0, 3, 1)),
        AluI(loops=(1, 1, 0)),
        Alu(dst=100, lhs=100, rhs=200),
        Alu(dst=101, lhs=101, rhs=201, target=Buffer.OUT),
        Requantize(src=130, params=300, dst=7),
        AluI(dst=400, loops=(1, 1, 9), op=AluOp.MOVE, immediate=3, **ALONG),
        alone=False)
    assert bench.starts == [0, 6, 7, 8, 9, 13]
    assert bench.ends == [START_TO_END - 1 + done for done in (6, 7, 8, 9, 13, 22)]
    assert bench.writes == [START_TO_END - 1 + done for done in range(1, 23)
                            if done not in (7, 10, 11, 12)]


def test_operands_in_one_bank_take_two_cycles_a_vector():
    both = Alu(loops=(1, 1, 20), rhs=50, rhs_stride=(0, 0, 1), **ALONG)
    assert run(both, alone=True).cycles == [START_TO_END + 2 * 20 - 1]


@pytest.mark.parametrize("gap", [1, 2, DEPENDENT - 1, DEPENDENT])
def test_a_step_waits_until_what_it_reads_has_been_written(gap):
    steps = 4
    left = Alu(dst=0, lhs=0, rhs=200, loops=(1, steps, gap), **ALONG)
    right = Alu(dst=0, lhs=200, rhs=0, loops=(1, steps, gap), dst_stride=(0, 0, 1),
                rhs_stride=(0, 0, 1))
    immediate = AluI(dst=5, src=5, loops=(1, steps, gap), src_stride=(0, 0, 1), **ALONG)
    wanted = START_TO_END + (steps - 1) * max(DEPENDENT, gap) + gap - 1
    assert run(left, right, immediate, alone=True).cycles == [wanted] * 3


def test_parameters_wait_until_they_have_been_written():
    steps = 4
    multiplier = Requantize(dst=301, params=300, flags=RequantizeFlags.ACC, loops=(steps, 1, 1))
    # The multiplier waits; the shift and the next step follow.
    wanted = START_TO_END + 3 + (steps - 1) * (DEPENDENT + 2)
    assert run(multiplier, alone=True).cycles == [wanted]


def test_tiles_that_differ_in_one_bit_are_not_waited_for():
    instructions = []
    for bit in range(4, 9):
        behind = (1 << bit) - 1         # but for this bit, the tile that the last step writes
        along = {"loops": (1, 1, 12), "dst_stride": (0, 0, 1)}
        instructions += [AluI(src=behind, src_stride=(0, 0, 1), **along),
                         Alu(op=AluOp.MOVE, rhs=behind, rhs_stride=(0, 0, 1), **along)]
    assert run(*instructions, alone=True).cycles == [START_TO_END + 12 - 1] * len(instructions)


def test_a_write_to_out_is_not_waited_for():
    same_number = AluI(dst=0, src=0, loops=(1, 1, 30), target=Buffer.OUT)
    assert run(same_number, alone=True).cycles == [START_TO_END + 30 - 1]


def test_dependences_reach_from_one_instruction_to_the_next():
    bench = run(AluI(dst=7, src=7), AluI(dst=8, src=7), alone=False)
    assert bench.ends == [START_TO_END, START_TO_END + DEPENDENT]
