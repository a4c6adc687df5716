"""The C header: a compiler lays every instruction out as Python encodes it."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from microtron.base.errors import IsaError
from microtron.isa.c_header import c_header, c_name
from microtron.isa.instructions import ISA, MicroOp, Opcode
from microtron.isa.record import fields_of
from microtron.isa.registers import offset_of

ROUNDS = 40
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wpadded")  # nothing is left to padding

MAIN = """
#include <stdio.h>
#include <string.h>
#include "isa.h"

static void show(const void *record, size_t size) {
    const unsigned char *bytes = (const unsigned char *)record;
    for (size_t i = 0; i < size; i++) printf("%02x", (unsigned)bytes[i]);
    printf("\\n");
}

int main(void) {
"""


def compiled(tmp_path, source, *command):
    """The output of a C or C++ program that includes the header."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / "main.c").write_text(source, encoding="utf-8")
    subprocess.run([*command, *WARNINGS, "-o", "main", "main.c"], cwd=tmp_path, check=True)
    return subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True,
                          text=True).stdout.split()


def write(tmp_path, instructions=ISA):
    (tmp_path / "isa.h").write_text(c_header(instructions), encoding="utf-8")


def struct_of(kind):
    return "microtron_" + ("uop" if kind is MicroOp else kind.mnemonic())


def random_record(kind, rng):
    """A record with a random value in every field that takes one beside those before it."""
    values = {}
    for field in fields_of(kind):
        low, high = field.scalar.low, field.scalar.high
        drawn = tuple(rng.choice((low, high, 1, rng.randint(low, high))) for _ in field.axes or "x")
        attempt = values | {field.name: drawn if field.axes else drawn[0]}
        try:
            kind(**attempt)
        except IsaError:
            continue
        values = attempt
    return kind(**values)


def fill(record):
    """Statements that set every member of a struct and print it."""
    name = struct_of(type(record))
    lines = [f"{{ struct {name} record = {name.upper()}_DEFAULT;"]
    for field in fields_of(type(record)):
        value = getattr(record, field.name)
        for number, each in enumerate(value if field.axes else (value,)):
            index = f"[{number}]" if field.axes else ""
            cast = f"{'' if field.scalar.signed else 'u'}int{field.scalar.bits}_t"
            lines.append(f"record.{c_name(field.name)}{index} = ({cast}){int(each)}LL;")
    return "\n".join([*lines, "show(&record, sizeof record); }"])


@pytest.mark.parametrize("command", [("gcc", "-std=c11"), ("g++", "-std=c++11", "-x", "c++")],
                         ids=lambda command: command[0])
def test_structs_filled_in_c_are_the_bytes_python_encodes(tmp_path, command):
    rng = random.Random(1)
    records = [random_record(kind, rng) for kind in (MicroOp, *ISA) for _ in range(ROUNDS)]
    write(tmp_path)
    source = MAIN + "\n".join(fill(record) for record in records) + "\nreturn 0; }\n"
    assert compiled(tmp_path, source, *command) == [record.encode().hex() for record in records]


def test_defaults_in_c_are_those_of_python(tmp_path):
    write(tmp_path)
    kinds = (MicroOp, *ISA)
    source = MAIN + "\n".join(
        f"{{ static const struct {struct_of(kind)} record = {struct_of(kind).upper()}_DEFAULT;"
        f" show(&record, sizeof record); }}" for kind in kinds) + "\nreturn 0; }\n"
    assert compiled(tmp_path, source, "gcc", "-std=c11") == [kind().encode().hex()
                                                             for kind in kinds]


def test_numbers_in_c_are_those_of_python(tmp_path):
    write(tmp_path)
    expected = {
        "MICROTRON_ISA_VERSION": 1, "MICROTRON_INSTRUCTION_BYTES": 32, "MICROTRON_SEGMENTS": 8,
        "sizeof(union microtron_instruction)": 32,
        "MICROTRON_ENGINES_STORE": 8, "MICROTRON_BUFFER_OUT": 5, "MICROTRON_ALU_OP_MOVE": 7,
        "MICROTRON_GEMM_FLAGS_FIRST_OUTER": 128, "MICROTRON_REQUANTIZE_FLAGS_AWAY": 8,
        "MICROTRON_SYNC_ACTION_END": 1, "MICROTRON_FAULT_TOKEN_OVERFLOW": 7,
        "MICROTRON_STATUS_FAILED": 4, "MICROTRON_REGISTER_CONTROL": offset_of("control"),
        **{f"MICROTRON_OPCODE_{opcode.name}": int(opcode) for opcode in Opcode}}
    source = MAIN + "\n".join(f'printf("%ld\\n", (long){name});' for name in expected)
    source += "\n(void)show; return 0; }\n"
    assert compiled(tmp_path, source, "gcc", "-std=c11") == [
        str(value) for value in expected.values()]


def test_a_field_with_a_word_of_c_gets_an_underscore():
    assert c_name("register") == "register_"
    assert c_name("offset") == "offset"
