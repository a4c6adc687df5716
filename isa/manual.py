"""The manual of the instruction set, docs/isa.md: prose where needed, the rest derived."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntFlag

import numpy as np

from ..base.checked_values import quote
from ..base.errors import IsaError
from ..base.near_misses import hint
from .assembly.operands import MICRO_OP, SEGMENT, Operand, operands, parts_of
from .config import base
from .declarations import Names, constants, doc_of, enums_of, members_of
from .faults import Fault
from .instructions import (
    INSTRUCTION_BYTES,
    ISA,
    ISA_VERSION,
    SEGMENT_ALIGNMENT,
    SEGMENTS,
    TABLES,
    WORD_ENTRIES,
    Buffer,
    Engine,
    Instruction,
    MicroOp,
)
from .manual_prose import ASSEMBLY, EXAMPLE, OPENING, TABLE_EXAMPLE, WINDOW_EXAMPLE
from .record import Record, fields_of, reserved_bytes
from .registers import Control, Status, register_map

Instructions = Sequence[type[Instruction]]

ROW_BYTES = 4               # of a diagram


def manual(instructions: Instructions = ISA) -> str:
    """The whole manual as Markdown."""
    parts = [
        OPENING.format(version=ISA_VERSION, bytes=INSTRUCTION_BYTES, preset="base",
                       engines=_engines(instructions), buffers=_buffers(), segments=SEGMENTS,
                       alignment=SEGMENT_ALIGNMENT, window=WINDOW_EXAMPLE, table=TABLE_EXAMPLE,
                       tables=TABLES, entries=WORD_ENTRIES),
        ASSEMBLY.format(bytes=INSTRUCTION_BYTES, example=_code(EXAMPLE.splitlines())),
        "## Instructions", *(section(kind) for kind in instructions),
        "## Micro-ops", section(MicroOp),
        "## Names", *(_enum(kind) for kind in enums_of(instructions)),
        "## Limits", _table(("name", "value", "meaning"), (
            (f"`{name}`", str(value), doc) for name, value, doc in constants())),
        "## Control registers", _registers(), *(_enum(kind) for kind in (Control, Status, Fault))]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def explain(name: str, instructions: Instructions = ISA) -> str:
    """The section about one instruction, by its mnemonic."""
    known: dict[str, type[Record]] = {_name(kind): kind for kind in (*instructions, MicroOp)}
    if name not in known:
        raise IsaError(f"there is no instruction {quote(name)}{hint(name, known)}")
    return section(known[name])


def summary(instructions: Instructions = ISA) -> list[tuple[str, str]]:
    """Every instruction in a line: its mnemonic and what it does."""
    return [(kind.mnemonic(), _first_sentence(doc_of(kind))) for kind in instructions]


def _first_sentence(doc: str) -> str:
    paragraph = " ".join(doc.split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".:")


def _name(record: type[Record]) -> str:
    return MICRO_OP if record is MicroOp else record.mnemonic()


def section(record: type[Record]) -> str:
    """What there is to know about an instruction or micro-op."""
    parts = [f"### {_name(record)}", doc_of(record)]
    if issubclass(record, Instruction):
        engine = "FETCH" if record.engine is None else record.engine.name
        parts.append(f"Opcode {int(record.opcode)}, executed by {engine}.")
    parts += [_code([_example(record)]), _code(_diagram(record)), _fields(record)]
    return "\n\n".join(parts) + "\n"


def _example(record: type[Record]) -> str:
    """Its longest line in the examples; for one that is not there, its defaults."""
    lines = [" ".join(line.partition(";")[0].split())
             for line in (*EXAMPLE.splitlines(), WINDOW_EXAMPLE, *TABLE_EXAMPLE.splitlines())]
    lines = [line for line in lines if re.match(rf"{_name(record)}\b", line)]
    if lines:
        return max(lines, key=len)
    values = {field.name: (0,) * field.count if field.axes else 0
              for field in fields_of(record) if field.required}
    return " ".join(part for part in parts_of(record(**values)) if part)


def _fields(record: type[Record]) -> str:
    rows = []
    for name, operand in operands(record).items():
        field = operand.field
        count = f" × {field.count}" if field.axes else ""
        default = "" if field.required else f"`{operand.format(field.default)}`"
        rows.append((str(field.offset), f"{field.scalar.name}{count}", f"`{name}`", default,
                     _meaning(record, operand)))
    return _table(("byte", "type", "field", "default", "meaning"), rows)


def _meaning(record: type[Record], operand: Operand) -> str:
    field = operand.field
    doc = field.doc + (f" ({', '.join(field.axes)})" if field.axes else "")
    if field.kind is not None:
        possible = _legal_flags(record, operand) if field.is_flags else list(operand.values)
        which = "any of" if field.is_flags else "one of"
        names = f"{which} {', '.join(f'`{name}`' for name in possible)}" if possible else "none"
        doc += f": {names} ([{field.kind.__name__}](#{_anchor(field.kind)}))"
    elif field.name == SEGMENT:
        doc += f": 0 to {SEGMENTS - 1}, or its name"
    return doc + ("; written behind the mnemonic" if field.suffix else "")


def _legal_flags(record: type[Record], operand: Operand) -> list[str]:
    """The flags that occur in a valid record whose other fields have their defaults.

    The rules of a record are code, so the way to know is to try all sets.
    """
    sets = range(1 + sum(operand.values.values()))
    words = np.zeros(len(sets), record.dtype())
    for field in fields_of(record):
        words[field.name] = 0 if field.required else field.default
    words[operand.field.name] = np.array(sets).reshape(-1, *[1] * bool(operand.field.axes))
    valid = np.bitwise_or.reduce(np.delete(np.array(sets), record.find_invalid(words)))
    return [name for name, bit in operand.values.items() if valid & bit]


def _anchor(kind: Names) -> str:
    return kind.__name__.lower()


def _diagram(record: type[Record]) -> Iterator[str]:
    """The word as rows of four bytes."""
    cells = sorted(_cells(record))
    width = max(-(-(len(label) + 3) // size) for _, size, label in cells)
    margin = len(str(record.size))
    rule = " " * margin + " " + ("+" + "-" * (width - 1)) * ROW_BYTES + "+"
    yield " " * margin + " " + "".join(f"{byte:^{width}}" for byte in range(ROW_BYTES)).rstrip()
    for row in range(0, record.size, ROW_BYTES):
        text = "".join(f"| {label}".ljust(size * width) for start, size, label in cells
                       if row <= start < row + ROW_BYTES)
        yield rule
        yield f"{row:{margin}} {text}|"
    yield rule


def _cells(record: type[Record]) -> Iterator[tuple[int, int, str]]:
    """Start, size and label of each element, none across the end of a row."""
    if record.lead:
        yield 0, record.lead, "opcode"
    for field in fields_of(record):
        for number, label in enumerate(field.axes or ("",)):
            start = field.offset + number * field.scalar.bytes
            yield start, field.scalar.bytes, f"{field.name}{'.' * bool(label)}{label}"
    for start in reserved_bytes(record):
        yield start, 1, "0"


def _enum(kind: Names) -> str:
    digits = "#x" if issubclass(kind, IntFlag) else "d"
    table = _table(("value", "name", "meaning"), (
        (f"{value:{digits}}", f"`{name.lower()}`", doc) for name, value, doc in members_of(kind)))
    return f"### {kind.__name__}\n\n{doc_of(kind)}\n\n{table}"


def _engines(instructions: Instructions) -> str:
    """Which engine executes what."""
    engines: list[Engine | None] = [None, *Engine]
    return _table(("engine", "instructions"), (
        ("FETCH" if engine is None else engine.name,
         ", ".join(f"[{kind.mnemonic()}](#{kind.mnemonic()})" for kind in instructions
                   if kind.engine == engine)) for engine in engines))


def _buffers() -> str:
    rows = []
    for name, value, doc in members_of(Buffer):
        buffer = Buffer(value)
        rows.append((f"`{name.lower()}`", doc, str(base.tile_bytes(buffer)),
                     str(base.tiles(buffer))))
    return _table(("scratchpad", "holds", "bytes of a tile in DRAM", "tiles"), rows)


def _registers() -> str:
    rows = ((f"{each.offset:#05x}", f"`{each.name}`", "read, write" if each.writable else "read",
             each.doc) for each in register_map())
    return _table(("offset", "register", "access", "meaning"), rows)


def _code(lines: Iterable[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
                     for line in lines)
