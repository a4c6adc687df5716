"""Assembly text that is wrong: one line that says where and why, whatever the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import AssemblyError
from microtron.isa.assembly.assembler import assemble, parse_instruction
from microtron.isa.assembly.disassembler import disassemble
from microtron.isa.instructions import ISA

from ..strategies import programs, same

DECLARED = ".segment data size=64\n"


@pytest.mark.parametrize(("text", "message"), [
    ("lod.inp", "1: there is no instruction 'lod'; did you mean load?"),
    ("LOAD.inp", "1: there is no instruction 'LOAD'; did you mean load?"),
    ("xyzzy", "1: there is no instruction 'xyzzy'; known are load, gemm, window, alu, alui, "
              "requantize, table, store, sync"),
    ("\n\nload.imp", "3: load: buffer is 'imp', but must be one of uop, inp, wgt, acc, acc8; "
                     "did you mean inp?"),
    ("load.out", "1: load: buffer is 'out', but must be one of uop, inp, wgt, acc, acc8"),
    ("load.inp.inp", "1: load takes 1 suffix, but 'inp.inp' follows it"),
    ("gemm.x", "1: gemm takes no suffix, but 'x' follows it"),
    ("load.inp ofset=3", "1: load has no 'ofset'; did you mean offset?"),
    ("load.inp q=3", "1: load has no 'q'; known are wait, post, buffer, segment, pad_value, sram, "
                     "offset, shape, sram_pitch, stride, pad"),
    ("load buffer=inp", "1: load: buffer is written behind the mnemonic: load.inp"),
    ("load offset = 3", "1: load: 'offset' is not name=value without spaces"),
    ("load offset=1 offset=2", "1: load: offset is given twice"),
    ("load offset=4294967296", "1: load: offset is 4294967296, which does not fit in 32 bits "
                               "(0 to 4294967295)"),
    ("load pad=0,0,0,-1", "1: load: pad is -1, which does not fit in 8 bits (0 to 255)"),
    ("load offset=ten", "1: load: offset is 'ten', but must be a number: 12, -12 or 0x1f"),
    ("load offset=٣", "1: load: offset is '٣', but must be a number: 12, -12 or 0x1f"),
    ("load offset=" + "9" * 5000, "1: load: offset is '" + "9" * 39 + "…', a number of 5000 "
                                  "digits, but at most 60 are read"),
    ("load shape=1,2", "1: load: shape is '1,2', but needs 3 numbers: z,y,x"),
    ("load shape=1,,2", "1: load: shape is '', but must be a number: 12, -12 or 0x1f"),
    ("load segment=8", "1: load: segment is 8, but there are 8 (0 to 7)"),
    ("load segment=data", "1: load: segment 'data' is not declared above; there are none"),
    (DECLARED + "load segment=dat",
     "2: load: segment 'dat' is not declared above; did you mean data?"),
    ("gemm wait=laod", "1: gemm: wait is 'laod', but must be one of load, gemm, alu, store; "
                       "did you mean load?"),
    ("gemm wait=load|load", "1: gemm: wait names load twice"),
    ("gemm wait=load|", "1: gemm: wait is '', but must be one of load, gemm, alu, store"),
    ("sync.barrier\ngemm flags=bias\nload segment=9",
     "2: gemm: flags has BIAS, which means nothing without START"),
    ("a: sync\na: sync", "2: label a is set twice"),
    ("1a: sync", "1: label '1a' is not a plain name; write it in quotes"),
    ('sync "x', "1: the quote at column 6 is never closed"),
    (".sgment", "1: there is no directive '.sgment'; did you mean .segment?"),
    (".config", "1: .config: names no preset; known are micro, mini, compact, tiny, trim, small, "
                "slim, lean, base, wide"),
    (".config bass", "1: .config: 'bass' is no preset; did you mean base?"),
    (".config base\n.config base", "2: .config is given twice"),
    (".config base batch=3", "1: .config: batch is 3, but must be a power of two from 1 to 16"),
    (".config base batsch=2", "1: .config has no 'batsch'; did you mean batch?"),
    (".config base batch=x", "1: batch is 'x', but must be a number: 12, -12 or 0x1f"),
    (".provenance a", "1: .provenance takes 2 words, but 1 follow it"),
    (".provenance a b", "1: 'b' is not a text in quotes; write \"…\""),
    ('.provenance a "\\q"', '1: \\q in quotes means nothing; write \\\\ for a backslash, \\" for '
                            'a quote, \\n, \\t or \\u{hexadecimal}'),
    ('.provenance a ""\n.provenance a ""', "2: .provenance a is given twice"),
    (".segment data", "1: .segment data: size is missing"),
    (".segment data size=0", "1: segment data: size is 0, but must be from 1 to 4294967295 bytes"),
    (".segment size=8", "1: .segment: its name is 'size=8', but must be a plain word"),
    (DECLARED + DECLARED, "2: segment data is declared twice"),
    (".segment d size=8 access=both",
     "1: .segment d: access is 'both', but must be read or write"),
    (".tensor x", "1: .tensor x: segment is missing"),
    (DECLARED + ".tensor x segment=data dtype=int9",
     "2: .tensor x: dtype is 'int9'; did you mean int8?"),
    (DECLARED + ".tensor x segment=data shape=65",
     "2: tensor x ends at byte 65, but segment data has 64"),
    (DECLARED + ".tensor x segment=data\n.tensor x segment=data",
     "3: .tensor x is given twice"),
    (DECLARED + ".tensor x segment=data shape=" + ",".join("1" * 65),
     "2: .tensor x: shape has 65 extents, but at most 64 are possible"),
    (".bytes data", "1: segment 'data' is not declared above; there are none"),
    (DECLARED + ".bytes data\n00*64\n00",
     "4: the data of segment data reaches byte 65, but its size is 64"),
    (DECLARED + ".bytes data+65",
     "2: the data of segment data reaches byte 65, but its size is 64"),
    (DECLARED + ".bytes data+8\n.bytes data+4",
     "3: offset 0x4 of segment data is taken: its data goes on at 0x8"),
    (DECLARED + ".bytes data\n00*0", "3: 0 repetitions are not possible; write 1 or more"),
    (DECLARED + ".bytes data\n0 0", "3: '0 0' is not a row of bytes; write two hexadecimal digits "
                                    "for each, or .code before an instruction"),
    (DECLARED + ".bytes data\na: sync",
     "3: label a stands in the data of a segment; write .code before it"),
    (DECLARED + ".uops data\nsync", "3: 'sync' stands among micro-ops; write uop dst=…, or .code "
                                    "before an instruction"),
    (DECLARED + ".uops data\nuop dst=65536",
     "3: uop: dst is 65536, which does not fit in 16 bits (0 to 65535)"),
    (".word 00", "1: .word has 1 bytes, but an instruction has 32"),
])
def test_an_error_names_the_line_the_value_and_what_would_be_right(text, message):
    with pytest.raises(AssemblyError) as error:
        assemble(text, place="file.s")
    assert str(error.value) == f"file.s:{message}"


def test_a_single_line_is_placed_where_its_reader_says():
    with pytest.raises(AssemblyError, match=r"^<text>:1: there is no instruction 'gem'"):
        parse_instruction("gem")
    with pytest.raises(AssemblyError, match=r"^run\.s:7: no instruction; known are load"):
        parse_instruction("  ; nothing", place="run.s", number=7)


def assembles_or_explains(text):
    complaint = None
    try:
        program = assemble(text)
    except AssemblyError as error:
        complaint = str(error)
    if complaint is None:
        assert same(assemble(disassemble(program)), program)
    else:
        assert re.fullmatch(r"<text>:\d+: .+", complaint)           # a dot is not a line break


PIECES = [".config", ".segment", ".uops", ".bytes", ".code", ".word", ".tensor", ".provenance",
          "a", "data", "size=64", "size=4294967295", "+", "=", ":", "|", ",", "*", '"', "\\", ";",
          "\n", "\n", " ", "00", "ff*9", "0x", "-1", "segment=", "shape=1,2", "wait=load",
          *(kind.mnemonic() for kind in ISA), "uop", "dst=1", ".inp", "\x00", "\ud800", "é"]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join)
       | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_any_text_gives_a_program_or_an_assembly_error(text):
    assembles_or_explains(text)


@given(programs().map(disassemble), st.data())
def test_a_damaged_listing_gives_a_program_or_an_assembly_error(text, data):
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 8)))
        piece = data.draw(st.text(max_size=3) | st.sampled_from(PIECES))
        text = text[:start] + piece + text[stop:]
    assembles_or_explains(text)


LARGE = ".segment data size=0xffffffff\n.segment more size=0xffffffff\n"


@pytest.mark.parametrize(("text", "line", "count"), [
    (".bytes data+0xffffffff", 3, (1 << 32) - 1),
    (".bytes data\n00*0xffffffff", 4, (1 << 32) - 2),
    (".bytes data\nff" + "00" * 63 + "*0x200001", 4, 1 << 27),
    (".uops data+0x4000001\nuop", 3, (1 << 26) + 1),
    (".bytes data+0x2000000\n00\n.bytes more+0x2000001\n00", 5, (1 << 26) + 1),
    (".bytes data\n" + "00*0x1000001\n" * 5, 8, 5 << 24)])
def test_a_short_text_does_not_become_a_large_program(text, line, count):
    assert len(text) < 200
    with pytest.raises(AssemblyError, match=rf"^<text>:{line}: gaps and repetitions up to here, .* "
                                            rf"make {count:,} bytes .* at most 67,108,864$"):
        assemble(LARGE + text)


def test_what_is_written_out_may_be_as_large_as_it_is():
    row = "01" * (1 << 20) + "\n"
    text = f"{LARGE}.bytes data+0x4000000\n{row * 2}"
    assert len(assemble(text).segments[0].data) == (1 << 26) + (2 << 20)
