"""Blocks of sums that a processor keeps in registers while it goes through their terms.

A block has some rows, each of them one vector of so many columns. A term of a sum takes a number
for each row and a vector of numbers for all columns:

    for each term k:
        row 0:  s[0, 0 … 15] += left[0, k] × right[k, 0 … 15]
        row 1:  s[1, 0 … 15] += left[1, k] × right[k, 0 … 15]
        …

The more rows, the fewer numbers are loaded for each product. 24 of the 32 registers of an aarch64
processor, which has four columns in each, hold sums; the others hold a row of the right side and
what comes next. AVX-512 has sixteen columns in each of 32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from ....base.classes.dataclass import dataclass
from ....base.processor import Target

AVX512_BYTES = 64       # of a register


@dataclass(frozen=True)
class Registers:
    """What a processor's registers hold, in numbers of 32 bits."""

    lanes: int                      # of one
    most: int                       # in all: sums and a row of the right side
    fewest: int                     # sums, below which the processor waits for the last ones
    most_rows: int
    widths: tuple[int, ...]         # of blocks, best first
    scalar: int                     # what loading one number costs, in sums
    step: int                       # what a term costs besides its products, in sums


COMMON = Registers(4, 120, 32, 8, (16, 8, 4, 32), scalar=8, step=8)
AVX512 = Registers(16, 480, 128, 14, (32, 16, 64, 8, 4), scalar=16, step=16)


@dataclass(frozen=True)
class Block:
    """Rows and columns of a block, and how many blocks there are one below the other."""

    rows: int
    lanes: int
    tiles: int = 1          # that are computed one after the other, with the same columns
    stripes: int = 1        # of so many tiles

    @property
    def height(self) -> int:
        """Of all stripes: rows that do not exist are computed too, to no purpose."""
        return self.rows * self.tiles * self.stripes


def registers_of(target: Target | None) -> Registers:
    """Those of a processor. Without any, code for small blocks is small."""
    return AVX512 if target is not None and target.vector_bytes == AVX512_BYTES else COMMON


def block_of(rows: int, columns: int, tiles: int | None = None,
             widths: Sequence[int] | None = None, registers: Registers = COMMON) -> Block:
    """The best block for so many rows and columns. A stripe has at most so many tiles, and a block
    one of some widths."""
    found = min((Block(height, lanes) for lanes in widths or registers.widths
                 for height in range(1, min(registers.most // lanes - 1, registers.most_rows) + 1)),
                key=lambda each: _cost(each, rows, columns, registers))
    count = ceil(rows / found.rows)
    if tiles is None:
        return Block(found.rows, found.lanes, count)
    stripes = ceil(count / max(1, tiles))
    return Block(found.rows, found.lanes, ceil(count / stripes), stripes)


def _cost(block: Block, rows: int, columns: int, registers: Registers) -> tuple[int, int]:
    """Of one term of all sums, and how far the block is from the widest one."""
    blocks = ceil(rows / block.rows) * ceil(columns / block.lanes)
    sums = max(block.rows * max(block.lanes, registers.lanes), registers.fewest)
    loads = block.rows * registers.scalar + registers.scalar * block.lanes // registers.lanes
    return blocks * (max(sums, loads) + registers.step), registers.widths.index(block.lanes)
