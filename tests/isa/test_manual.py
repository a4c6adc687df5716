"""The manual: up to date, complete, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from microtron.base.errors import IsaError
from microtron.isa.assembly.assembler import assemble, parse_instruction
from microtron.isa.instructions import ISA, AluOp, Buffer, MicroOp
from microtron.isa.manual import explain, manual, section, summary
from microtron.isa.manual_prose import EXAMPLE
from microtron.isa.record import fields_of, reserved_bytes
from microtron.isa.registers import register_map
from microtron.isa.stream import decode
from microtron.isa.verification.verifier import verify

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "isa.md"
RECORDS = pytest.mark.parametrize("record", [*ISA, MicroOp], ids=lambda each: each.__name__)


def blocks(text):
    return re.findall(r"```text\n(.*?)```", text, re.DOTALL)


def test_the_manual_in_docs_is_up_to_date():
    assert MANUAL.read_text(encoding="utf-8") == manual(), (
        "docs/isa.md is not what isa/ declares; write it again with `make docs`")


@RECORDS
def test_a_table_gives_every_field_its_byte_type_default_and_meaning(record):
    rows = [line.split(" | ") for line in section(record).splitlines()
            if re.match(r"\| \d+ \|", line)]
    assert [(int(row[0].strip("| ")), row[2].strip("`")) for row in rows] == [
        (field.offset, field.name) for field in fields_of(record)]
    for row, field in zip(rows, fields_of(record), strict=True):
        assert row[1] == field.scalar.name + (f" × {field.count}" if field.axes else "")
        assert field.doc.replace("|", "\\|") in " | ".join(row[4:])


@pytest.mark.parametrize(("name", "flags"), [
    ("load", "starting: any of `gemm`, `alu`, `store` ([Engines]"),
    ("requantize", "starting: any of `load`, `gemm`, `store` ([Engines]"),
    ("sync", "starting: none ([Engines]"),
    ("gemm", "start: any of `depthwise`, `start`, `bias`, `out`, `first_uop`, `first_inner`, "),
    ("requantize", "write: any of `acc`, `wide`, `even`, `away`, `lookup`, `table_1`, `table_2`, "
     "`table_4` ([RequantizeFlags]"),
])
def test_only_flags_that_some_instruction_can_have_are_offered(name, flags):
    assert flags in explain(name)


@RECORDS
def test_a_diagram_shows_every_byte_where_it_is(record):
    diagram = blocks(section(record))[1].splitlines()
    width = diagram[1].index("+", diagram[1].index("+") + 1) - diagram[1].index("+")
    left = diagram[1].index("+")
    for field in fields_of(record):
        for number, axis in enumerate(field.axes or ("",)):
            row, column = divmod(field.offset + number * field.scalar.bytes, 4)
            label = f"| {field.name}.{axis}" if axis else f"| {field.name}"
            assert diagram[2 + 2 * row][left + column * width:].startswith(label)
    for byte in reserved_bytes(record):
        row, column = divmod(byte, 4)
        assert diagram[2 + 2 * row][left + column * width:].startswith("| 0 ")
    assert len({len(line) for line in diagram[1:]}) == 1


@pytest.mark.parametrize("kind", ISA, ids=lambda kind: kind.mnemonic())
def test_an_example_is_a_line_of_that_instruction(kind):
    line = blocks(section(kind))[0]
    segments = assemble(EXAMPLE).segments
    assert type(parse_instruction(line, segments=segments)) is kind


def test_the_example_program_uses_every_instruction_and_is_safe():
    program = assemble(EXAMPLE)
    assert {type(each) for each in decode(program.code)} == set(program.config.instructions)
    assert verify(program).findings == ()


def test_names_come_with_what_the_source_says_about_them():
    text = manual()
    assert "| 5 | `shr` | left / 2**n rounded to nearest, ties up; n is the low five bits" in text
    assert "| 4 | `acc8` | the same tiles, 8 bits a lane in DRAM, sign-extended while" in text
    assert "| 0x2 | `wide` | with ACC: keep 32 bits, no zero point, no clamp |" in text
    assert "| `SEGMENTS` | 8 | windows into DRAM that the control registers describe |" in text
    for member in (*AluOp, *Buffer):
        assert f"`{member.name.lower()}`" in text
    for register in register_map():
        assert f"| {register.offset:#05x} | `{register.name}` |" in text


def test_every_link_leads_to_a_heading():
    text = manual()
    headings = {line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines()
                if line.startswith("#")}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings


def test_one_instruction_is_explained_by_its_mnemonic():
    assert explain("gemm").startswith("### gemm\n\nRun a sequence of micro-ops")
    assert explain("uop").startswith("### uop\n\nOne tile product")
    with pytest.raises(IsaError, match=r"^there is no instruction 'gem'; did you mean gemm\?$"):
        explain("gem")


def test_the_summary_has_a_line_for_each_instruction():
    assert [name for name, _ in summary()] == [kind.mnemonic() for kind in ISA]
    assert ("store", "Copy a box of tiles from a scratchpad to DRAM") in summary()
