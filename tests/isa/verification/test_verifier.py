"""The verifier on hand-written streams: each hazard alone, and the order that removes it."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import VerificationError
from microtron.isa.config import tiny
from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Engines,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode, encode_micro_ops
from microtron.isa.verification.verifier import inspect, verify

L, G, A, S = Engines.LOAD, Engines.GEMM, Engines.ALU, Engines.STORE
MICRO_OPS = (MicroOp(dst=0, src=0, wgt=0), MicroOp(dst=8, src=4, wgt=2, bias=20))


def program(*instructions, config=tiny):
    data = np.frombuffer(encode_micro_ops(MICRO_OPS).tobytes(), np.uint8)
    segments = (Segment("constants", 4096, Access.READ, data),
                Segment("memory", 4096, Access.WRITE))
    return Program(config, encode([*instructions, Sync()]), segments)


def finding(*instructions, **more):
    findings = inspect(program(*instructions, **more)).findings
    assert len(findings) == 1, findings
    return findings[0]


UOPS = Load(buffer=Buffer.UOP, shape=(1, 1, 2), post=G)


def test_an_ordered_pair_is_vouched_for():
    verdict = verify(program(UOPS, Load(post=G), Gemm(wait=L, loops=(0, 1, 1)), Gemm(wait=L)))
    assert (verdict.instructions, verdict.tokens) == (5, 2)
    assert verdict.most_tokens == {"load → gemm": 2}


def test_read_after_write_names_both_instructions_the_range_and_the_missing_order():
    text = finding(UOPS, Load(sram=0, shape=(1, 1, 8)),
                   Gemm(wait=L, loops=(1, 1, 3), src_stride=(0, 0, 2)))
    assert text == (
        "instruction 2 (gemm) reads inp[0..4], which instruction 1 (load.inp) writes, and no "
        "tokens put 1 before 2: post=gemm at 1 or a later load, wait=load at 2 or an earlier gemm")


def test_write_after_read_is_a_race():
    assert "writes inp[0..0], which instruction 1 (gemm) reads" in finding(
        UOPS, Gemm(wait=L), Load())


def test_write_after_write_is_a_race():
    assert "writes acc[0..0], which instruction 1 (gemm) writes" in finding(
        UOPS, Gemm(wait=L), AluI(op=AluOp.MOVE, dst=0))


def test_reading_together_is_no_race():
    verify(program(AluI(op=AluOp.MOVE, dst=0), Sync(action=SyncAction.BARRIER),
                   Store(buffer=Buffer.ACC, segment=1), Alu(dst=1, lhs=0, rhs=0)))


def test_interleaved_strides_that_never_meet_are_no_race():
    verify(program(
        AluI(op=AluOp.MOVE, dst=0, loops=(1, 1, 8), dst_stride=(0, 0, 2), target=Buffer.OUT),
        Store(sram=1, segment=1, shape=(1, 8, 1), sram_pitch=(0, 2))))


def test_dram_written_by_a_store_and_read_by_a_load_is_ordered_by_a_token():
    store = Store(segment=1, offset=64, shape=(1, 1, 4))
    load = Load(segment=1, offset=76, shape=(1, 1, 4))
    text = finding(store, load)
    assert "reads memory[0x4c..0x4f], which instruction 0 (store.out) writes" in text
    verify(program(replace(store, post=L), replace(load, wait=S)))


def test_loads_of_other_columns_do_not_race_with_a_store():
    verify(program(Store(segment=1, shape=(1, 4, 2), stride=(0, 16)),
                   Load(segment=1, offset=8, shape=(1, 4, 2), stride=(0, 16))))


def test_order_carries_over_a_third_engine():
    through = (UOPS, Load(post=G), Gemm(wait=L, loops=(0, 1, 1)), Gemm(wait=L, post=A),
               Requantize(wait=G, src=64, params=72, post=L), Load(wait=A))
    verify(program(*through))
    broken = list(through)
    broken[4] = replace(broken[4], wait=Engines(0))
    assert inspect(program(*broken)).findings


def test_the_kth_wait_pairs_with_the_kth_post():
    """Two posts, two waits: the first wait must not count as ordered after the second load."""
    text = finding(UOPS, Load(sram=4, post=G), Gemm(wait=L, uop=1), Gemm(wait=L))
    assert text.startswith("instruction 2 (gemm) reads inp[4..4], which instruction 1 (load.inp)")


def test_micro_ops_are_followed_to_what_they_touch():
    text = finding(UOPS, Load(buffer=Buffer.ACC, sram=20), Gemm(
        wait=L, uop=1, flags=GemmFlags.START | GemmFlags.BIAS))
    assert "reads acc[20..20]" in text


def test_micro_ops_behind_the_content_of_their_segment_are_zero():
    memory = np.full(64, 255, np.uint8)             # beyond the content, none of it must count
    memory[:9] = 0
    segments = (Segment("constants", 4096, Access.READ, memory[:9]),)
    verify(Program(tiny, encode([UOPS, Gemm(wait=L, count=2), Sync()]), segments))


def test_depthwise_weights_are_addressed_by_row():
    text = finding(UOPS, Load(buffer=Buffer.WGT, sram=0), Gemm(
        wait=L, uop=1, flags=GemmFlags.DEPTHWISE, loops=(1, 1, 2), wgt_stride=(0, 0, 4)))
    assert "reads wgt[0..0]" in text


@pytest.mark.parametrize(("uop", "loops", "stride", "tiles"), [
    (0, (1, 1, 2), (0, 0, 400), {0, 100}),          # rows 0 and 400
    (0, (1, 1, 2), (0, 0, 399), {0, 99}),           # the last row of a tile
    (1, (1, 1, 2), (0, 0, 402), {0, 101}),          # rows 2 and 404
    (1, (1, 1, 2), (0, 0, -2), {0}),                # rows 2 and 0
    (1, (1, 2, 2), (0, 200, 3), {0, 1, 50, 51}),    # rows 2, 5, 202 and 205
    (0, (2, 1, 30), (5, 0, 13), None),              # many, so that a mask is quicker
])
def test_rows_of_depthwise_weights_that_are_far_apart_touch_their_own_tiles_alone(
        uop, loops, stride, tiles):
    rows = {MICRO_OPS[uop].wgt + sum(step * count for step, count in zip(stride, at, strict=True))
            for at in np.ndindex(loops)}
    touched = {row // tiny.block_out for row in rows}
    assert tiles is None or touched == tiles
    gemm = Gemm(wait=L, uop=uop, flags=GemmFlags.DEPTHWISE, loops=loops, wgt_stride=stride)
    near = {max(0, tile + step) for tile in touched for step in (-1, 0, 1)}
    racing = {tile for tile in near
              if inspect(program(UOPS, Load(buffer=Buffer.WGT, sram=tile), gemm)).findings}
    assert racing == touched


def test_a_barrier_orders_everything():
    verify(program(UOPS, Load(), Sync(action=SyncAction.BARRIER), Gemm(wait=L)))


def test_a_wait_that_nothing_posts_is_a_deadlock():
    assert finding(Load(wait=G)) == (
        "instruction 0 (load.inp) waits for a token from gemm, but no earlier gemm instruction "
        "posts one that is still there: it can wait forever")


def test_a_post_that_comes_later_in_the_stream_is_a_deadlock():
    assert "can wait forever" in finding(Load(wait=S), Store(segment=1, post=L, shape=(0, 1, 1)))


def test_a_counter_that_can_overflow_is_refused():
    config = replace(tiny, token_bits=2)
    loads = [Load(sram=number, post=G) for number in range(4)]
    waits = [Gemm(wait=L, loops=(0, 1, 1)) for _ in range(4)]
    assert finding(*loads, *waits, config=config) == (
        "the token counter load → gemm can reach 4, but holds 3: let the receiver take tokens "
        "earlier")
    verify(program(*loads[:3], *waits[:3], config=config))


def test_tokens_surely_taken_do_not_count_towards_overflow():
    config = replace(tiny, token_bits=2)
    pair = (Load(post=G), Gemm(wait=L, post=L, loops=(0, 1, 1)))
    handshake = [pair[0], pair[1]] + [replace(pair[0], wait=G), pair[1]] * 20
    assert verify(program(*handshake, config=config)).most_tokens == {
        "load → gemm": 1, "gemm → load": 1}


@pytest.mark.parametrize(("instruction", "message"), [
    (Load(sram=510, shape=(1, 1, 3)), "instruction 0 (load.inp): sram reaches tile 512"),
    (Load(offset=4096), "instruction 0 (load.inp): offset reaches byte 4099"),
    (Load(offset=2), "instruction 0 (load.inp): offset is 2, but must be a multiple of 4"),
    (Store(segment=0), "segment is 0 (constants), which is for reading only"),
    (Alu(rhs=511, loops=(1, 1, 2), rhs_stride=(0, 0, 1)), "rhs reaches tile 512"),
    (Load(buffer=Buffer.UOP, segment=1), "micro-ops come from segment memory"),
])
def test_indices_and_addresses_outside_are_named(instruction, message):
    assert message in finding(instruction)


def test_a_gemm_is_judged_by_its_micro_ops():
    text = finding(UOPS, Gemm(wait=L, uop=1, loops=(1, 1, 2), src_stride=(0, 0, -5)))
    assert text == "instruction 1 (gemm): src reaches tile -1, but inp has 512 (0 to 511)"


def test_verify_raises_the_first_finding():
    with pytest.raises(VerificationError, match="can wait forever"):
        verify(program(Load(wait=G)))


def test_a_program_must_end_with_an_end():
    stream = encode([Load()])
    assert "must be sync.end" in inspect(Program(tiny, stream)).findings[0]
