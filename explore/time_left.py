"""What a progress line says of the time that is left."""

from __future__ import annotations

MINUTE = 60


def time_left(done: int, total: int | None, seconds: float) -> str:
    """How long the rest takes at the pace so far; nothing where that is not known."""
    if not total or not 0 < done < total:
        return ""
    left = seconds * (total - done) / done
    return f", about {left / MINUTE:.0f} min left" if left >= 2 * MINUTE else (
        f", about {left:.0f} s left")
