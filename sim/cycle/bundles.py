"""Arguments of the simulator's functions, bundled into tuples.

The compiler takes them apart, so bundling costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ..twins.record_types import Code, Machine, Machines, MicroOps, Numbers, Settings


class Given(NamedTuple):
    """Inputs of a run, which it does not change: the program, the accelerator and its memory."""

    code: Code
    positions: Numbers          # of each engine's instructions, in order
    config: Settings
    timing: Settings
    floors: Numbers             # of falling registers


class State(NamedTuple):
    """All registers, as a record and as words of the same memory."""

    machine: Machine
    words: Numbers


class Past(NamedTuple):
    """Some earlier states."""

    machines: Machines
    words: Numbers


class Loads(NamedTuple):
    """The micro-ops that loads bring (see `prepared_program.MicroOps`)."""

    tile: Numbers
    values: MicroOps
    span: Numbers


class Notes(NamedTuple):
    """Output: for each instruction, when it was dispatched, started and ended, and for how many
    cycles it waited for a token from each engine. `seen` is how long each engine had waited in all
    when its last instruction started."""

    times: Numbers
    waits: Numbers
    seen: Numbers
