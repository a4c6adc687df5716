"""When transfers get the bus: a calendar of what reads and writes take of each stretch of time.

Transfers are entered in the order of the program, not of time, so one may come into a stretch that
others have filled. On a shared bus both kinds take turns there, beat by beat: of writes that were
entered before, some come later; and what a write takes from reads is taken from later stretches.
"""

# No postponed annotations here: numba reads the functions as they are.
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...base.compiled.deferred_functions import OPTIONS, Deferred

STRETCHES = 4096
READS, WRITES, TAKEN, LATEST = range(4)     # rows of a calendar; of the last row, one number
NOTHING = 1e-9              # beats
Numbers = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., object])


class Bus(NamedTuple):
    """A memory, and the calendar of its bus. Times are cycles."""

    read_latency: float
    write_latency: float
    beat: float
    turn: float
    shared: float               # 1 or 0
    reads: int                  # in flight
    writes: int
    width: float                # of a stretch
    calendar: Numbers


def helper(function: Function) -> Function:
    """A function that only compiled functions call."""
    return cast(Function, Deferred(
        function, OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}))


@helper
def reserve(bus: Bus, kind: int, time: float, beats: float, rate: float) -> float:
    """Enter a transfer that may begin at a time and takes `rate` cycles a beat or more. Returns
    its end."""
    left = beats
    while True:
        at = int(time / bus.width)
        end = (at + 1) * bus.width
        if at >= STRETCHES - 2:
            return time + left * rate
        most = min(left, (end - time) / rate)
        taken = min(_make_room(bus, kind, at, most), most)
        bus.calendar[kind, at] += taken
        left -= taken
        if bus.shared > 0:
            _delay_others(bus, at)
        if left <= NOTHING:
            slow = taken * rate < (end - time) * 0.999 and taken < most - NOTHING
            return end if slow else time + taken * rate
        time = end


@helper
def _make_room(bus: Bus, kind: int, at: int, wanted: float) -> float:
    """Beats of a kind that a stretch has room for."""
    own: float = bus.calendar[kind, at]
    other: float = bus.calendar[1 - kind, at]
    if bus.shared == 0:
        return max(0.0, bus.width / bus.beat - own)
    room = _room(bus, at)
    fair = bus.width / (2 * bus.beat + 2 * bus.turn)
    if other == 0 or room >= wanted * bus.beat:
        return max(0.0, _beats_in(bus, room, own, other))
    if kind == WRITES:
        return max(_beats_in(bus, room, own, other), min(fair - own, other))
    own_then = min(own + wanted, max(fair, own))
    _move_writes(bus, at, min(other, _other_beats(bus, at, own_then)))
    room, other = _room(bus, at), bus.calendar[WRITES, at]
    return max(_beats_in(bus, room, own, other), own_then - own)


@helper
def _room(bus: Bus, at: int) -> float:
    """Cycles that are left of a stretch."""
    reads, writes = bus.calendar[READS, at], bus.calendar[WRITES, at]
    left: float = (bus.width - bus.beat * (reads + writes) - 2 * bus.turn * min(reads, writes)
                   - bus.calendar[TAKEN, at])
    return left


@helper
def _beats_in(bus: Bus, room: float, own: float, other: float) -> float:
    """Beats in so many cycles, each with two turns of the bus while there are fewer than of the
    other kind."""
    return room / (bus.beat + 2 * bus.turn) if own < other else room / bus.beat


@helper
def _other_beats(bus: Bus, at: int, reads: float) -> float:
    """Writes that a stretch has room for, beside so many reads."""
    room: float = bus.width - bus.calendar[TAKEN, at]
    writes = (room - bus.beat * reads) / (bus.beat + 2 * bus.turn)
    if writes > reads:
        writes = reads + (room - reads * (2 * bus.beat + 2 * bus.turn)) / bus.beat
    return max(0.0, writes)


@helper
def _move_writes(bus: Bus, at: int, kept: float) -> None:
    """All but so many writes of a stretch come later."""
    later = bus.calendar[WRITES, at] - kept
    bus.calendar[WRITES, at] = kept
    while later > NOTHING and at < STRETCHES - 1:
        at += 1
        own = bus.calendar[WRITES, at]
        fits = max(own, _other_beats(bus, at, bus.calendar[READS, at]))
        bus.calendar[WRITES, at] = min(own + later, fits)
        later += own - bus.calendar[WRITES, at]
        bus.calendar[LATEST, 0] = max(bus.calendar[LATEST, 0], (at + 1) * bus.width)


@helper
def _delay_others(bus: Bus, at: int) -> None:
    """Take from later stretches what this one has too much."""
    excess = -_room(bus, at)
    while excess > NOTHING and at < STRETCHES - 1:
        bus.calendar[TAKEN, at] -= excess
        at += 1
        bus.calendar[TAKEN, at] += excess
        excess = -_room(bus, at)
