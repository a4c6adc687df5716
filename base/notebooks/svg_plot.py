"""Plots as SVG, for files, reports and notebooks: dots, lines and bands over two axes, linear or
logarithmic, light or dark as the viewer is. Names are only ever text.

    plot_svg([Series("exact", xs, ys)], x="cycles", y="LUT", log_x=True)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from ..checked_values import printable
from ..classes.dataclass import dataclass
from ..errors import MicrotronError

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 78, 16, 44, 52           # margins
MOST_TICKS = 6
# Colours that colour-blind people can tell apart, after Okabe and Ito; shapes differ too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
KINDS = ("dots", "line", "steps", "band")
# A notebook shows a plot inside of its own page, so every rule says whose it is.
STYLE = """
.microtron-plot { background: #ffffff; font: 13px sans-serif }
.microtron-plot text { fill: #1b1d21 } .microtron-plot .quiet { fill: #5a6069 }
.microtron-plot .axis { stroke: #5a6069; fill: none }
.microtron-plot .grid { stroke: #d0d4da; fill: none }
@media (prefers-color-scheme: dark) {
  .microtron-plot { background: #16181c } .microtron-plot text { fill: #e7e9ec }
  .microtron-plot .quiet { fill: #a4abb6 } .microtron-plot .axis { stroke: #a4abb6 }
  .microtron-plot .grid { stroke: #3b4048 }
}
"""


@dataclass(frozen=True)
class Series:
    """Points that belong together. Steps hold a value up to the next x, as a Pareto front does; a
    band lies between `ys` and `tops`; `labels` are what a dot says when it is pointed at."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    kind: str = "dots"
    tops: Sequence[float] = ()
    labels: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MicrotronError(f"kind is {self.kind!r}, but must be one of {', '.join(KINDS)}")
        wanted = {"ys": self.ys, **({"tops": self.tops} if self.kind == "band" else {}),
                  **({"labels": self.labels} if self.labels else {})}
        for name, values in wanted.items():
            if len(values) != len(self.xs):
                raise MicrotronError(f"{self.name}: there are {len(self.xs)} xs, but "
                                     f"{len(values)} {name}")


@dataclass(frozen=True)
class _Scale:
    """An axis: numbers to pixels, and where its ticks are."""

    low: float
    high: float
    log: bool
    start: float            # pixels at `low`
    end: float

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(each) if self.log else each
                         for each in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log and self.high / self.low >= 10:
            exponents = range(math.ceil(math.log10(self.low)),
                              math.floor(math.log10(self.high)) + 1)
            every = max(1, math.ceil(len(exponents) / MOST_TICKS))
            found = [10.0 ** each for each in exponents[::every]]
            if len(found) >= 2:
                return found
        step = _round_step((self.high - self.low) / MOST_TICKS)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def _round_step(step: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= step * (1 - 1e-9))


def plot_svg(series: Sequence[Series], *, x: str, y: str, title: str = "", log_x: bool = False,
             log_y: bool = False, level: float | None = None) -> str:
    """A plot. `level` is a value of y with a line of its own."""
    xs = [each for one in series for each in one.xs]
    ys = [each for one in series for each in (*one.ys, *one.tops)]
    across = _scale(xs, log_x, LEFT, WIDTH - RIGHT, x)
    up = _scale([*ys, *([] if level is None else [level])], log_y, HEIGHT - BOTTOM, TOP, y)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'width="{WIDTH}" height="{HEIGHT}" class="microtron-plot" role="img" '
             f'aria-label="{_text(title or f"{y} over {x}")}"><style>{STYLE}</style>',
             *_axes(across, up, x, y, title)]
    if level is not None:
        parts.append(f'<path class="axis" stroke-dasharray="5 4" d="M{LEFT} {up(level):.1f}'
                     f'H{WIDTH - RIGHT}"/>')
    for number, each in enumerate(series):
        parts += _draw(each, across, up, number)
    parts += _legend(series)
    return "\n".join([*parts, "</svg>\n"])


def _text(text: str) -> str:
    return escape(printable(text))


def _scale(values: Sequence[float], log: bool, start: float, end: float, name: str) -> _Scale:
    if not values:
        raise MicrotronError(f"{name}: there is nothing to plot")
    for each in values:
        if not math.isfinite(each) or (log and each <= 0):
            kind = "a logarithmic" if log else "an"
            raise MicrotronError(f"{name}: {each} has no place on {kind} axis")
    low, high = min(values), max(values)
    if log:
        factor = (high / low) ** 0.04 if high > low else 2.0
        return _Scale(low / factor, high * factor, log, start, end)
    room = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return _Scale(low - room, high + room, log, start, end)


def _axes(across: _Scale, up: _Scale, x: str, y: str, title: str) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in across.ticks():
        place = across(tick)
        yield f'<path class="grid" d="M{place:.1f} {TOP}V{bottom}"/>'
        yield (f'<text class="quiet" x="{place:.1f}" y="{bottom + 18}" text-anchor="middle">'
               f'{_number(tick)}</text>')
    for tick in up.ticks():
        place = up(tick)
        yield f'<path class="grid" d="M{LEFT} {place:.1f}H{right}"/>'
        yield (f'<text class="quiet" x="{LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">'
               f'{_number(tick)}</text>')
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    middle = (LEFT + right) / 2
    yield f'<text x="{middle:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{_text(x)}</text>'
    yield (f'<text transform="rotate(-90 16 {(TOP + bottom) / 2:.0f})" x="16" '
           f'y="{(TOP + bottom) / 2:.0f}" text-anchor="middle">{_text(y)}</text>')
    yield f'<text x="{LEFT}" y="20" font-weight="bold">{_text(title)}</text>'


def _number(value: float) -> str:
    for size, unit in ((1e9, " G"), (1e6, " M")):
        if size <= abs(value) < 1e12:
            return f"{value / size:,.6g}{unit}"
    small = value and (abs(value) >= 1e12 or abs(value) < 1e-3)
    return f"{value:.3g}" if small else f"{value:,.6g}"


def _draw(series: Series, across: _Scale, up: _Scale, number: int) -> Iterator[str]:
    colour = COLOURS[number % len(COLOURS)]
    points = [(across(x), up(y)) for x, y in zip(series.xs, series.ys, strict=True)]
    if series.kind == "band":
        back = [(across(x), up(y)) for x, y in zip(series.xs, series.tops, strict=True)][::-1]
        yield f'<path fill="{colour}" fill-opacity="0.25" d="M{_path([*points, *back])}Z"/>'
        return
    if series.kind in ("line", "steps"):
        corners = points if series.kind == "line" else _stairs(points)
        yield f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{_path(corners)}"/>'
    labels = series.labels or [""] * len(points)
    for (place_x, place_y), label in zip(points, labels, strict=True):
        yield _mark(place_x, place_y, number, label)


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Each value up to the next, as a Pareto front is drawn."""
    corners = [(after[0], before[1]) for before, after in pairwise(points)]
    return [each for pair in zip(points, corners, strict=False) for each in pair] + [*points[-1:]]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _mark(x: float, y: float, number: int, label: str = "") -> str:
    """A dot, a square, a diamond or a triangle."""
    shape = (f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
             f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z", f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",
             f"M{x:.1f} {y - 5:.1f}l5 9h-10z")[number % 4]
    title = f"<title>{_text(label)}</title>" if label else ""
    return f'<path fill="{COLOURS[number % len(COLOURS)]}" d="{shape}">{title}</path>'


def _legend(series: Sequence[Series]) -> Iterator[str]:
    """In the upper right corner, above the axes."""
    x = WIDTH - RIGHT
    for number, each in reversed(list(enumerate(series))):
        x -= 8 * len(printable(each.name)) + 26
        if each.kind == "band":
            yield (f'<path fill="{COLOURS[number % len(COLOURS)]}" fill-opacity="0.25" '
                   f'd="M{x - 5} 30h10v10h-10z"/>')
        else:
            yield _mark(x, 35, number)
        yield f'<text x="{x + 9}" y="39">{_text(each.name)}</text>'
