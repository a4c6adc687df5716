"""Instructions as hardware sees them: bit layouts and legality, both asked of the ISA."""

from types import SimpleNamespace

from amaranth.hdl import Const, Value, signed, unsigned
from amaranth.lib import data

from ..isa.instructions import ISA, Instruction, Opcode
from ..isa.record import Record, fields_of, reserved_bytes

OPCODE_BITS = 8
POSITION_BITS = 32      # instruction numbers, for fault reports and traces


def layout(record: type[Record]) -> data.Layout:
    """A record's word. Vectors are arrays, indexed in the order of their axes."""
    members = {}
    for field in fields_of(record):
        shape = (signed if field.scalar.signed else unsigned)(field.scalar.bits)
        if field.axes:
            shape = data.ArrayLayout(shape, field.count)
        members[field.name] = data.Field(shape, 8 * field.offset)
    if record.lead:
        members["opcode"] = data.Field(unsigned(8 * record.lead), 0)
    return data.FlexibleLayout(8 * record.size, members)


COMMAND = data.StructLayout({"word": 8 * Instruction.size, "position": POSITION_BITS})


def illegal(instruction: type[Instruction], word: Value) -> Value:
    """Whether a word with this opcode breaks a rule of the ISA: the same rules as in software."""
    view = data.View(layout(instruction), word)
    fields = SimpleNamespace()
    bad = Const(0, 1)
    for offset in reserved_bytes(instruction):
        bad |= word[8 * offset:8 * offset + 8] != 0
    for field in fields_of(instruction):
        value = view[field.name]
        setattr(fields, field.name, tuple(value) if field.axes else value)
        if field.kind is not None:
            bad |= _unnamed(field, value)
    for broken, _ in instruction.rules(fields):
        bad |= broken
    return bad


def _unnamed(field, value: Value) -> Value:
    """Whether a value has no name in the field's enum, or a bit no name in its flags."""
    known = [int(each) for each in field.allowed or field.kind]
    if field.is_flags:
        return (value & ~sum(known) & (1 << field.scalar.bits) - 1) != 0
    return ~value.matches(*known)


def opcode_of(word: Value) -> Value:
    return word[:OPCODE_BITS]


def by_opcode() -> dict[Opcode, type[Instruction]]:
    return {instruction.opcode: instruction for instruction in ISA}
