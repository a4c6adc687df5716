"""Small pieces of logic. What chooses by an enum must have hardware for each of its members."""

import gc
import random
from enum import IntEnum, IntFlag

import pytest
from amaranth.hdl import Const, Fragment, Module, Signal, signed
from amaranth.sim import Simulator

from microtron.hw import control
from microtron.hw.alu import alu_decode, alu_lane, requantizer
from microtron.hw.alu.alu_decode import AluDecoder
from microtron.hw.alu.alu_lane import AluLane, wraps
from microtron.hw.alu.requantizer import Requantizer
from microtron.hw.control import Control
from microtron.hw.fetch import fetch
from microtron.hw.fetch.fetch import Fetch
from microtron.hw.logic import (
    count_down,
    delay_line,
    is_among,
    narrow,
    priority_mux,
    reach_bits,
    require_entries,
    select,
    step_by_one,
)
from microtron.isa.config import tiny
from microtron.isa.instructions import ISA, Engine, Gemm, SyncAction

from .simulate import simulate

FIELD = 16              # bits of a base or a stride in an instruction

# The module that chooses, the enum by which it does, and the unit it chooses for.
CHOICES = {
    "operands of an operation": (alu_lane, "AluOp", AluLane),
    "wrapping of an operation": (alu_lane, "AluOp", lambda: wraps(Const(0, 3))),
    "ties of a rounding": (requantizer, "Rounding", Requantizer),
    "action of a sync": (fetch, "SyncAction", lambda: Fetch(tiny)),
    "bit of the status": (control, "Status", lambda: Control(tiny)),
}


def extended(kind):
    """The enum with one member more."""
    base, new = (IntFlag, max(kind) << 1) if issubclass(kind, IntFlag) else (IntEnum, max(kind) + 1)
    return base(kind.__name__, {**{each.name: each.value for each in kind}, "NEW": new})


def elaborate(build):
    unit = build()
    if hasattr(unit, "elaborate"):
        Fragment.get(unit, None)


def assert_unbuildable(build, missing):
    with pytest.raises(NotImplementedError, match=f"there is no hardware for .*{missing}"):
        elaborate(build)
    gc.collect()            # Amaranth warns of what was begun and never used


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize("choice", CHOICES)
def test_a_member_of_an_enum_without_hardware_fails_when_the_unit_is_built(monkeypatch, choice):
    module, name, build = CHOICES[choice]
    elaborate(build)
    monkeypatch.setattr(module, name, extended(getattr(module, name)))
    assert_unbuildable(build, rf"{name}\.NEW")


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_an_instruction_without_hardware_fails_when_the_alu_is_built(monkeypatch):
    monkeypatch.setattr(alu_decode, "instructions_of", lambda engine: (
        *(each for each in ISA if each.engine == engine), Gemm))
    assert_unbuildable(lambda: AluDecoder(tiny), "Gemm")


def test_a_table_is_taken_in_the_order_of_the_enum_and_must_be_complete():
    table = {SyncAction.END: "stop", SyncAction.BARRIER: "go"}
    assert list(require_entries(SyncAction, table)) == list(SyncAction)
    with pytest.raises(NotImplementedError, match=r"for <Engine\.GEMM: 1>, <Engine\.STORE: 3>"):
        require_entries(Engine, {Engine.LOAD: 0, Engine.ALU: 0})


def test_choices_are_those_of_python():
    number, values = Signal(2), (5, 9, 2, 7)
    chosen, among, earliest = Signal(4), Signal(), Signal(4)
    m = Module()
    m.d.comb += [
        chosen.eq(select([Const(each, 4) for each in values], number)),
        among.eq(is_among(number, Engine, {each: each.name.startswith("L") or each == Engine.ALU
                                           for each in Engine})),
        earliest.eq(priority_mux([(number[0], 3), (number[1], 4), (0, 6)])),
    ]
    m.d.sync += Signal().eq(0)

    async def testbench(ctx):
        for each in Engine:
            ctx.set(number, each)
            assert ctx.get(chosen) == values[each]
            assert ctx.get(among) == (each in (Engine.LOAD, Engine.ALU))
            assert ctx.get(earliest) == (6, 3, 4, 3)[each]

    simulate(m, testbench)


@pytest.mark.parametrize("cycles", [1, 2, 3, 8])
def test_a_value_is_delayed_by_so_many_cycles(cycles):
    m, value = Module(), Signal(8)
    later = delay_line(m, value, cycles, "kept")

    async def testbench(ctx):
        for number in range(40):
            ctx.set(value, number)
            if number >= cycles:
                assert ctx.get(later) == number - cycles
            await ctx.tick()

    simulate(m, testbench)


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_a_count_steps_up_and_down_by_one_and_wraps(bits):
    m, count, up = Module(), Signal(bits), Signal()
    stepped = step_by_one(count, up)
    m.d.sync += Signal().eq(up)

    async def testbench(ctx):
        for number in range(1 << bits):
            for goes_up, step in ((1, 1), (0, -1)):
                ctx.set(count, number)
                ctx.set(up, goes_up)
                assert ctx.get(stepped) == (number + step) % (1 << bits)

    simulate(m, testbench)


@pytest.mark.parametrize("tiles", [2, 4, 512, 8192, 16384, 32768, 65536])
def test_an_index_is_in_range_as_the_whole_one_is(tiles):
    m, base, stride = Module(), Signal(FIELD), Signal(signed(FIELD))
    bits = reach_bits(tiles)
    begun, stepped = (Signal(signed(bits), name=name) for name in ("begun", "stepped"))
    m.d.comb += [begun.eq(narrow(base, bits)),
                 stepped.eq(narrow(base, bits) + narrow(stride, bits))]
    rng, edges = random.Random(tiles), (0, 1, tiles - 1, tiles, tiles + 1, 2 * tiles - 1, 3 * tiles)
    bases = [each for each in (*edges, *(rng.getrandbits(FIELD) for _ in range(60)), 65535)
             if each < 1 << FIELD]
    strides = [each for edge in (*bases, 32768) for each in (edge, -edge)
               if -1 << FIELD - 1 <= each < 1 << FIELD - 1]

    def in_range(number):
        return number if 0 <= number < tiles else None

    async def check(ctx):
        for first in bases:
            ctx.set(base, first)
            assert in_range(ctx.get(begun)) == in_range(first)
            for step in strides if first < tiles else ():
                ctx.set(stride, step)
                assert in_range(ctx.get(stepped)) == in_range(first + step)

    simulator = Simulator(m)
    simulator.add_testbench(check)
    simulator.run()


def test_few_bits_are_left():
    assert len(narrow(Signal(FIELD), reach_bits(512))) == 10
    assert len(narrow(Signal(signed(FIELD)), reach_bits(512))) == 11


def test_a_count_down_takes_its_start_where_it_loads():
    m, count, start, loads = Module(), Signal(5), Signal(5), Signal()
    following = Signal(5)
    m.d.comb += following.eq(count_down(count, loads, start))

    async def check(ctx):
        for now in range(32):
            ctx.set(count, now)
            ctx.set(start, 31 - now)
            for loading in (0, 1):
                ctx.set(loads, loading)
                assert ctx.get(following) == (31 - now if loading else (now - 1) % 32)

    simulator = Simulator(m)
    simulator.add_testbench(check)
    simulator.run()
