"""The decoder's idea of a legal word against the software's, on words with random faults."""

import random

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.sim import Simulator

from microtron.base.errors import IsaError
from microtron.hw.layouts import breaches, unpack
from microtron.isa import stream
from microtron.isa.config import base
from microtron.isa.instructions import ISA, Gemm, Load
from microtron.isa.record import fields_of


def legal(word):
    try:
        stream.check(stream.from_bytes(word))
    except IsaError:
        return False
    return True


@pytest.mark.parametrize("instruction", ISA, ids=lambda each: each.mnemonic())
def test_legality_in_hardware_equals_legality_in_software(instruction):
    rng = random.Random(instruction.mnemonic())
    m, word, bad = Module(), Signal(256), Signal()
    m.d.comb += bad.eq(Cat(breaches(instruction, word, base)).any())
    seen = set()

    async def testbench(ctx):
        for _ in range(600):
            raw = bytearray(instruction().encode())
            for _ in range(rng.choice((0, 1, 1, 2))):
                raw[rng.randrange(1, 32)] = rng.choice((0, 1, 2, 4, 8, 255, rng.randrange(256)))
            ctx.set(word, int.from_bytes(raw, "little"))
            is_legal = legal(bytes(raw))
            assert bool(ctx.get(bad)) != is_legal, raw.hex()
            seen.add(is_legal)

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == {True, False}


@pytest.mark.parametrize("instruction", [
    Load(stride=(-5, 70000), pad=(1, 2, 3, 4), pad_value=-7, shape=(9, 8, 7), offset=1 << 31),
    Gemm(loops=(3, 2, 1), dst_stride=(-1, 2, -3), uop=65535)])
def test_fields_are_found_where_the_record_has_them(instruction):
    m, word = Module(), Signal(256)
    fields = unpack(type(instruction), word)

    async def testbench(ctx):
        ctx.set(word, int.from_bytes(instruction.encode(), "little"))
        for field in fields_of(type(instruction)):
            value, expected = getattr(fields, field.name), getattr(instruction, field.name)
            if field.axes:
                assert tuple(ctx.get(each) for each in value) == expected
            else:
                assert ctx.get(value) == expected

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
