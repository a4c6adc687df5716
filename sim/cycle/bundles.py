"""What the simulator's loop works on, in bundles that its functions hand on.

Compiled code takes them apart: a bundle costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ..twins.types import Code, Machine, Machines, MicroOps, Numbers, Settings


class Given(NamedTuple):
    """The program, the accelerator and its memory, which a run does not change."""

    code: Code
    positions: Numbers          # of each engine's instructions, in order
    config: Settings
    timing: Settings
    floors: Numbers             # of falling registers


class State(NamedTuple):
    """All registers, and the same as words."""

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
    """By instruction: when it was dispatched, started and ended, and cycles for which it waited
    for a token of each engine; `seen` is what had been waited for by those before it."""

    times: Numbers
    waits: Numbers
    seen: Numbers
