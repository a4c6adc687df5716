"""Draws the diagrams of the documentation, docs/accelerator.svg and docs/compiler.svg.

Boxes and arrows are data below; light and dark follow the viewer. The engines and scratchpads are
those that the instruction set declares.

    python tools/diagrams.py
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

from microtron.base.atomic_files import write_atomically
from microtron.compiler.passes.pipeline import PASSES
from microtron.isa.instructions import SCRATCHPADS, Engine

DOCS = Path(__file__).resolve().parent.parent / "docs"
STYLE = """
svg { background: #ffffff; font: 14px sans-serif }
text { fill: #1b1d21; text-anchor: middle } .small { font-size: 12px; fill: #5a6069 }
rect { fill: #f4f5f7; stroke: #5a6069 } .engine { fill: #d6e9f5; stroke: #0072b2 }
.memory { fill: #fbe5d3; stroke: #d55e00 } .arrow { stroke: #1b1d21; fill: none }
.token { stroke: #009e73; fill: none; stroke-dasharray: 4 3 }
.bus { stroke: #d55e00; fill: none }
#tip path { fill: #1b1d21 } #token path { fill: #009e73 }
@media (prefers-color-scheme: dark) {
  svg { background: #16181c } text { fill: #e7e9ec } .small { fill: #a4abb6 }
  rect { fill: #212429; stroke: #a4abb6 } .engine { fill: #14324a; stroke: #56b4e9 }
  .memory { fill: #4a2c14; stroke: #ee7a24 } .arrow { stroke: #e7e9ec } #tip path { fill: #e7e9ec }
  .token { stroke: #19b98b } #token path { fill: #19b98b }
}
"""
MARKERS = "".join(
    f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker>' for name in ("tip", "token"))


@dataclass(frozen=True)
class Box:
    """A unit, with a line below its name."""

    x: int
    y: int
    width: int
    height: int
    name: str
    note: str = ""
    kind: str = ""

    def svg(self) -> str:
        middle, top = self.x + self.width / 2, self.y + self.height / 2
        lines = [f'<rect class="{self.kind}" x="{self.x}" y="{self.y}" width="{self.width}" '
                 f'height="{self.height}" rx="6"/>',
                 f'<text x="{middle:g}" y="{top + (-2 if self.note else 5):g}">'
                 f'{escape(self.name)}</text>']
        if self.note:
            lines.append(f'<text class="small" x="{middle:g}" y="{top + 16:g}">'
                         f'{escape(self.note)}</text>')
        return "\n".join(lines)


def arrow(path: str, kind: str = "arrow", both: bool = False) -> str:
    tip = "token" if kind == "token" else "tip"
    start = f' marker-start="url(#{tip})"' if both else ""
    return f'<path class="{kind}" d="{path}" marker-end="url(#{tip})"{start}/>'


def note(x: float, y: float, text: str) -> str:
    return f'<text class="small" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def drawing(width: int, height: int, title: str, parts: list[str]) -> str:
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style><defs>{MARKERS}</defs>", *parts, "</svg>", ""])


def accelerator() -> str:
    """Engines in a column, with fetch on their left and scratchpads on their right."""
    names = [engine.name for engine in Engine]
    work = {"LOAD": "DRAM to scratchpads", "GEMM": "a tile product a cycle",
            "ALU": "32-bit lanes, requantize", "STORE": "scratchpads to DRAM"}
    places = {name: 60 + 100 * number for number, name in enumerate(names)}
    parts = [Box(20, 190, 110, 60, "fetch", "one queue each").svg(),
             Box(20, 60, 110, 60, "control", "registers").svg(),
             Box(20, 440, 700, 44, "DRAM", kind="memory").svg(), arrow("M75 120V188"),
             arrow("M75 438V252"), note(122, 350, "instructions"),
             arrow("M315 422V438", "bus"), arrow("M428 438V75H412", "bus")]
    for name, y in places.items():
        parts.append(Box(220, y, 190, 60, name, work[name], "engine").svg())
        parts.append(arrow(f"M130 220H170V{y + 30}H218"))
    for first, second in pairwise(names):
        parts.append(arrow(f"M315 {places[first] + 62}V{places[second] - 2}", "token", both=True))
    parts.append(note(368, places["GEMM"] - 15, "tokens"))
    memories = [each.name.lower() for each in SCRATCHPADS]
    step = 370 // len(memories)
    at = {name: 60 + step * number for number, name in enumerate(memories)}
    for name, y in at.items():
        parts.append(Box(560, y, 160, step - 20, name, "scratchpad", "memory").svg())
    middle = {name: y + (step - 20) // 2 for name, y in at.items()}
    used = {"LOAD": ("uop", "inp", "wgt", "acc"), "GEMM": ("uop", "inp", "wgt", "acc", "out"),
            "ALU": ("acc", "out"), "STORE": ("acc", "out")}
    for number, (engine, buffers) in enumerate(used.items()):
        lane = 446 + 26 * number
        y = places[engine] + 30
        ends = [middle[each] - 12 + 8 * number for each in buffers]
        parts.append(f'<path class="arrow" d="M410 {y}H{lane}M{lane} {min([y, *ends])}'
                     f'V{max([y, *ends])}"/>')
        parts += [f'<path class="arrow" d="M{lane} {each}H560"/>' for each in ends]
    return drawing(740, 500, "The accelerator: fetch, four engines, tokens and scratchpads", parts)


def compiler() -> str:
    """Two ways into one stream: networks from the left, single operators from the right."""
    left = [("ONNX, TFLite", "frontends/"), ("graph", "graph/"),
            ("passes", f"{len(PASSES)} in passes/pipeline.py"),
            ("placement", "network/: accelerator or CPU"), ("linked stream", "network/linking/")]
    right = [("layer", "operators/: Conv2d, Dense …"), ("tensor expression", "expression/"),
             ("schedule", "schedule/"), ("loop nest", "nest/"),
             ("instructions", "accelerator/")]
    parts = []
    for x, column in ((40, left), (400, right)):
        for number, (name, where) in enumerate(column):
            y = 30 + 90 * number
            parts.append(Box(x, y, 230, 56, name, where).svg())
            if number:
                parts.append(arrow(f"M{x + 115} {y - 34}V{y - 2}"))
    parts += [arrow("M270 316H330V58H398"), note(335, 48, "each layer"),
              arrow("M398 418H272"), note(335, 408, "programs"),
              Box(40, 480, 230, 56, "machine code", "cpu/: what falls back").svg(),
              Box(400, 480, 230, 56, "model image", "runtime/models/", "memory").svg(),
              arrow("M70 356V370H20V508H38"), arrow("M270 508H398"),
              arrow("M240 446V466H515V478")]
    return drawing(670, 560, "The compiler: from a model file to a model image", parts)


def main() -> int:
    for name, draw in (("accelerator", accelerator), ("compiler", compiler)):
        write_atomically(DOCS / f"{name}.svg", draw().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
