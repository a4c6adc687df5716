"""A table that only some sources have, such as the errors of a quantization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.checked_values import PlainData


@dataclass(frozen=True, kw_only=True)
class ExtraTable:
    """A section of its own, below the others. Cells are text; `bars` are drawn beside the rows, in
    parts of the longest."""

    title: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    bars: Sequence[float] = ()

    def to_dict(self) -> PlainData:
        longest = max(self.bars, default=0.0)
        return {"title": self.title, "about": self.about, "columns": list(self.columns),
                "rows": [list(each) for each in self.rows],
                "bars": [each / longest if longest > 0 else 0.0 for each in self.bars]}
