"""What the controller has to know of a memory chip: its shape, and its times in cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...facts.board import Board
from ...facts.errors import BoardError

START_SECONDS = 200e-6      # from power until the first command: what any chip wants, or more


@dataclass(frozen=True, kw_only=True)
class Chip:
    """An SDR chip at the clock of a system. Times are cycles, from one command to the other."""

    data_bits: int
    bank_bits: int
    row_bits: int
    column_bits: int
    latency: int            # from a read to its data (CAS)
    row_to_column: int      # from opening a row to using it (tRCD)
    precharge: int          # from closing rows to any command (tRP)
    row_open: int           # from opening a row to closing it (tRAS)
    write_recovery: int     # from the last write to closing its row (tWR)
    refresh: int            # from a refresh to any command (tRFC)
    refresh_interval: int   # from one refresh to the next, at most (tREFI)
    start: int              # from power to the first command

    @property
    def word_bytes(self) -> int:
        return self.data_bits // 8

    @property
    def bytes(self) -> int:
        return self.word_bytes << self.bank_bits + self.row_bits + self.column_bits


def read_chip(board: Board) -> Chip:
    """The board's chip, by LiteDRAM's facts."""
    from litedram.common import get_default_cl

    from ..dram import litedram_chip

    if board.memory.kind != "sdr" or board.memory.rate != "1:1":
        raise BoardError(f"{board.name}: memory is {board.memory.kind} at {board.memory.rate}, but "
                         "a system without a processor has sdr at 1:1")
    facts: Any = litedram_chip.find_chip(board)
    hz = board.clock.system_hz
    shape, times = facts.geom_settings, facts.timing_settings
    chip = Chip(
        data_bits=litedram_chip.data_bits(board), bank_bits=shape.bankbits, row_bits=shape.rowbits,
        column_bits=shape.colbits, latency=get_default_cl("SDR", 1 / hz),
        row_to_column=times.tRCD, precharge=times.tRP, row_open=times.tRAS or 1,
        write_recovery=times.tWR, refresh=times.tRFC, refresh_interval=times.tREFI,
        start=round(START_SECONDS * hz))
    if chip.bytes != board.memory.bytes:
        raise BoardError(f"{board.name}: memory.bytes is {board.memory.bytes:,}, but "
                         f"{board.memory.chip} with {chip.data_bits} wires has {chip.bytes:,}")
    return chip
