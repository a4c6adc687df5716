"""Tokens derived from data: enough, and none too many."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import IsaError, VerificationError
from microtron.isa.config import base, tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import (
    AluI,
    Buffer,
    Engines,
    Gemm,
    Load,
    MicroOp,
    Store,
    Sync,
    Window,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import decode, encode, encode_micro_ops
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.isa.verification.verifier import inspect, verify
from microtron.sim.cycle.run import run_cycles
from microtron.testing.random_programs import random_program

CONFIGS = (tiny, base, replace(tiny, batch=2, block_in=8), replace(tiny, wgt_bits=4, block_out=8))
MEMORY = (Segment("memory", 4096, Access.WRITE),)


def tokens_of(*instructions):
    program = with_tokens(Program(tiny, encode([*instructions, Sync()]), MEMORY))
    return [(each.wait, each.post) for each in decode(program.code)[:-1]]


def test_double_buffering_pairs_each_load_with_its_gemm():
    nothing = Engines(0)
    assert tokens_of(Load(sram=0), Load(sram=16), Gemm(), Gemm(src_stride=(16, 0, 0))) == [
        (nothing, Engines.GEMM), (nothing, nothing), (Engines.LOAD, nothing), (nothing, nothing)]


def test_one_token_covers_earlier_instructions_of_the_same_engine():
    waits = tokens_of(Load(sram=0), Load(sram=1), Gemm(loops=(1, 1, 2), src_stride=(0, 0, 1)))
    assert waits == [(0, 0), (0, Engines.GEMM), (Engines.LOAD, 0)]


@pytest.mark.parametrize(("tile", "waits"), [(2, 0), (3, Engines.GEMM), (5, Engines.GEMM), (6, 0)])
def test_what_reads_a_sum_waits_for_the_window_that_makes_it(tile, waits):
    window = Window(loops=(1, 1, 5), dst_stride=(0, 0, 1), src_stride=(0, 0, 1))
    place = Load(buffer=Buffer.UOP, segment=1)          # whose sums begin at tile 3
    reads = AluI(src=tile, dst=tile, target=Buffer.OUT)
    segments = (*MEMORY, Segment("micro_ops", 8, Access.READ,
                                 encode_micro_ops([MicroOp(dst=3)]).view(np.uint8)))
    program = with_tokens(Program(base, encode([place, window, reads, Sync()]), segments))
    assert decode(program.code)[2].wait == waits


def test_a_store_and_a_later_load_of_the_same_bytes_are_ordered():
    assert tokens_of(Store(), Load(), Load()) == [(0, Engines.LOAD), (Engines.STORE, 0), (0, 0)]


def test_instructions_out_of_bounds_are_refused():
    with pytest.raises(VerificationError, match="sram reaches tile 512"):
        tokens_of(Load(sram=512))


def test_a_word_that_is_no_instruction_gets_no_tokens():
    code = encode([Load(), Sync()])
    for byte, wrong in (("opcode", 99), ("post", 255)):
        broken = code.copy()
        broken[byte][0] = wrong
        with pytest.raises(IsaError, match=r"^instruction 0: "):
            with_tokens(Program(tiny, broken, MEMORY))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_are_vouched_for_and_no_token_is_too_many(config, seed):
    program = random_program(config, seed)
    verify(program)
    for position in np.flatnonzero(program.code["wait"]).tolist():
        code = program.code.copy()
        code["wait"][position] &= code["wait"][position] - 1      # without one of its tokens
        assert inspect(replace(program, code=code)).findings, position


@pytest.mark.parametrize("config", CONFIGS)
def test_the_same_seed_gives_the_same_program(config):
    one, two = random_program(config, 3), random_program(config, 3)
    assert one.code.tobytes() == two.code.tobytes()
    assert one.code.tobytes() != random_program(config, 4).code.tobytes()


# More than a counter holds: the ALU computes what STORE takes, and nothing holds it back.
MANY = 500
COMPUTED = [AluI(dst=tile) for tile in range(MANY)]
TAKEN = [Store(buffer=Buffer.ACC, sram=tile, offset=64 * tile) for tile in range(MANY)]
STREAMS = {
    "one after the other": [*COMPUTED, *TAKEN],
    "by turns": [each for pair in zip(COMPUTED, TAKEN, strict=True) for each in pair],
    "one ahead of the other": [*COMPUTED[:300], *(
        each for pair in zip(COMPUTED[300:], TAKEN, strict=False) for each in pair)],
    "twice": [*COMPUTED, *TAKEN, *COMPUTED, *TAKEN],
}


# How many tokens are left in a stream whose counters have 2 bits, and 8 bits.
LEFT = {"one after the other": (2, 244), "by turns": (666, 502),
        "one ahead of the other": (2, 200), "twice": (7, 604)}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("bits", [2, 8])
def test_no_counter_gets_more_tokens_than_it_holds(name, bits):
    config = replace(tiny, token_bits=bits)
    memory = (Segment("memory", 64 * MANY, Access.WRITE),)
    program = with_tokens(Program(config, encode([*STREAMS[name], Sync()]), memory))
    verdict = verify(program)
    assert max(verdict.most_tokens.values()) <= config.token_limit
    assert verdict.tokens <= LEFT[name][bits == 8]        # few are added, and many are saved
    assert run_cycles(program).fault == Fault.NONE
