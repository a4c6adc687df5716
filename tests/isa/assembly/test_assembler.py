"""Assembly text: every program survives it, and people can read it."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.assembly.assembler import assemble, parse_instruction
from microtron.isa.assembly.disassembler import disassemble, format_instruction
from microtron.isa.config import PRESETS, base, tiny
from microtron.isa.instructions import (
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
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import WORD, decode, encode, encode_micro_ops, from_bytes

from ..strategies import configs, instructions, programs, same

LISTING = """\
.config tiny batch=2    ; 2×4×4

.provenance model "two words"

.segment weights  size=0x100   access=read
.segment data     size=0x1000  access=write

.tensor x          segment=data  offset=0x0   shape=4,16  dtype=int8
.tensor "the sum"  segment=data  offset=0x40              dtype=int32

.uops weights
    uop dst=0 wgt=0   ; 0x0
    uop dst=1 wgt=12  ; 0x8

.bytes weights+0x10
    01020304 05      ; 0x10
    00*40            ; 0x15
    ff               ; 0x3d

.code

start:
    load.uop           segment=weights shape=1,1,2                             post=gemm  ; 0
    load.inp wait=gemm segment=data pad_value=-128 offset=0x40 shape=1,4,16    post=gemm  ; 1

body:
again:
    gemm     wait=load|alu flags=start|first_uop count=2 loops=1,4,4 post=load  ; 2
    sync.end                                                                    ; 3

done:
"""


def listed():
    data = np.concatenate([
        encode_micro_ops([MicroOp(), MicroOp(dst=1, wgt=12)]).view(np.uint8),
        np.array([1, 2, 3, 4, 5, *[0] * 40, 255], np.uint8)])
    code = encode([
        Load(buffer=Buffer.UOP, shape=(1, 1, 2), post=Engines.GEMM),
        Load(wait=Engines.GEMM, segment=1, offset=0x40, shape=(1, 4, 16), pad_value=-128,
             post=Engines.GEMM),
        Gemm(wait=Engines.LOAD | Engines.ALU, flags=GemmFlags.START | GemmFlags.FIRST_UOP, count=2,
             loops=(1, 4, 4), post=Engines.LOAD),
        Sync()])
    return Program(
        dataclasses.replace(tiny, batch=2), code,
        (Segment("weights", 0x100, data=data), Segment("data", 0x1000, Access.WRITE)),
        (Tensor("x", "data", 0, (4, 16)), Tensor("the sum", "data", 0x40, (), "int32")),
        {"start": 0, "body": 2, "again": 2, "done": 4}, {"model": "two words"})


def squeeze(text):
    return [re.sub(r"  +", " ", line) for line in text.splitlines()]


def test_a_listing_reads_like_this():
    assert squeeze(disassemble(listed())) == squeeze(LISTING)


def test_comments_of_a_listing_stand_in_one_column_within_a_block():
    for block in disassemble(listed()).split("\n\n"):
        columns = {line.index("; ") for line in block.splitlines() if "; " in line}
        assert len(columns) <= 1


def test_the_listing_assembles_to_the_program_it_lists():
    assert same(assemble(LISTING), listed())


@given(programs())
def test_every_program_comes_back_from_its_text(program):
    text = disassemble(program)
    again = assemble(text)
    assert same(again, program)
    assert disassemble(again) == text


@given(programs(names=st.text(min_size=1, max_size=6)), st.text(max_size=6))
def test_names_and_provenance_may_be_any_text(program, value):
    program = dataclasses.replace(program, provenance={"key": value, **program.provenance})
    text = disassemble(program)
    assert same(assemble(text), program)
    assert text.replace("\n", "").isprintable()         # lone surrogates have no UTF-8


@given(instructions())
def test_every_instruction_comes_back_from_its_line(instruction):
    assert parse_instruction(format_instruction(instruction)) == instruction


@given(instructions(), st.randoms(use_true_random=False))
def test_fields_may_stand_in_any_order(instruction, random):
    mnemonic, *fields = format_instruction(instruction).split()
    random.shuffle(fields)
    assert parse_instruction(" ".join([mnemonic, *fields])) == instruction


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=4))
def test_words_that_are_no_instruction_come_back_too(words):
    program = Program(base, from_bytes(b"".join(words)))
    assert same(assemble(disassemble(program)), program)


@given(configs())
def test_every_configuration_comes_back(config):
    assert assemble(disassemble(Program(config, encode(())))).config == config


@pytest.mark.parametrize("name", PRESETS)
def test_a_configuration_that_is_a_preset_is_named(name):
    text = disassemble(Program(PRESETS[name], encode(())))
    assert text.startswith(f".config {name}    ; ")


@pytest.mark.parametrize(("instruction", "line"), [
    (Sync(), "sync.end"),
    (Sync(action=SyncAction.BARRIER), "sync.barrier"),
    (Load(), "load.inp"),
    (Load(wait=Engines.GEMM | Engines.STORE, offset=255, stride=(0, -64), post=Engines.ALU),
     "load.inp wait=gemm|store offset=0xff stride=0,-64 post=alu"),
    (Store(buffer=Buffer.ACC, segment=1), "store.acc segment=1"),
    (AluI(op=AluOp.MAX, immediate=-5, target=Buffer.OUT), "alui.max target=out immediate=-5"),
    (Requantize(low=0), "requantize low=0"),
])
def test_only_what_differs_from_the_default_is_written(instruction, line):
    assert format_instruction(instruction) == line
    assert parse_instruction(line) == instruction


def test_a_segment_goes_by_its_name_where_it_has_one():
    segments = [Segment("data", 64)]
    assert format_instruction(Load(), segments) == "load.inp segment=data"
    assert format_instruction(Load(segment=1), segments) == "load.inp segment=1"
    assert parse_instruction("load.inp segment=data", segments=segments) == Load()
    assert parse_instruction("load.inp segment=0", segments=segments) == Load()


def test_a_suffix_left_out_is_the_default():
    assert parse_instruction("load") == Load()
    assert parse_instruction("sync") == Sync()


def test_comments_blank_lines_tabs_and_carriage_returns_say_nothing():
    plain = assemble("sync.barrier\nsync.end\n")
    busy = assemble("\ufeff; hello\r\n\n\t sync.barrier\t;a \"comment\r\n\n  sync.end;\n;\n")
    assert same(plain, busy)
    assert decode(plain.code) == [Sync(action=SyncAction.BARRIER), Sync()]


def test_labels_stand_on_their_own_line_or_before_an_instruction():
    program = assemble('a: sync.barrier\nb:\n\n"c d": e: sync.end\nend:')
    assert program.labels == {"a": 0, "b": 1, "c d": 1, "e": 1, "end": 2}


def test_without_a_config_line_the_configuration_is_base():
    assert assemble("").config == base


def test_no_data_empty_data_and_short_data_differ():
    text = ".segment none size=8\n.segment empty size=8\n.segment short size=8\n"
    program = assemble(text + ".bytes empty\n.bytes short\n00\n")
    assert program.segment("none").data is None
    assert program.segment("empty").data.tolist() == []
    assert program.segment("short").data.tolist() == [0]
    assert same(assemble(disassemble(program)), program)


def test_data_goes_on_where_it_stopped_and_gaps_are_zero():
    program = assemble(".segment s size=64\n.bytes s\n01 0203*2\n.uops s\nuop src=0x102\n"
                       ".bytes s+0x10\nff\n.code\nsync.end")
    assert program.segment("s").data.tolist() == [
        1, 2, 3, 2, 3, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 255]
    assert len(program.code) == 1


def test_long_runs_of_one_byte_stay_short():
    data = np.zeros(1 << 20, np.uint8)
    data[7], data[-9:] = 1, 255
    program = Program(base, encode(()), (Segment("s", 1 << 21, data=data),))
    text = disassemble(program)
    assert len(text) < 300
    assert same(assemble(text), program)


def uop_blocks(load, data):
    program = Program(base, encode([load]), (Segment("s", 4096, data=data),))
    text = disassemble(program)
    assert same(assemble(text), program)
    return re.findall(r"\.(?:uops|bytes) \S+", text)


@pytest.mark.parametrize(("load", "blocks"), [
    (Load(buffer=Buffer.UOP, shape=(1, 1, 2)), [".uops s", ".bytes s+0x10"]),
    (Load(buffer=Buffer.UOP, offset=8, shape=(1, 1, 2)),
     [".bytes s", ".uops s+0x8", ".bytes s+0x18"]),
    (Load(buffer=Buffer.UOP, shape=(1, 2, 1), stride=(0, 16)),
     [".uops s", ".bytes s+0x8", ".uops s+0x10", ".bytes s+0x18"]),
    (Load(buffer=Buffer.UOP, offset=16, shape=(1, 1, 4)),
     [".bytes s", ".uops s+0x10", ".bytes s+0x20"]),                            # past the end
    (Load(buffer=Buffer.UOP, offset=4, shape=(1, 1, 2)), [".bytes s"]),         # not aligned
    (Load(buffer=Buffer.UOP, shape=(1, 1, 5)), [".bytes s"]),                   # too many
    (Load(buffer=Buffer.UOP, shape=(65535, 65535, 0)), [".bytes s"]),
    (Load(buffer=Buffer.UOP, shape=(65535, 65535, 65535)), [".bytes s"]),
    (Load(buffer=Buffer.UOP, segment=1, shape=(1, 1, 2)), [".bytes s"]),
    (Load(buffer=Buffer.INP, shape=(1, 1, 2)), [".bytes s"]),
])
def test_data_that_a_load_reads_as_micro_ops_is_listed_as_such(load, blocks):
    assert uop_blocks(load, np.arange(35, dtype=np.uint8)) == blocks


def test_a_word_that_is_no_instruction_is_listed_with_the_reason():
    stream = np.zeros(3, WORD)
    stream["opcode"] = [0, 2, 7]
    stream["wait"] = [0, 2, 0]
    raw = stream.view(np.uint8).reshape(3, 32)
    raw[2, 31] = 1
    lines = disassemble(Program(base, stream)).splitlines()[-3:]
    assert [line.split("; ")[1] for line in lines] == [
        "0: opcode 0 belongs to no instruction",
        "1: gemm: wait and post must not name gemm, its own engine, which runs in order already",
        "2: sync: a reserved byte is not zero"]
