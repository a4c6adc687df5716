"""A front in files: a table, a picture, a configuration for each point, and what was rejected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from xml.sax.saxutils import escape

from ...base.atomic_files import write_atomically, write_together
from ...isa.config_files import format_toml
from ...runtime.reports.table_files import write_rows
from ..area.area_counts import KINDS
from .codesign_search import Exploration
from .front import Point, RoutedPoint, knee_of

TABLE, PICTURE, SUMMARY = "front.csv", "front.svg", "exploration.json"
WIDTH, HEIGHT, MARGIN = 640, 420, 60


def write_front(folder: Path, found: Exploration, mhz: float) -> None:
    """Write all files of a front; each of them is whole at any time."""
    folder.mkdir(parents=True, exist_ok=True)
    front = name_points(found.front)
    names = [name for name, _ in front]
    write_together({folder / name: format_toml(point.config).encode() for name, point in front})
    for old in folder.glob("point_*.toml"):
        if old.name not in names:
            old.unlink()
    write_rows(folder / TABLE, rows_of(found, mhz))
    write_atomically(folder / PICTURE, draw_front(found).encode())
    write_atomically(folder / SUMMARY, (json.dumps(
        {"trials": found.trials, "predicted": len(found.predicted), "exact": len(found.exact),
         "front": names, "knee": name_of_knee(found.front),
         "routed": {name: found.routed[point.config].to_dict() for name, point in front
                    if point.config in found.routed},
         "rejected": dict(found.rejected), "examples": found.examples},
        indent=1) + "\n").encode())


def name_points(front: Sequence[Point]) -> list[tuple[str, Point]]:
    """Points with the files that they are written to."""
    return [(f"point_{number:02d}.toml", point) for number, point in enumerate(front, 1)]


def name_of_knee(front: Sequence[Point]) -> str | None:
    """The file of the point at which a front bends."""
    knee = knee_of(front)
    return next((name for name, point in name_points(front) if point is knee), None)


def rows_of(found: Exploration, mhz: float) -> list[dict[str, object]]:
    """The front as a table. Where a point was routed, that has columns, too, and the others have
    nothing there."""
    front = name_points(found.front)
    routed = {name: _routed_columns(point, found.routed[point.config]) for name, point in front
              if point.config in found.routed}
    empty = dict.fromkeys(next(iter(routed.values()), {}))
    return [{**_row_of(point, name, mhz), **routed.get(name, empty)} for name, point in front]


def _row_of(point: Point, name: str, mhz: float) -> dict[str, object]:
    config = point.config
    return {"file": name, "cycles": round(point.cycles), "milliseconds": round(
                point.cycles / mhz / 1000, 4),
            **{kind: round(point.area[kind]) for kind in KINDS},
            **{f"config_{field}": value for field, value in config.to_dict().items()}}


def _routed_columns(point: Point, routed: RoutedPoint) -> dict[str, object]:
    """Milliseconds are those at the clock that the design runs at."""
    runs = routed.runs_mhz
    return {"routed_mhz": routed.mhz or None, "runs_mhz": runs or None,
            "routed_milliseconds": round(point.cycles / runs / 1000, 4) if runs else None,
            **{f"routed_{kind}": routed.used.get(kind) for kind in KINDS},
            "routed_folder": routed.folder, "routed_error": routed.error or None}


def draw_front(found: Exploration) -> str:
    """Cycles against LUTs, in logarithms: what was predicted, what was simulated, and the front."""
    predicted, exact, front = (list(found.predicted.values()), list(found.exact.values()),
                               found.front)
    points = [*predicted, *exact]
    if not points:
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"/>\n'
    across = _Scale([point.area["lut"] for point in points], MARGIN, WIDTH - 20)
    up = _Scale([point.cycles for point in points], HEIGHT - MARGIN, 20)
    marks = [_circle(point, across, up, 2, "#bbb") for point in predicted]
    marks += [_circle(point, across, up, 4, "#47a") for point in exact]
    line = " ".join(f"{across(point.area['lut']):.1f},{up(point.cycles):.1f}"
                    for point in sorted(front, key=lambda point: point.area["lut"]))
    marks.append(f'<polyline points="{line}" fill="none" stroke="#c33" stroke-width="1.5"/>')
    marks += [_circle(point, across, up, 4, "#c33") for point in front]
    ends = [(MARGIN, HEIGHT - 40, "start", f"{min(p.area['lut'] for p in points):,.0f} LUTs"),
            (WIDTH - 20, HEIGHT - 40, "end", f"{max(p.area['lut'] for p in points):,.0f} LUTs"),
            (8, 16, "start", f"{max(p.cycles for p in points):,.0f} cycles"),
            (8, HEIGHT - MARGIN, "start", f"{min(p.cycles for p in points):,.0f}"),
            (MARGIN, HEIGHT - 12, "start", "grey: predicted; blue: exact; red: exact front")]
    marks += [f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-family="sans-serif" '
              f'font-size="12">{escape(text)}</text>' for x, y, anchor, text in ends]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}"><rect width="100%" height="100%" fill="white"/>'
            + "\n".join(marks) + "</svg>\n")


class _Scale:
    """A logarithmic axis from one place to another."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self._low, high = log(min(values)), log(max(values))
        self._begin, self._step = begin, (end - begin) / ((high - self._low) or 1)

    def __call__(self, value: float) -> float:
        return self._begin + (log(value) - self._low) * self._step


def _circle(point: Point, across: _Scale, up: _Scale, radius: int, colour: str) -> str:
    config = point.config
    title = (f"{config.batch} × {config.block_in} × {config.block_out}, {config.alu_lanes} lanes: "
             f"{point.cycles:,.0f} cycles, {point.area['lut']:,.0f} LUTs, "
             f"{point.area['dsp']:,.0f} multipliers")
    return (f'<circle cx="{across(point.area["lut"]):.1f}" cy="{up(point.cycles):.1f}" '
            f'r="{radius}" fill="{colour}"><title>{escape(title)}</title></circle>')
