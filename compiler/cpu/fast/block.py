"""Blocks of sums that a processor keeps in registers while it goes through their terms.

A block has some rows, each of them one vector of so many columns. A term of a sum takes a number
for each row and a vector of numbers for all columns:

    for each term k:
        row 0:  s[0, 0 … 15] += left[0, k] × right[k, 0 … 15]
        row 1:  s[1, 0 … 15] += left[1, k] × right[k, 0 … 15]
        …

The more rows, the fewer numbers are loaded for each product. 24 of the 32 registers of an aarch64
processor, which has four columns in each, hold sums; the others hold a row of the right side and
what comes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

FEWEST = 32             # sums in a block, below which the processor waits for the last ones
MOST = 120              # numbers that fit in registers: sums and a row of the right side
MOST_ROWS = 8
WIDTHS = (16, 8, 4, 32)
STEP = 8                # what a term costs besides its products, in sums


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


def block_of(rows: int, columns: int, tiles: int | None = None,
             widths: Sequence[int] | None = None) -> Block:
    """The best block for so many rows and columns. A stripe has at most so many tiles, and a block
    one of some widths."""
    found = min((Block(height, lanes) for lanes in widths or WIDTHS
                 for height in range(1, min(MOST // lanes - 1, MOST_ROWS) + 1)),
                key=lambda each: _cost(each, rows, columns))
    count = ceil(rows / found.rows)
    if tiles is None:
        return Block(found.rows, found.lanes, count)
    stripes = ceil(count / max(1, tiles))
    return Block(found.rows, found.lanes, ceil(count / stripes), stripes)


def _cost(block: Block, rows: int, columns: int) -> tuple[int, int]:
    """Of one term of all sums, and how far the block is from the widest one."""
    blocks = ceil(rows / block.rows) * ceil(columns / block.lanes)
    sums = max(block.rows * block.lanes, FEWEST)
    loads = 2 * (block.rows * 4 + block.lanes)          # a number takes as long as a vector of four
    return blocks * (max(sums, loads) + STEP), WIDTHS.index(block.lanes)
