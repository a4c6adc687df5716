"""The knobs of pools, whoever combines their windows."""

from __future__ import annotations

from ....base.classes.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: channel blocks, rows, columns, and rows and columns of the
    window."""

    blocks: int
    rows: int
    columns: int
    window: tuple[int, int] = (1, 1)
    doubled: bool = True        # two buffers each, so that engines overlap
