"""The disassembler: program to text. `assemble` reads every text back to the same program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ...base.errors import IsaError
from ...base.keywords import check_keywords
from ..config import PRESETS, Config
from ..instructions import ISA, Instruction
from ..program import Program, Segment, Tensor, check_program
from ..record import reserved_bytes
from ..stream import Stream, as_bytes, positions_of
from .lexer import quote_name, quote_string
from .operands import parts_of
from .segment_listing import list_data

INDENT = "    "
WIDTH_LIMIT = 96            # a longer cell does not push the other lines apart


def format_instruction(instruction: Instruction, segments: Sequence[Segment] = ()) -> str:
    """One instruction as a line of assembly."""
    return " ".join(part for part in parts_of(instruction, segments) if part)


@check_keywords
def disassemble(program: Program, *,
                instructions: Sequence[type[Instruction]] = ISA) -> str:
    """Disassemble a Program into text that assembles to the same one. Words that are not
    instructions appear as `.word` with their bytes."""
    check_program(program)
    decoded = _decode(program.code, instructions)
    blocks = [[_config(program.config)],
              [f".provenance {quote_name(key)} {quote_string(value)}"
               for key, value in program.provenance.items()],
              _align_columns([_segment(each) for each in program.segments]),
              _align_columns([_tensor(each) for each in program.tensors])]
    blocks += list_data(program.segments, [each for each in decoded if not isinstance(each, str)])
    blocks += _code(program, decoded)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _config(config: Config) -> str:
    """The preset with the fewest differences, and these."""
    fields = config.to_dict().items()
    differences = {name: [f"{field}={value}" for field, value in fields
                          if preset.to_dict()[field] != value]
                   for name, preset in PRESETS.items()}
    nearest = min(differences, key=lambda name: len(differences[name]))
    words = " ".join([".config", nearest, *differences[nearest]])
    return f"{words}    ; {config.batch}×{config.block_in}×{config.block_out}"


def _segment(segment: Segment) -> list[str]:
    return [f".segment {segment.name}", f"size={segment.size:#x}",
            f"access={segment.access.value}"]


def _tensor(tensor: Tensor) -> list[str]:
    shape = ",".join(str(extent) for extent in tensor.shape)
    return [f".tensor {quote_name(tensor.name)}", f"segment={tensor.segment}",
            f"offset={tensor.offset:#x}", f"shape={shape}" if shape else "",
            f"dtype={tensor.dtype}"]


def _align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows]


def _decode(code: Stream, instructions: Sequence[type[Instruction]]) -> list[Instruction | str]:
    """Each word as an instruction, or the reason why it is not one."""
    decoded: list[Instruction | str] = [f"opcode {opcode} belongs to no instruction"
                                        for opcode in code["opcode"].tolist()]
    raw = as_bytes(code)
    for kind in instructions:
        positions, words = positions_of(code, kind)
        reserved = np.array(reserved_bytes(kind), np.intp)
        bad = np.union1d(kind.find_invalid(words), np.flatnonzero(raw[positions][:,
                                                                                 reserved].any(1)))
        good = ~np.isin(np.arange(len(words)), bad)
        for position, record in zip(positions[good], kind.of_all(words[good]), strict=True):
            decoded[position] = record
        for position, word in zip(positions[~good], words[~good], strict=True):
            decoded[position] = _reason(kind, word)
    return decoded


def _reason(kind: type[Instruction], word: np.void) -> str:
    try:
        kind.of(word)
    except IsaError as error:
        return str(error)
    return f"{kind.mnemonic()}: a reserved byte is not zero"


def _code(program: Program, decoded: Sequence[Instruction | str]) -> Iterator[list[str]]:
    """The listing in blocks, each opened by the labels that stand at its first instruction."""
    labels: dict[int, list[str]] = {}
    for name, position in program.labels.items():
        labels.setdefault(position, []).append(f"{quote_name(name)}:")
    starts = sorted({0, *labels})
    raw = as_bytes(program.code)
    yield [".code"]
    for start, stop in itertools.pairwise([*starts, len(decoded)]):
        yield labels.get(start, []) + _format_block(decoded[start:stop], raw[start:], start,
                                                    program.segments)


def _format_block(decoded: Sequence[Instruction | str], raw: npt.NDArray[np.uint8], first: int,
                  segments: Sequence[Segment]) -> list[str]:
    """The lines of a block, aligned in columns."""
    rows = {position: parts_of(each, segments) for position, each in enumerate(decoded)
            if not isinstance(each, str)}
    widths = [max(len(cell) if len(cell) <= WIDTH_LIMIT else 0 for cell in column)
              for column in zip(*rows.values(), strict=True)]
    lines = []
    for position, each in enumerate(decoded):
        if isinstance(each, str):
            lines.append(f"{INDENT}.word {raw[position].tobytes().hex(' ', -4)}  "
                         f"; {first + position}: {each}")
            continue
        cells = [cell.ljust(width) for cell, width in zip(rows[position], widths, strict=True)
                 if cell or width]
        lines.append(f"{INDENT}{' '.join(cells)}  ; {first + position}")
    return lines
