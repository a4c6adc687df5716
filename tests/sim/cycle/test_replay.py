"""Replay: the memory that compiled effects leave is the functional simulator's."""

import numpy as np
import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    Load,
    MicroOp,
    Requantize,
    Store,
)
from microtron.isa.stream import encode_micro_ops
from microtron.sim.cycle.replay import Replay
from microtron.sim.functional.memory import Memory
from microtron.sim.functional.simulator import Functional
from microtron.sim.timeline import Timeline
from microtron.testing.random_programs import random_program

from ..functional.support import CONFIGS, SMALL, program

SHAPES = {
    **CONFIGS,
    "sixteen": Config(**SMALL),
    "batch_int4_depthwise": Config(batch=2, block_in=8, block_out=8, wgt_bits=4, **SMALL),
    "wide": Config(block_in=32, block_out=16, **{**SMALL, "inp_bytes": 2 << 10,
                                                 "wgt_bytes": 16 << 10}),
    "one_by_two": Config(block_in=1, block_out=2, **SMALL),
}

# Each shape has kernels of its own, which take seconds to compile; these mix what the others have.
LATER = ("batch_int4_depthwise", "int4")


def in_order(code):
    """The timeline of a program that was executed as written."""
    when = np.where(code["opcode"] == 7, -1, np.arange(len(code)))
    return Timeline(start=when, end=when)


def replayed(image, *, times=1):
    memory = Memory(image)
    replay = Replay(image, memory)
    for _ in range(times):
        replay.run(in_order(image.code))
    return memory


class ReadThenWrite:
    """Program order in two steps each, for which the functional simulator has other ways."""

    def drive(self, flow, machine):
        for position, instruction in enumerate(flow.instructions):
            if instruction.engine is not None:
                machine.begin(position)()


def assert_same_memory(image, *, times=1):
    machine, memory = Functional(image), replayed(image, times=times)
    for _ in range(times):
        machine.run(ReadThenWrite())
    for ours, theirs in zip(memory.segments, machine.memory.segments, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.soak] if name in LATER else []) for name in SHAPES])
@pytest.mark.parametrize("seed", range(24))
def test_a_random_program_leaves_the_memory_of_the_functional_simulator(name, seed):
    assert_same_memory(random_program(SHAPES[name], seed, length=40))


@pytest.mark.parametrize("name", ["tiny", "sixteen"])
def test_scratchpads_are_zero_when_a_run_begins(name):
    assert_same_memory(random_program(SHAPES[name], 7, length=40), times=3)


def test_only_what_ended_has_effects_in_the_order_of_its_start():
    store = [Store(buffer=Buffer.ACC, sram=tile, segment=0) for tile in range(2)]
    fill = [AluI(op=AluOp.MOVE, dst=tile, immediate=5 + tile) for tile in range(2)]
    image = program(tiny, *fill, *store, data=16)
    for start, end, left in (([0, 1, 2, 3, -1], [9, 9, 9, 9, -1], 6),
                             ([0, 1, 3, 2, -1], [9, 9, 9, 9, -1], 5),
                             ([0, 1, 2, 3, -1], [9, 9, 9, -1, -1], 5),
                             ([3, 1, 2, 4, -1], [9, 9, 9, -1, -1], 0)):
        memory = Memory(image)
        Replay(image, memory).run(Timeline(start=np.array(start), end=np.array(end)))
        assert (memory.read("data", 0, 16).view("<i4") == left).all()


UOPS = encode_micro_ops([MicroOp(), MicroOp(src=512)])


@pytest.mark.parametrize(("code", "words"), [
    ((Load(buffer=Buffer.UOP), Gemm(), Gemm(uop=65535)),
     r"^instruction 2 \(gemm\): uop reaches micro-op 65535"),
    ((Load(buffer=Buffer.UOP, offset=8), Gemm()),
     r"^instruction 1 \(gemm\): src reaches tile 512"),
    ((Load(buffer=Buffer.INP, sram=65535),), r"^instruction 0 \(load.inp\): sram reaches tile"),
    ((Load(buffer=Buffer.INP, offset=16),), r"^instruction 0 \(load.inp\): offset reaches byte"),
    ((Load(buffer=Buffer.INP, shape=(1, 2, 1), stride=(0, -4)),),
     r"^instruction 0 \(load.inp\): offset reaches byte -4"),
    ((Load(buffer=Buffer.INP, segment=2),), r"^instruction 0 \(load.inp\): segment is 2"),
    ((Store(segment=0),), r"^instruction 0 \(store.out\): segment is 0 .*for reading only"),
    ((Store(segment=1, sram=65535),), r"^instruction 0 \(store.out\): sram reaches tile 65535"),
    ((Store(segment=1, offset=64),), r"^instruction 0 \(store.out\): offset reaches byte 67"),
    ((Alu(lhs=65535),), r"^instruction 0 \(alu.add\): lhs reaches tile 65535"),
    ((Alu(op=AluOp.MOVE, rhs=65535),), r"^instruction 0 \(alu.move\): rhs reaches tile 65535"),
    ((AluI(dst=65535),), r"^instruction 0 \(alui.add\): dst reaches tile 65535"),
    ((Requantize(params=511),), r"^instruction 0 \(requantize\): params reaches tile 513"),
    ((Requantize(src=0, loops=(1, 1, 2), src_stride=(0, 0, -1)),),
     r"^instruction 0 \(requantize\): src reaches tile -1"),
])
def test_what_reaches_outside_is_refused_in_the_words_of_the_bounds(code, words):
    with pytest.raises(ExecutionError, match=words):
        replayed(program(tiny, *code, uops=UOPS, data=64))


def test_what_came_before_a_refused_instruction_has_had_its_effect():
    image = program(tiny, AluI(op=AluOp.MOVE, immediate=3), Store(buffer=Buffer.ACC),
                    Alu(lhs=65535), data=16)
    memory = Memory(image)
    with pytest.raises(ExecutionError, match="instruction 2"):
        Replay(image, memory).run(in_order(image.code))
    assert (memory.read("data", 0, 16).view("<i4") == 3).all()


def test_micro_ops_that_the_host_has_changed_are_judged_again():
    image = program(tiny, Load(buffer=Buffer.UOP), Gemm(), uops=64)
    memory = Memory(image)
    replay = Replay(image, memory)
    replay.run(in_order(image.code))
    memory.write("uops", 0, MicroOp(dst=512).encode())
    with pytest.raises(ExecutionError, match=r"^instruction 1 \(gemm\): dst reaches tile 512"):
        replay.run(in_order(image.code))
