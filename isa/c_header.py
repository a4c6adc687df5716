"""The C header: the same declarations as structs, enums and constants, for drivers on boards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntFlag

from .assembly.operands import MICRO_OP
from .declarations import Names, constants, doc_of, enums_of, members_of
from .faults import Fault
from .instructions import ISA, ISA_VERSION, Instruction, MicroOp
from .record import Field, Record, fields_of, reserved_bytes
from .registers import IDENTITY, Control, Status, register_map

PREFIX = "microtron"
# Words that C or C++ keeps for itself and a field might want.
KEYWORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl const
    constexpr continue default delete do double else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new not nullptr operator or private protected
    public register restrict return short signed sizeof static struct switch template this throw
    true try typedef typeid typename union unsigned using virtual void volatile while xor
"""

HEAD = f"""\
/* The Microtron instruction set, version {ISA_VERSION}. Generated: `microtron isa --header`.
 *
 * Structs are as they lie in memory, little-endian. MICROTRON_..._DEFAULT initializes one with
 * its opcode and defaults; reserved bytes must stay zero.
 */
#ifndef MICROTRON_ISA_H
#define MICROTRON_ISA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these structs are little-endian"
#endif

#ifdef __cplusplus
#define MICROTRON_ASSERT static_assert
#else
#define MICROTRON_ASSERT _Static_assert
#endif
"""


def c_header(instructions: Sequence[type[Instruction]] = ISA) -> str:
    """The header as text: C11, and valid C++11 as well."""
    blocks = [HEAD.rstrip(), _limits(), _opcodes(instructions)]
    blocks += [_enum(kind) for kind in (*enums_of(instructions), Control, Status, Fault)]
    blocks += [_struct(MicroOp), *(_struct(kind) for kind in instructions)]
    blocks += [_union(instructions), _registers(), "#endif"]
    return "\n\n".join(blocks) + "\n"


def _limits() -> str:
    return "\n".join(_define(f"{PREFIX.upper()}_{name}", str(value), doc)
                     for name, value, doc in constants())


def _define(name: str, value: str, doc: str) -> str:
    return f"#define {name} {value}{_comment(doc)}"


def _comment(doc: str) -> str:
    return f"  {_block_comment(doc)}" if doc else ""


def _block_comment(doc: str) -> str:
    lines = doc.replace("*/", "* /").split("\n")
    return "/* " + "\n".join([lines[0], *(f" * {line}".rstrip() for line in lines[1:])]) + " */"


def _opcodes(instructions: Sequence[type[Instruction]]) -> str:
    lines = [f"    {_opcode(kind)} = {int(kind.opcode)}," for kind in instructions]
    return "\n".join([f"enum {PREFIX}_opcode {{", *lines, "};"])


def _opcode(kind: type[Instruction]) -> str:
    return f"{PREFIX}_opcode_{kind.mnemonic()}".upper()


def _enum(kind: Names) -> str:
    name = f"{PREFIX}_{_snake(kind.__name__)}"
    lines = [_block_comment(doc_of(kind)), f"enum {name} {{"]
    for member, value, doc in members_of(kind):
        number = f"{value:#x}" if issubclass(kind, IntFlag) else str(value)
        lines.append(f"    {name.upper()}_{member} = {number},{_comment(doc)}")
    return "\n".join([*lines, "};"])


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _struct_name(record: type[Record]) -> str:
    return f"{PREFIX}_{MICRO_OP if record is MicroOp else record.mnemonic()}"


def _struct(record: type[Record]) -> str:
    name = _struct_name(record)
    members = list(_members(record))
    lines = [_block_comment(doc_of(record)), f"struct {name} {{"]
    lines += [f"    {declaration};{_comment(doc)}" for _, declaration, _, doc in members]
    lines += ["};", f'MICROTRON_ASSERT(sizeof(struct {name}) == {record.size}, "size");']
    lines += [f'MICROTRON_ASSERT(offsetof(struct {name}, {c_name(field.name)}) == {field.offset}, '
              f'"{field.name}");' for field in fields_of(record)]
    initial = ", ".join(initial for _, _, initial, _ in members)
    lines.append(f"#define {name.upper()}_DEFAULT {{ {initial} }}")
    return "\n".join(lines)


def _members(record: type[Record]) -> Iterator[tuple[int, str, str, str]]:
    """Offset, declaration, initial value and comment of every member, in order."""
    members = [_member(field) for field in fields_of(record)]
    if issubclass(record, Instruction):
        members.append((0, f"uint{8 * record.lead}_t opcode", _opcode(record), ""))
    for start, count in _runs(reserved_bytes(record)):
        members.append((start, f"uint8_t reserved_{start}[{count}]", "{ 0 }", "must be zero"))
    yield from sorted(members)


def _member(field: Field) -> tuple[int, str, str, str]:
    scalar = field.scalar
    declaration = f"{'' if scalar.signed else 'u'}int{scalar.bits}_t {c_name(field.name)}"
    if not field.axes:
        initial = 0 if field.required else int(field.default)
        return field.offset, declaration, str(initial), field.doc
    initials = [0] * field.count if field.required else [int(each) for each in field.default]
    return (field.offset, f"{declaration}[{field.count}]",
            f"{{ {', '.join(str(each) for each in initials)} }}",
            f"{field.doc}: {', '.join(field.axes)}")


def _runs(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as first and count."""
    for position, offset in enumerate(offsets):
        if position == 0 or offsets[position - 1] != offset - 1:
            count = 1
            while offset + count in offsets:
                count += 1
            yield offset, count


def c_name(name: str) -> str:
    """A field's name, or with an underscore where C or C++ keeps the word for itself."""
    return f"{name}_" if name in KEYWORDS.split() else name


def _union(instructions: Sequence[type[Instruction]]) -> str:
    lines = ["/* Any instruction; `opcode` says which. */", f"union {PREFIX}_instruction {{",
             f"    uint8_t opcode;\n    uint8_t bytes[{Instruction.size}];"]
    lines += [f"    struct {_struct_name(kind)} {c_name(kind.mnemonic())};"
              for kind in instructions]
    return "\n".join([*lines, "};"])


def _registers() -> str:
    """Offsets of the control registers."""
    lines = [f"#define {PREFIX.upper()}_IDENTITY {IDENTITY:#x}"]
    lines += [_define(f"{PREFIX}_register_{each.name}".upper(), f"{each.offset:#05x}", each.doc)
              for each in register_map()]
    return "\n".join(lines)
