"""What the simulator's loop works on, bundled into tuples that its functions pass on.

The compiler takes them apart, so bundling costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ..twins.record_types import Code, Machine, Machines, MicroOps, Numbers, Settings


class Given(NamedTuple):
    """The program, the accelerator and its memory: what a run does not change."""

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
    """What loads of micro-ops bring (see `prepared.MicroOps`)."""

    tile: Numbers
    values: MicroOps
    span: Numbers


class Notes(NamedTuple):
    """For each instruction, when it was dispatched, started and ended, and for how many cycles it
    waited for a token from each engine. `seen` is how long each engine had waited when its last
    instruction started."""

    times: Numbers
    waits: Numbers
    seen: Numbers
