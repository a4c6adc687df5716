"""Profiles: every cycle of every engine has one cause, and the bound is what the design says."""

import json
from dataclasses import replace

import numpy as np
import pytest

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
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.runtime.reports.profile import profile
from microtron.testing.random_programs import random_program

ENGINES = ["load", "gemm", "alu", "store"]


def program(*code):
    return Program(tiny, encode([*code, Sync()]), (
        Segment("micro_ops", 8, Access.READ, np.zeros(8, np.uint8)),
        Segment("memory", 1 << 16, Access.WRITE)))


def of(profile, engine):
    return profile.engines[ENGINES.index(engine)]


def spent(engine):
    return [engine.working, engine.memory, *engine.tokens.values(), engine.queue, engine.idle]


@pytest.mark.parametrize("seed", range(20))
def test_the_causes_of_an_engine_add_up_to_all_cycles_and_agree_with_its_counters(seed):
    found = profile(random_program(tiny, seed, length=40),
                    MemoryTiming(stalls=seed * 10, seed=seed))
    counters = found.report.counters
    for engine in found.engines:
        assert min(spent(engine)) >= 0
        assert sum(spent(engine)) == found.report.cycles
        assert engine.working + engine.memory == counters[f"{engine.engine}_busy"]
        for giver, cycles in engine.tokens.items():
            assert cycles <= counters[f"{engine.engine}_wait_{giver}"]
    assert any(sum(engine.tokens.values()) for engine in found.engines)


def test_a_wait_is_put_down_to_the_token_that_came_last():
    found = profile(program(
        Load(buffer=Buffer.UOP, post=Engines.ALU),
        Gemm(loops=(1, 10, 50), post=Engines.ALU),
        AluI(wait=Engines.LOAD | Engines.GEMM, post=Engines.STORE),
        Store(segment=1, wait=Engines.ALU)))
    alu = of(found, "alu")
    assert alu.tokens["gemm"] > 450
    assert alu.tokens["load"] == alu.tokens["store"] == 0
    (store, stored), (alui, added) = ((wait.position, wait.poster) for wait in found.waits)
    assert (store, stored, alui, added) == (3, 2, 2, 1)
    assert found.waits[0].cycles > found.waits[1].cycles == alu.tokens["gemm"]
    assert found.waits[1].giver == "gemm"
    assert found.waits[1].text == "alui.add wait=load|gemm post=store"
    assert found.waits[1].poster_text == "gemm loops=1,10,50 post=alu"


def test_only_the_five_most_expensive_waits_are_told():
    bank = tiny.acc_bank_tiles          # another one than GEMM's: they do not disturb each other
    alu = Alu(dst=bank, lhs=bank, rhs=bank, wait=Engines.GEMM)
    code = []
    for number in range(8):
        code += [Gemm(loops=(1, 1, 10 + 10 * number), post=Engines.ALU), alu]
    waits = profile(program(Load(buffer=Buffer.UOP), Sync(action=SyncAction.BARRIER),
                            *code)).waits
    assert [wait.position for wait in waits] == [17, 15, 13, 11, 9]
    assert [wait.cycles for wait in waits] == sorted((wait.cycles for wait in waits), reverse=True)


def test_an_engine_behind_a_barrier_has_nothing_in_its_queue_and_one_without_work_is_done():
    found = profile(program(Gemm(loops=(1, 10, 50)), Sync(action=SyncAction.BARRIER), AluI()))
    assert of(found, "alu").queue > 500
    assert of(found, "load").idle == found.report.cycles
    assert of(found, "gemm").working > 500


def test_slow_memory_shows_as_waiting_for_memory():
    transfers = program(Load(shape=(1, 1, 400), segment=1), Store(shape=(1, 1, 400), segment=1))
    fast, slow = profile(transfers), profile(transfers, MemoryTiming(cycles_per_beat=4))
    for engine in ("load", "store"):
        assert of(slow, engine).memory > of(fast, engine).memory + 400
        assert of(slow, engine).working < of(fast, engine).working + 20


def test_the_bound_is_the_largest_of_products_bytes_and_vectors():
    code = (Load(shape=(1, 1, 400), segment=1), Store(shape=(1, 1, 200), segment=1))
    gemm = Gemm(loops=(1, 10, 50))
    roofline = profile(program(gemm, *code)).roofline
    assert (roofline.mac_cycles, roofline.memory_cycles) == (500, 2400 / 8)
    assert (roofline.bound, roofline.limit) == (500, "macs")
    assert roofline.macs_per_byte == 500 * 16 / 2400
    assert roofline.balance == 16 / 8
    found = profile(program(gemm, *code), MemoryTiming(cycles_per_beat=2))
    assert (found.roofline.bound, found.roofline.limit) == (600, "memory")
    assert found.roofline.balance == 16 / 4
    assert found.roofline.efficiency == 600 / found.report.cycles
    apart = MemoryTiming(cycles_per_beat=2, shared=False)
    assert profile(program(gemm, *code), apart).roofline.memory_cycles == 1600 / 4


def test_the_alu_can_be_what_sets_the_bound():
    vectors = Alu(op=AluOp.ADD, loops=(1, 30, 30))
    found = profile(program(Gemm(loops=(1, 10, 50)), vectors))
    assert (found.roofline.mac_cycles, found.roofline.alu_cycles) == (500, 900)
    assert (found.roofline.bound, found.roofline.limit) == (900, "alu")
    assert found.roofline.utilization == 500 / found.report.cycles
    moves = AluI(op=AluOp.MOVE, loops=(1, 30, 30))
    slow = profile(replace(program(moves), config=replace(tiny, vector_cycles=4)))
    assert slow.roofline.bound == slow.roofline.alu_cycles == 3600 < slow.report.cycles < 3700


def test_a_depthwise_product_takes_a_cycle_and_uses_one_row_of_the_array():
    found = profile(program(Gemm(loops=(1, 10, 50), flags=GemmFlags.DEPTHWISE)))
    assert (found.roofline.bound, found.roofline.limit) == (500, "macs")
    assert found.roofline.utilization == 500 * 4 / (found.report.cycles * 16)


def test_a_program_that_moves_nothing_has_no_intensity_and_everything_is_plain_data():
    found = profile(program(Gemm()))
    assert found.roofline.macs_per_byte is None
    table = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert table["cycles"] == found.report.cycles
    assert [engine["engine"] for engine in table["engines"]] == ENGINES
    assert table["roofline"]["limit"] == "macs"
    assert table["waits"] == []
