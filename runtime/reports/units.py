"""Numbers, times and parts as tables show them, in a few characters."""

from __future__ import annotations

SCALES = ((10 ** 12, "T"), (10 ** 9, "G"), (10 ** 6, "M"), (10 ** 3, "k"))
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def abbreviate(number: float | None) -> str:
    """A number in at most six characters."""
    if number is None:
        return ""
    if number < 10_000:
        return f"{number:,.0f}"
    for scale, letter in SCALES:
        if number >= scale:
            value = number / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{letter}"
    raise AssertionError("one of the scales fits")


def duration(seconds: float | None) -> str:
    """A time in three digits and its unit."""
    if seconds is None:
        return ""
    if seconds >= 999.5:
        return f"{abbreviate(seconds)}s"
    for scale, unit in UNITS:
        value = seconds / scale
        if value >= 0.9995:
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}{unit}"
    return "0"


def percent(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"
