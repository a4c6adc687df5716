"""The data of segments as text: micro-ops where `load.uop` reads them, hexadecimal elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..instructions import Buffer, Instruction, Load, MicroOp
from ..program import Segment
from ..stream import decode_micro_ops, encode_micro_ops
from .operands import MICRO_OP, operands

INDENT = "    "
ROW_BYTES = 32
GROUP_BYTES = 4             # hexadecimal digits stand in groups of this many bytes
RUN_BYTES = 32              # equal bytes worth writing as one word: 00*4096

Data = npt.NDArray[np.uint8]


def list_data(segments: Sequence[Segment],
              instructions: Sequence[Instruction]) -> Iterator[list[str]]:
    """Blocks of lines that `.uops` and `.bytes` open, for every segment that has data."""
    loads = {each for each in instructions if isinstance(each, Load) and each.buffer == Buffer.UOP}
    for index, segment in enumerate(segments):
        if segment.data is None:
            continue
        if not len(segment.data):
            yield [f".bytes {segment.name}"]
        content = np.ascontiguousarray(segment.data)
        boxes = [load for load in loads if load.segment == index]
        for start, stop, is_uops in _ranges(content, boxes):
            place = f"{segment.name}+{start:#x}" if start else segment.name
            data = content[start:stop]
            if is_uops:
                yield [f".uops {place}", *_micro_op_lines(data, start)]
            else:
                yield [f".bytes {place}", *_byte_lines(data, start)]


def _ranges(data: Data, loads: Sequence[Load]) -> Iterator[tuple[int, int, bool]]:
    """The data cut into stretches that are micro-ops and stretches that are not."""
    slots = np.zeros(len(data) // MicroOp.size + 1, np.bool_)      # and one that ends the last
    for load in loads:
        slots[_slots_of(load, len(slots) - 1)] = True
    edges = (np.flatnonzero(np.diff(slots, prepend=False)) * MicroOp.size).tolist()
    cuts = [0, *edges, len(data)]
    for position, (start, stop) in enumerate(itertools.pairwise(cuts)):
        if start < stop:
            yield start, stop, position % 2 == 1 and _are_micro_ops(data[start:stop])


def _slots_of(load: Load, count: int) -> npt.NDArray[np.intp]:
    """Which 8-byte slots a load of micro-ops reads, for a load that looks like one."""
    planes, rows, columns = load.shape
    none = np.empty(0, np.intp)
    if not 0 < planes * rows * columns <= count:
        return none                     # more than there are: not a hint worth following
    starts = (load.offset + np.arange(planes)[:, None] * load.stride[0]
              + np.arange(rows) * load.stride[1]).reshape(-1, 1)
    if (starts % MicroOp.size).any():
        return none
    slots: npt.NDArray[np.intp] = (starts // MicroOp.size + np.arange(columns)).reshape(-1)
    return slots[(slots >= 0) & (slots < count)]


def _are_micro_ops(data: Data) -> bool:
    words = data.view(MicroOp.dtype())
    return not len(MicroOp.find_invalid(words)) and bool(
        np.array_equal(encode_micro_ops(decode_micro_ops(words)).view(np.uint8), data))


def _micro_op_lines(data: Data, start: int) -> Iterator[str]:
    """A table: the fields that any of the micro-ops sets, in columns."""
    micro_ops = decode_micro_ops(data.view(MicroOp.dtype()))
    columns = []
    for name, operand in operands(MicroOp).items():
        values = [getattr(each, name) for each in micro_ops]
        if any(value != operand.field.default for value in values):
            cells = [f"{name}={operand.format(value)}" for value in values]
            width = max(len(cell) for cell in cells)
            columns.append([cell.ljust(width) for cell in cells])
    for position in range(len(micro_ops)):
        words = " ".join([MICRO_OP, *(column[position] for column in columns)])
        yield f"{INDENT}{words}  ; {start + position * MicroOp.size:#x}"


def _byte_lines(data: Data, start: int) -> Iterator[str]:
    """Rows of hexadecimal bytes, and long runs of one byte as a word like 00*4096."""
    rows = list(_byte_rows(data))
    width = max(len(row) for _, row in rows)
    for position, row in rows:
        yield f"{INDENT}{row.ljust(width)}  ; {start + position:#x}"


def _byte_rows(data: Data) -> Iterator[tuple[int, str]]:
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(data)) + 1, [len(data)]])
    position = 0
    for run in np.flatnonzero(np.diff(bounds) >= RUN_BYTES):
        start, stop = int(bounds[run]), int(bounds[run + 1])
        yield from _plain_rows(data, position, start)
        yield start, f"{data[start]:02x}*{stop - start}"
        position = stop
    yield from _plain_rows(data, position, len(data))


def _plain_rows(data: Data, start: int, stop: int) -> Iterator[tuple[int, str]]:
    for position in range(start, stop, ROW_BYTES):
        row = data[position:min(position + ROW_BYTES, stop)]
        yield position, row.tobytes().hex(" ", -GROUP_BYTES)
