"""Decodes a whole program: the rows of its instructions, and the micro-ops that it loads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...base.source_digest import source_digest
from ...isa.config import Config
from ...isa.instructions import INSTRUCTION_BYTES, TABLE_WORDS, Buffer, Engine
from ...isa.program import Access, Segment
from ...isa.stream import Stream, as_bytes
from ..llvm.entry import Entry, bind_array
from ..llvm.values import Array, Kind, Record, Value
from ..twins.decode import AT, ROW, Column, find_legal
from ..twins.decode import Rows as Decoded
from ..twins.fill_rows import BUFFER_FACTS, FACTS, fill_rows, list_micro_ops

NUMBERS = np.dtype(np.int64)
BYTE_VALUES = 256           # numbers of buffers and segments


def _numbers(*lengths: int | None) -> Kind:
    return Array(NUMBERS, lengths)


CODE = Array(np.dtype(np.uint8), (None, INSTRUCTION_BYTES))
ROWS = Array(ROW, (None,))
BUFFERS, SETTINGS = _numbers(BUFFER_FACTS, BYTE_VALUES), Record(FACTS)
_fill = Entry(fill_rows, {
    "code": CODE, "legal": Array(np.dtype(np.uint8), (None,)), "rows": ROWS,
    "words": _numbers(None, len(AT)), "buffers": BUFFERS, "windows": _numbers(3, BYTE_VALUES),
    "facts": SETTINGS, "positions": _numbers(len(Engine), None),
    "lengths": _numbers(len(Engine))}, name="decoder of programs", sources=source_digest(__name__))
_list = Entry(list_micro_ops, {
    "code": CODE, "rows": ROWS, "span": _numbers(None, 2), "tile": _numbers(None),
    "segment": _numbers(None), "place": _numbers(None)}, name="decoder of micro-ops",
    sources=source_digest(__name__))


def decode_rows(code: Stream, config: Config, segments: Sequence[Segment], bases: Sequence[int], *,
                is_proven: bool = False) -> tuple[Decoded, Column]:
    """The rows of a program whose segments are at the addresses `bases`, and the positions of each
    engine's instructions, in order. With `is_proven`, all words are known to be instructions that
    the accelerator has."""
    count = len(code)
    legal = np.ones(count, np.uint8) if is_proven else find_legal(code, config)
    rows, windows = np.zeros(count, ROW), np.zeros((3, BYTE_VALUES), np.int64)
    windows[0, :len(segments)] = bases
    windows[1, :len(segments)] = [each.size for each in segments]
    windows[2, :len(segments)] = [each.size if each.access is Access.WRITE else 0
                                  for each in segments]
    positions = np.zeros((len(Engine), count + 1), np.int64)
    lengths = np.zeros(len(Engine), np.int64)
    buffers, facts = _facts(config)
    _fill(as_bytes(code), legal, rows, rows.view(np.int64).reshape(count, len(AT)), buffers,
          windows, facts, positions, lengths)
    return rows, np.ascontiguousarray(positions[:, :lengths.max() + 1])


@lru_cache(maxsize=64)
def _facts(config: Config) -> tuple[Value, Value]:
    """What is known of each buffer and of the accelerator. Numbers without a buffer have tiles of
    no bytes."""
    buffers = np.zeros((BUFFER_FACTS, BYTE_VALUES), np.int64)
    for buffer in Buffer:
        size = config.tile_bytes(buffer)
        buffers[:, buffer] = (size, config.tiles(buffer), max(1, size // config.bus_bytes),
                              max(1, config.bus_bytes // size),
                              buffer in (Buffer.ACC, Buffer.ACC8))
    facts = np.array([(config.tiles(Buffer.ACC), config.tiles(Buffer.OUT), config.acc_bank_tiles,
                       config.has_windows, config.tables > 0,
                       min(TABLE_WORDS, config.batch * config.block_out),
                       1 << config.wgt_bits - 1)], FACTS)
    return bind_array(BUFFERS, buffers), bind_array(SETTINGS, facts)


class Loaded(NamedTuple):
    """Micro-ops that a program loads, in order: where each goes, and where it comes from. `span`
    has the first and the end for each instruction."""

    span: Column
    tile: Column
    segment: Column
    place: Column               # in the segment, counted in micro-ops


ROOM = 1024                 # for micro-ops, at first


def find_micro_ops(code: Stream, rows: Decoded) -> Loaded:
    """What all loads of micro-ops bring."""
    room = ROOM
    while True:
        found = Loaded(np.zeros((len(code), 2), np.int64),
                       *(np.zeros(room, np.int64) for _ in range(3)))
        count = _list(as_bytes(code), rows, *found)
        if count <= room:
            return Loaded(found.span, *(each[:count] for each in found[1:]))
        room = count
