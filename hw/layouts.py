"""Fields and legality of instructions as logic, derived from the ISA."""

from types import SimpleNamespace

from amaranth.hdl import Value
from amaranth.lib import data

from ..isa.config import Config
from ..isa.instructions import ISA, POSITION_BITS, Buffer, Engine, Instruction
from ..isa.record import Field, Record, fields_of, reserved_bytes

OPCODE_BITS = 8

# From FETCH to an engine: an instruction and its number in the program.
COMMAND = data.StructLayout({"word": 8 * Instruction.size, "position": POSITION_BITS})


def unpack(record: type[Record], word: Value) -> SimpleNamespace:
    """The fields of a word by name; vectors are tuples in the order of their axes."""
    fields = SimpleNamespace()
    for field in fields_of(record):
        parts = tuple(_element(field, word, number) for number in range(field.count))
        setattr(fields, field.name, parts if field.axes else parts[0])
    return fields


def widths_of(record: type[Record]) -> dict[str, int]:
    """Bits of each field by name; of a vector, the bits of one element."""
    return {field.name: field.scalar.bits for field in fields_of(record)}


def buffers_of(instruction: type[Instruction]) -> tuple[Buffer, ...]:
    """The buffers that an instruction with a field `buffer` may name."""
    field, = (each for each in fields_of(instruction) if each.name == "buffer")
    return field.allowed or tuple(field.kind)


def instructions_of(engine: Engine) -> tuple[type[Instruction], ...]:
    """The instructions that FETCH dispatches to an engine."""
    return tuple(each for each in ISA if each.engine == engine)


def _element(field: Field, word: Value, number: int) -> Value:
    start = 8 * field.offset + number * field.scalar.bits
    part = word[start:start + field.scalar.bits]
    return part.as_signed() if field.scalar.signed else part


def breaches(instruction: type[Instruction], word: Value, config: Config) -> list[Value]:
    """For each rule of the ISA, the same as in software, whether a word with this opcode breaks
    it."""
    fields = unpack(instruction, word)
    return [*(word[8 * offset:8 * offset + 8] != 0 for offset in reserved_bytes(instruction)),
            *(_is_unnamed(field, getattr(fields, field.name)) for field in fields_of(instruction)
              if field.kind is not None),
            *(Value.cast(broken).any() for broken, _ in (
                *instruction.rules(fields), *instruction.lacks(fields, config)))]


def _is_unnamed(field: Field, value: Value) -> Value:
    """Whether a value is not a member of the field's enum, or a bit not one of its flags."""
    known = [int(each) for each in field.allowed or field.kind]
    if field.is_flags:
        return value & ~sum(known) & (1 << field.scalar.bits) - 1 != 0
    return ~value.matches(*known)


def opcode_of(word: Value) -> Value:
    return word[:OPCODE_BITS]
