"""The verifier over the space of loops, strides, shapes and tokens, against plain enumeration."""

import random
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import VerificationError
from microtron.isa.config import Config
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
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import decode, encode, encode_micro_ops
from microtron.isa.verification.bounds import index_range
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.isa.verification.order import dram_layout
from microtron.isa.verification.verifier import inspect

from .order_reference import has_bad_address, races_of

# Tiles of 8, 4, 4, 8 and 2 bytes, few enough to enumerate and enough for sparse walks.
CONFIG = Config(block_in=4, block_out=2, wgt_bits=4, uop_bytes=128, inp_bytes=256, wgt_bytes=128,
                acc_bytes=512, out_bytes=128, acc_banks=1)
PROGRAMS = 160
SIZES = {"work": 160, "more": 64}       # segments that can be stored to, from 1 on

LOOPS = (0, 1, 1, 2, 2, 2, 3, 3, 4, 4)
STRIDES = (0, 1, 1, 2, 3, 5, 8, 17, -1, -2, -7)
# Micro-ops hold bases up to 15: strides that stay inside from there, most of the time.
UOP_STRIDES = ((0, 0, 0), (0, 1, 0), (5, 0, 1), (8, 1, 0), (0, 0, 11))
START = GemmFlags.START | GemmFlags.BIAS
GEMM_FLAGS = (GemmFlags(0), GemmFlags.DEPTHWISE, START, START | GemmFlags.FIRST_UOP)


def some(rng, values, count=3):
    return tuple(rng.choices(values, k=count))


def walk(rng, tiles, loops):
    """A base and strides, most of the time such that a nest of loops stays inside."""
    strides = some(rng, STRIDES)
    for axis in range(3):
        low, high = index_range(0, loops, strides) or (0, 0)
        if high - low < tiles:
            break
        strides = (*(0,) * (axis + 1), *strides[axis + 1:])
    low, high = index_range(0, loops, strides) or (0, 0)
    outside = tiles if rng.random() < 0.02 else 0
    return outside + rng.randint(-low, tiles - 1 - high), strides


def gemm(rng):
    return Gemm(flags=rng.choice(GEMM_FLAGS), uop=rng.randint(0, 13), count=rng.randint(0, 3),
                loops=some(rng, LOOPS), dst_stride=rng.choice(UOP_STRIDES),
                src_stride=rng.choice(UOP_STRIDES), wgt_stride=rng.choice(UOP_STRIDES))


def alu(rng):
    loops = some(rng, LOOPS)
    dst, dst_stride = walk(rng, 64, loops)
    rhs, rhs_stride = walk(rng, 64, loops)
    lhs = dst if rng.random() < 0.9 else rng.randint(0, 9)
    return Alu(op=rng.choice(list(AluOp)), target=rng.choice((Buffer.ACC, Buffer.OUT)), dst=dst,
               lhs=lhs, rhs=rhs, loops=loops, dst_stride=dst_stride, rhs_stride=rhs_stride)


def alui(rng):
    loops = some(rng, LOOPS)
    dst, dst_stride = walk(rng, 64, loops)
    src, src_stride = walk(rng, 64, loops)
    return AluI(op=rng.choice(list(AluOp)), target=rng.choice((Buffer.ACC, Buffer.OUT)), dst=dst,
                src=src, loops=loops, dst_stride=dst_stride, src_stride=src_stride)


def requantize(rng):
    loops = some(rng, LOOPS)
    dst, dst_stride = walk(rng, 64, loops)
    src, src_stride = walk(rng, 64, loops)
    return Requantize(flags=rng.choice((RequantizeFlags(0), RequantizeFlags.ACC)), dst=dst,
                      src=src, params=rng.randint(0, 50), loops=loops, dst_stride=dst_stride,
                      src_stride=src_stride, params_stride=rng.randint(0, 4))


def box(rng, buffer):
    """A segment, and shape, offset and strides in it, in whole tiles."""
    name, tile, shape = rng.choice(list(SIZES)), CONFIG.tile_bytes(buffer), some(rng, LOOPS)
    room = SIZES[name] // tile - max(shape[2] - 1, 0)
    base, (plane, row, _) = walk(rng, room, (*shape[:2], 1))
    return {"segment": 1 + list(SIZES).index(name), "shape": shape, "offset": base * tile,
            "stride": (plane * tile, row * tile)}


def load(rng):
    buffer = rng.choice((Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8))
    return Load(buffer=buffer, sram=rng.randint(0, 10), sram_pitch=rng.randint(0, 5),
                pad=some(rng, (0, 0, 1), 4), **box(rng, buffer))


def store(rng):
    buffer = rng.choice((Buffer.OUT, Buffer.ACC))
    return Store(buffer=buffer, sram=rng.randint(0, 20), sram_pitch=some(rng, (0, 1, 3, 9), 2),
                 **box(rng, buffer))


def uop_load(rng):
    """Some of the micro-ops, from planes that may overlap."""
    return Load(buffer=Buffer.UOP, offset=8 * rng.randint(2, 4), sram=rng.randint(0, 4),
                stride=(8 * rng.randint(-1, 3), 8 * rng.randint(0, 3)),
                sram_pitch=rng.randint(0, 5),
                shape=(rng.randint(0, 3), rng.randint(0, 2), rng.randint(0, 2)))


KINDS = (gemm, gemm, alu, alui, requantize, load, load, load, store, store, store, uop_load)
BARRIER = Sync(action=SyncAction.BARRIER)


def random_code(rng):
    """A few random instructions."""
    code = [rng.choice(KINDS)(rng) for _ in range(rng.randint(3, 9))]
    if rng.random() < 0.1:
        code.insert(rng.randint(0, len(code)), BARRIER)
    return code


def random_uops(rng):
    return [MicroOp(dst=rng.randint(0, 15), src=rng.randint(0, 15), wgt=rng.randint(0, 15),
                    bias=rng.randint(0, 63)) for _ in range(16)]


def program_of(code, uops):
    data = np.frombuffer(encode_micro_ops(uops).tobytes(), np.uint8)
    segments = (Segment("constants", 4096, Access.READ, data),
                *(Segment(name, size, Access.WRITE) for name, size in SIZES.items()))
    all_uops = Load(buffer=Buffer.UOP, shape=(1, 1, 16))
    return Program(CONFIG, encode([all_uops, BARRIER, *code, Sync()]), segments)


def with_some_tokens(rng, code):
    """The code with a few posts and waits, each between instructions that can have one."""
    code = list(code)
    for _ in range(rng.randint(0, 6)):
        earlier, later = sorted(rng.choices(range(len(code)), k=2))
        engines = code[earlier].engine, code[later].engine
        if None not in engines and engines[0] != engines[1]:
            code[earlier] = replace(code[earlier], post=code[earlier].post | 1 << engines[1])
            code[later] = replace(code[later], wait=code[later].wait | 1 << engines[0])
    return code


RACE = re.compile(r"instruction (\d+) \([\w.]+\) (reads|writes) (\w+)\[(\w+)\.\.(\w+)\], which "
                  r"instruction (\d+) \([\w.]+\) (reads|writes), and no tokens put")


def check_findings(program):
    """What the verifier says about a program is what enumeration finds, and the place is right."""
    instructions = decode(program.code)
    if has_bad_address(instructions, CONFIG, program.segments):
        assert [" reaches " in each for each in inspect(program).findings] == [True]
        return "address"
    races, looked_at = races_of(instructions, CONFIG, program.segments)
    findings = inspect(program).findings
    found = [match for match in map(RACE.match, findings) if match]
    assert bool(found) == bool(races), (findings, races)
    for match in found:
        later, does, space, first, last, earlier, did = match.groups()
        cells = races[int(earlier), int(later)]
        shared = sorted(cell for name, cell in cells
                        if space == (name if isinstance(name, str) else name.name.lower()))
        first, last = int(first, 0), int(last, 0)
        if space in SIZES:
            assert set(range(first, last + 1)) <= set(shared)
        else:
            assert (first, last) == (shared[0], shared[-1])
        assert "writes" in (does, did)
    others = [finding for finding in findings if not RACE.match(finding)]
    assert len(others) == (looked_at < len(instructions))
    for finding in others:
        assert finding.startswith(f"instruction {looked_at} ")
    return "race" if races else "outside or starved" if others else "safe"


# Short boxes cell by cell; in stretches of cells; no box but single rows is short.
SETTINGS = {"cells": {}, "stretches": {"CELLS_LIMIT": 0}, "long boxes": {"ROWS_LIMITS": (1,)},
            "long boxes in stretches": {"CELLS_LIMIT": 0, "ROWS_LIMITS": (2,)}}


@pytest.fixture(params=SETTINGS)
def rng(request, monkeypatch):
    for name, value in SETTINGS[request.param].items():
        monkeypatch.setattr(dram_layout, name, value)
    return random.Random(request.param)


def test_races_are_those_that_enumeration_finds(rng):
    outcomes = Counter(check_findings(program_of(with_some_tokens(rng, random_code(rng)),
                                                 random_uops(rng))) for _ in range(PROGRAMS))
    assert min(outcomes[each] for each in ("race", "safe", "outside or starved")) > PROGRAMS // 20


def test_derived_tokens_leave_no_race_and_none_is_too_many(rng):
    outcomes = Counter()
    for _ in range(PROGRAMS // 2):
        program = program_of(random_code(rng), random_uops(rng))
        try:
            program = with_tokens(program)
        except VerificationError as error:
            outcomes[" reaches " in str(error)] += 1
            continue
        assert check_findings(program) == "safe"
        for position in np.flatnonzero(program.code["wait"]).tolist():
            code = program.code.copy()
            code["wait"][position] &= code["wait"][position] - 1      # without one of its tokens
            assert inspect(replace(program, code=code)).findings, position
            outcomes["tokens"] += 1
    assert outcomes["tokens"] > PROGRAMS // 8
    assert outcomes[False] == 0


def test_the_reference_knows_a_race_and_the_order_that_removes_it():
    store = Store(segment=1, offset=8, shape=(1, 1, 4))
    load = Load(segment=1, offset=12)
    program = program_of([store, load], [MicroOp()] * 16)
    races, looked_at = races_of(decode(program.code), CONFIG, program.segments)
    assert races == {(2, 3): {("work", byte) for byte in (12, 13, 14, 15)}}
    assert looked_at == 5
    ordered = program_of([replace(store, post=Engines.LOAD), replace(load, wait=Engines.STORE)],
                         [MicroOp()] * 16)
    assert races_of(decode(ordered.code), CONFIG, ordered.segments)[0] == {}
