"""Addresses of tensors in DRAM."""

from __future__ import annotations

from collections.abc import Iterable

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import Buffer

PAGE = 4096                 # bytes; a burst does not cross it, so what is large begins there


@dataclass(frozen=True)
class Grid:
    """Alignment of tensors in DRAM: to whole tiles of any scratchpad."""

    step: int
    page: int = PAGE

    @staticmethod
    def of(config: Config) -> Grid:
        return Grid(max(config.tile_bytes(buffer) for buffer in Buffer))

    def after(self, offset: int, size: int) -> int:
        """The next aligned offset after so many bytes."""
        step = self.page if size >= PAGE else self.step
        return -(-offset // step) * step

    def row(self, sizes: Iterable[int]) -> tuple[list[int], int]:
        """Places one after the other, and what they take."""
        places, end = [], 0
        for size in sizes:
            places.append(self.after(end, size))
            end = places[-1] + size
        return places, end


@dataclass(frozen=True)
class Place:
    """Where a tensor lies."""

    segment: int
    offset: int
