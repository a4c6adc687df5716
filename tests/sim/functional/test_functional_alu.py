"""ALU: lane operations on tiles and constants against the reference, and corners by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.config import tiny
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer
from microtron.sim.compiled.interruptible import NEVER
from microtron.sim.functional import alu_kernels, datapath
from microtron.sim.functional.machine_table import WIDTH, place
from microtron.sim.functional.scratchpads import Scratchpads
from microtron.sim.functional.simulator import Functional

from .support import CORNERS, configs, program, same_as_reference, seeds

triples = st.tuples(*[st.integers(-2, 2)] * 3)
loops = st.tuples(*[st.integers(0, 3)] * 3)
indices = st.integers(14, 18)
ops = st.sampled_from(AluOp)
targets = st.sampled_from((Buffer.ACC, Buffer.OUT))


@given(config=configs, seed=seeds, op=ops, loops=loops, dst=indices, lhs=indices, rhs=indices,
       dst_stride=triples, rhs_stride=triples, target=targets)
def test_alu_equals_the_reference(config, seed, **fields):
    same_as_reference(config, Alu(**fields), seed)


@given(config=configs, seed=seeds, op=ops, loops=loops, dst=indices, src=indices,
       dst_stride=triples, src_stride=triples, target=targets,
       immediate=st.sampled_from(CORNERS) | st.integers(-2**31, 2**31 - 1))
def test_alui_equals_the_reference(config, seed, **fields):
    same_as_reference(config, AluI(**fields), seed)


def machine_after(instruction, **tiles):
    """acc[n] holds the number given as `tile_n` in all lanes."""
    machine = Functional(program(tiny, instruction))
    for name, value in tiles.items():
        machine.scratchpads.acc[int(name.removeprefix("tile_"))] = value
    machine.execute(0)
    return machine.scratchpads


@pytest.mark.parametrize(("op", "left", "right", "result"), [
    (AluOp.ADD, 2**31 - 1, 1, -2**31),
    (AluOp.SUB, -2**31, 1, 2**31 - 1),
    (AluOp.MUL, 2**16 + 1, 2**16, 2**16),
    (AluOp.MUL, -2**31, -1, -2**31),
    (AluOp.MIN, -1, 1, -1),
    (AluOp.MAX, -1, 1, 1),
    (AluOp.SHR, 5, 1, 3),
    (AluOp.SHR, -5, 1, -2),
    (AluOp.SHR, -5, 0, -5),
    (AluOp.SHR, -2**31, 31, -1),
    (AluOp.SHR, 7, 33, 4),              # the low five bits of the amount count
    (AluOp.SHR, 7, -31, 4),
    (AluOp.SHL, 3, 31, -2**31),
    (AluOp.SHL, 3, 32, 3),
    (AluOp.MOVE, 5, -7, -7),
])
def test_each_operation(op, left, right, result):
    assert (machine_after(Alu(op=op, dst=2, rhs=1), tile_0=left, tile_1=right).acc[2]
            == result).all()
    assert (machine_after(AluI(op=op, dst=2, immediate=right), tile_0=left).acc[2] == result).all()


@pytest.mark.parametrize(("value", "result"), [
    (127, 127), (128, 127), (2**31 - 1, 127), (-128, -128), (-129, -128), (-2**31, -128)])
def test_results_for_out_saturate(value, result):
    alu = Alu(op=AluOp.MOVE, dst=5, rhs=1, target=Buffer.OUT)
    alui = AluI(op=AluOp.ADD, dst=5, src=1, target=Buffer.OUT)
    for instruction in (alu, alui):
        pads = machine_after(instruction, tile_1=value)
        assert (pads.out[5] == result).all()
        assert (pads.acc[5] == 0).all()


def test_results_for_out_wrap_at_32_bits_before_they_saturate():
    pads = machine_after(AluI(immediate=1, target=Buffer.OUT), tile_0=2**31 - 1)
    assert (pads.out[0] == -128).all()


def test_the_left_operand_walks_with_the_destination():
    alu = Alu(dst=8, lhs=0, rhs=4, loops=(1, 1, 2), dst_stride=(0, 0, 1))
    acc = machine_after(alu, tile_0=1, tile_1=2, tile_4=10).acc
    assert acc[8:10, 0, 0].tolist() == [11, 12]


def test_a_later_iteration_reads_what_an_earlier_one_wrote():
    # A running sum: acc[n + 1] = acc[n] + acc[n + 1].
    alu = Alu(dst=1, lhs=0, rhs=1, loops=(1, 1, 4), dst_stride=(0, 0, 1), rhs_stride=(0, 0, 1))
    acc = machine_after(alu, tile_0=1, tile_1=2, tile_2=3, tile_3=4, tile_4=5).acc
    assert acc[:5, 0, 0].tolist() == [1, 3, 6, 10, 15]


def test_iterations_follow_outer_middle_inner():
    # Each copies what the one before it has written: any other order breaks the chain.
    alu = Alu(op=AluOp.MOVE, dst=1, rhs=0, loops=(2, 2, 2), dst_stride=(4, 2, 1),
              rhs_stride=(4, 2, 1))
    assert (machine_after(alu, tile_0=6).acc[:9] == 6).all()


def test_negative_strides_walk_backwards():
    alui = AluI(op=AluOp.MOVE, dst=9, loops=(1, 1, 3), dst_stride=(0, 0, -3), immediate=1)
    acc = machine_after(alui).acc
    assert np.flatnonzero(acc[:, 0, 0]).tolist() == [3, 6, 9]


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_loop_without_iterations_does_nothing_wherever_it_points(shape):
    for instruction in (Alu(dst=65535, lhs=65535, rhs=65535, loops=shape),
                        AluI(dst=65535, src=65535, loops=shape)):
        assert (machine_after(instruction, tile_0=3).acc[0] == 3).all()


def test_a_move_has_no_left_operand_to_be_out_of_range():
    assert (machine_after(AluI(op=AluOp.MOVE, src=65535, immediate=4)).acc[0] == 4).all()
    assert (machine_after(Alu(op=AluOp.MOVE, lhs=65535, rhs=1), tile_1=4).acc[0] == 4).all()


@pytest.mark.parametrize("kind", [Alu, AluI])
def test_an_operation_without_a_kernel_is_left_to_the_definition(kind):
    """One that is added must not be taken for another that is there."""
    kernel = {Alu: alu_kernels.alu, AluI: alu_kernels.alui}[kind]()
    pads = Scratchpads(tiny)
    pads.acc[:] = 3
    for op in range(63):
        row = np.zeros(WIDTH, np.int64)
        row[place(kind, "op")], row[place(kind, "target")] = op, int(Buffer.ACC)
        row[place(kind, "loops"):][:3] = 1
        done = datapath._ran_compiled(kernel, tuple(row.tolist()), tuple(map(pads.of, Buffer)),
                                      NEVER.address)
        assert done == (op in {*AluOp})
        if not done:
            assert (pads.acc == 3).all()
        pads.acc[:] = 3
