"""The instruction set as a table, from which the page disassembles raw instruction words."""

from __future__ import annotations

from ..base.checked_values import PlainData
from ..isa.assembly.operands import EMPTY_SET, SEGMENT, Operand, operands
from ..isa.instructions import ISA, Engine


def isa_table() -> PlainData:
    """Every instruction with its fields: where they lie, and how assembly writes them."""
    return {
        "engines": [each.name.lower() for each in Engine], "empty": EMPTY_SET, "segment": SEGMENT,
        "instructions": {int(kind.opcode): {
            "mnemonic": kind.mnemonic(), "engine": -1 if kind.engine is None else int(kind.engine),
            "fields": [_field(each) for each in operands(kind).values()],
        } for kind in ISA}}


def _field(operand: Operand) -> PlainData:
    field = operand.field
    default = None if field.required else field.default
    return {
        "name": field.name, "offset": field.offset, "bytes": field.scalar.bytes,
        "signed": field.scalar.signed, "count": field.count,
        "default": [int(each) for each in default] if field.axes and default is not None
        else None if default is None else [int(default)],
        "suffix": field.suffix, "flags": field.is_flags, "hex": operand.hexadecimal,
        "names": [[value, name] for value, name in operand.names.items()]}
