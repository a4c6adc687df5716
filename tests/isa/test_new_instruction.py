"""A new instruction is one class: text, header and manual follow without a change to them."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import AssemblyError
from microtron.isa.assembly.assembler import assemble, parse_instruction
from microtron.isa.assembly.disassembler import disassemble, format_instruction
from microtron.isa.c_header import c_header
from microtron.isa.config import base
from microtron.isa.instructions import ISA, Engine, Engines, Instruction
from microtron.isa.manual import explain, manual, summary
from microtron.isa.program import Access, Program, Segment
from microtron.isa.record import i8, i32, operand, u8, u16, u32
from microtron.isa.stream import encode

from .strategies import instructions, same


class Direction(IntEnum):
    """Where to go."""

    UP = 1          # towards the sky
    DOWN = 2


class Colours(IntFlag):
    """What to paint with."""

    RED = 1
    BLUE = 4        # like the sea


@dataclass(frozen=True, kw_only=True)
class Paint(Instruction):
    """Paint a row of tiles. Made up for this test."""

    opcode = 200
    engine = Engine.ALU
    direction: Direction = operand(u8, "where to go", default=Direction.DOWN, kind=Direction,
                                   suffix=True)
    segment: int = operand(u8, "segment to paint")
    colours: Colours = operand(u8, "colours", default=Colours.RED, kind=Colours)
    register: int = operand(u16, "a word that C keeps")
    where: int = operand(u32, "an address")
    route: tuple[int, int] = operand(u8, "two steps", default=(1, 1), axes=("first", "second"))
    amount: int = operand(i32, "how much", default=dataclasses.MISSING)
    shade: tuple[int, int, int] = operand(i8, "how dark", default=(1, 2, 3),
                                          axes=("r", "g", "b"))


KINDS = (*ISA, Paint)
SEGMENTS = (Segment("wall", 64, Access.WRITE),)


@pytest.mark.parametrize(("instruction", "line"), [
    (Paint(amount=0), "paint.down segment=wall amount=0"),
    (Paint(wait=Engines.LOAD, direction=Direction.UP, colours=Colours(0), amount=-1,
           post=Engines.STORE),
     "paint.up wait=load segment=wall colours=none amount=-1 post=store"),
    (Paint(colours=Colours.RED | Colours.BLUE, where=31, segment=3, register=7, amount=5,
           route=(1, 2), shade=(1, 2, -3)),
     "paint.down segment=3 colours=red|blue register=7 where=0x1f route=1,2 amount=5 "
     "shade=1,2,-3"),
])
def test_it_has_a_line_of_assembly(instruction, line):
    assert format_instruction(instruction, SEGMENTS) == line
    assert parse_instruction(line, segments=SEGMENTS, instructions=KINDS) == instruction


@pytest.mark.parametrize(("line", "message"), [
    ("paint.up", "paint: amount is missing; it has no default"),
    ("paint.u amount=1", "paint: direction is 'u', but must be one of up, down; did you mean up?"),
    ("paint amount=1 colours=green", "paint: colours is 'green', but must be one of red, blue"),
    ("pain amount=1", "there is no instruction 'pain'; did you mean paint?"),
])
def test_its_errors_are_explained(line, message):
    with pytest.raises(AssemblyError) as error:
        parse_instruction(line, instructions=KINDS)
    assert str(error.value) == f"<text>:1: {message}"


def paints():
    return st.builds(Paint, amount=st.integers(-5, 5), where=st.integers(0, 99),
                     segment=st.integers(0, 255), colours=st.sampled_from([0, 1, 4, 5]),
                     direction=st.sampled_from(Direction))


@given(st.lists(instructions() | paints(), max_size=6))
def test_programs_with_it_come_back_from_their_text(code):
    program = Program(base, encode(code), SEGMENTS)
    text = disassemble(program, instructions=KINDS)
    again = assemble(text, instructions=KINDS)
    assert same(again, program)
    assert ".word" not in text


def test_who_does_not_know_it_sees_a_word():
    program = Program(base, encode([Paint(amount=1)]))
    text = disassemble(program)
    assert "opcode 200 belongs to no instruction" in text
    assert same(assemble(text), program)


@pytest.mark.parametrize("command", [("gcc", "-std=c11", "-x", "c"),
                                     ("g++", "-std=c++11", "-x", "c++")],
                         ids=lambda command: command[0])
def test_it_is_in_the_header(tmp_path, command):
    text = c_header(KINDS)
    assert "MICROTRON_OPCODE_PAINT = 200," in text
    assert "    MICROTRON_COLOURS_BLUE = 0x4,  /* like the sea */" in text
    assert "    uint16_t register_;  /* a word that C keeps */" in text
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / "isa.h").write_text(text, encoding="utf-8")
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wpadded",
                    "-fsyntax-only", "isa.h"], cwd=tmp_path, check=True)


def test_it_is_in_the_manual():
    text = manual(KINDS)
    assert explain("paint", KINDS) in text + "\n"
    assert "Paint a row of tiles. Made up for this test.\n\nOpcode 200, executed by ALU." in text
    assert ("| 3 | u8 | `direction` | `down` | where to go: one of `up`, `down` "
            "([Direction](#direction)); written behind the mnemonic |") in text
    assert "| 1 | `up` | towards the sky |" in text
    assert ("paint", "Paint a row of tiles") in summary(KINDS)
    assert "paint" not in manual()
