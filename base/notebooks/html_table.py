"""Tables for notebooks, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..checked_values import printable

MOST_ROWS = 200             # of a table: a notebook keeps them all


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table. Whatever is in it is text."""
    def cells(tag: str, row: Sequence[object]) -> str:
        return "".join(f"<{tag}>{escape(printable(str(each)))}</{tag}>" for each in row)
    found = list(rows)
    more = [[f"… {len(found) - MOST_ROWS} more"]] if len(found) > MOST_ROWS else []
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in [*found[:MOST_ROWS], *more])
    return (f"<table><caption>{escape(printable(caption))}</caption>"
            f"<thead><tr>{cells('th', columns)}</tr></thead><tbody>{body}</tbody></table>")
