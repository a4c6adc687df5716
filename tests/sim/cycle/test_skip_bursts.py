"""Rows, bursts and responses that end while cycles are skipped: the same as cycle by cycle."""

import random
from dataclasses import replace

import pytest

from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer, Engine, Load, Store, Sync
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.cycle import loop, skip_memory_side
from microtron.sim.cycle.run import run_cycles
from microtron.testing.compare import Case

from ..llvm.interpreted import interpret
from .test_skip_repeats import assert_equal

SIZE = 1 << 16
ALIGNED = 64            # bytes
WIDE = replace(tiny, inp_bytes=8192, wgt_bytes=8192, out_bytes=8192)


def box(rng):
    """Many rows, most of them short, of one burst or two."""
    rows, tiles = rng.choice(((1, 40), (3, 16), (3, 40), (8, 1), (8, 5), (16, 2), (16, 8)))
    pitch = ALIGNED * rng.choice((-(-tiles * 16 // ALIGNED), 10, 12))
    return {"shape": (rng.choice((1, 1, 2)), rows, tiles),
            "offset": ALIGNED * rng.randrange(64), "stride": (rows * pitch, pitch)}


def random_case(seed):
    """Loads beside stores, which never wait for one another."""
    rng = random.Random(seed)
    config = replace(WIDE, bus_bits=rng.choice((64, 64, 128, 256)),
                     queue_depth=rng.choice((2, 4, 16)), reads_in_flight=rng.choice((1, 2, 8, 16)),
                     writes_in_flight=rng.choice((1, 2, 8, 16)))
    code = []
    for _ in range(rng.randint(2, 12)):
        if rng.random() < 0.5:
            code.append(Load(buffer=rng.choice((Buffer.INP, Buffer.WGT, Buffer.ACC)), **box(rng)))
        else:
            code.append(Store(buffer=Buffer.OUT, segment=1, **box(rng)))
    timing = MemoryTiming(read_latency=rng.choice((1, 8, 32, 100)),
                          write_latency=rng.choice((1, 2, 3, 5, 16, 60)),
                          shared=rng.random() < 0.7, reads=rng.choice((1, 4, 32)),
                          writes=rng.choice((1, 2, 16)), turn=rng.choice((0, 0, 0, 2)),
                          cycles_per_beat=rng.choice((1, 1, 1, 2)))
    return Case(program=Program(config, encode([*code, Sync()]), (
        Segment("input", SIZE, Access.READ), Segment("output", SIZE, Access.WRITE))),
        timing=timing)


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_boxes_of_many_rows(first):
    for seed in range(first, first + 150):
        assert_equal(random_case(seed))


def test_most_of_them_reach_their_end():
    faults = [int(run_cycles(random_case(seed).program).fault) for seed in range(20)]
    assert faults.count(0) > 15


def count_steps(monkeypatch, rows):
    """How many cycles of the memory side are stepped through: a load and a store of some rows."""
    shape = {"shape": (1, rows, 16), "stride": (0, 512)}
    program = Program(WIDE, encode([
        Load(buffer=Buffer.INP, **shape),
        Store(buffer=Buffer.OUT, segment=1, wait=1 << Engine.LOAD, **shape), Sync()]), (
        Segment("input", SIZE, Access.READ), Segment("output", SIZE, Access.WRITE)))
    steps = 0
    step = skip_memory_side.memory_cycle

    def counted(*given):
        nonlocal steps
        steps += 1
        step(*given)

    monkeypatch.setattr(skip_memory_side, "memory_cycle", counted)
    monkeypatch.setattr(loop, "compiled", interpret(loop.compiled))
    run_cycles(program)
    monkeypatch.undo()
    return steps


def test_rows_whose_bursts_have_been_requested_take_no_step_of_their_own(monkeypatch):
    two, eight = (count_steps(monkeypatch, rows) for rows in (2, 8))
    assert two > 0
    assert eight - two < 6 * 5      # a request takes three or four; beats, rows, responses: none
