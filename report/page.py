"""The page: data and assets in one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from ..base.checked_values import PlainData
from .encoding import encode_json
from .isa_table import isa_table

STYLES = ("style.css",)
SCRIPTS = ("data.js", "charts.js", "tables.js", "plots.js", "summary.js", "network.js", "layers.js",
           "disassembly.js", "events.js", "timeline_drawing.js", "timeline.js", "memory.js",
           "pareto.js", "main.js")
# Nothing is loaded from anywhere: a browser that is told so cannot be made to.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page_of(title: str, version: str, runs: Sequence[PlainData],
            tables: Sequence[PlainData] = (), plots: Sequence[PlainData] = (),
            pareto: PlainData | None = None) -> Iterator[bytes]:
    """The file, piece by piece."""
    head = (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(title)}</title>\n")
    yield head.encode()
    yield "".join(f"<style>\n{_asset(name)}</style>\n" for name in STYLES).encode()
    yield b'</head>\n<body>\n<main id="page"><noscript>This report draws itself with JavaScript, ' \
          b'which is switched off.</noscript></main>\n<script type="application/json" id="data">'
    yield encode_json({"title": title, "version": version, "isa": isa_table(),
                       "runs": list(runs), "tables": list(tables), "plots": list(plots),
                       "pareto": pareto}).encode()
    yield b"</script>\n"
    yield "".join(f"<script>\n{_asset(name)}</script>\n" for name in SCRIPTS).encode()
    yield b"</body>\n</html>\n"


@cache
def _asset(name: str) -> str:
    text = files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
    assert "</" not in text, "nothing may end the element it is in"
    return text
