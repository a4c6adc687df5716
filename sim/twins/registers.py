"""Registers of the twins: named integers, classified by how they change in repeated cycles.

A twin of a hardware unit is its registers, as one NumPy record, and functions that advance them by
a cycle. The simulator skips periods that repeat (see `cycle.skip_repeats`). For that, each register
declares what repeating means for it:

    same        equal every time. If it differs, something new has happened.
    noted       changes only together with one that is `same`, and is not looked at
    falling     falls in equal steps; nothing new happens before it reaches its floor
    moving      advances in equal steps and influences no decision but those in `skip_repeats`
    storage     arrays; as what is noted

Registers that are `same` are compared and copied most often, so they take half the space, 32 bits;
those that need more are `wide`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...base.arrays import Dtype
from ..llvm.decorators import inline as inline

PER_BEAT = -1       # as a floor: one more than the tiles in a beat
WORD, HALF = np.dtype(np.int64), np.dtype(np.int32)
CHUNK = 4           # words: the `same` registers of a group fill a multiple of it


@dataclass(frozen=True, kw_only=True)
class Registers:
    """The registers of one unit. A floor is the smallest value at which the unit still repeats."""

    wide: tuple[str, ...] = ()          # `same`, with 64 bits
    same: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    falling: Mapping[str, int] = field(default_factory=dict)        # name → floor
    moving: tuple[str, ...] = ()
    storage: Mapping[str, int] = field(default_factory=dict)        # name → length


class Layout:
    """A record with a record for each unit, in memory sorted by kind: first `same`, then falling,
    then moving registers, then the rest; each of them by groups of units.

    So a machine, or a group, viewed as an array of integers can be compared and advanced by whole
    slices. The units' records therefore overlap: each spans the whole machine, with its registers
    scattered over it.
    """

    def __init__(self, *groups: Mapping[str, Registers]):
        self._places: dict[str, dict[str, tuple[object, int]]] = {
            name: {} for units in groups for name in units}
        self._end = 0                   # in bytes
        self.same: list[int] = []       # where the `same` registers of each group end, in words
        self.falling: list[int] = []
        self.moving: list[int] = []
        for units in groups:
            self._add(units, "same", HALF)
            self._fill(WORD.itemsize)
            self._add(units, "wide", WORD)
            self._fill(CHUNK * WORD.itemsize)
            self.same.append(self._end // WORD.itemsize)
        for kind, ends in (("falling", self.falling), ("moving", self.moving), ("noted", []),
                           ("storage", [])):
            for units in groups:
                self._add(units, kind, WORD)
                ends.append(self._end // WORD.itemsize)
        self.dtype = _packed_dtype({name: (_packed_dtype(fields, self._end), 0)
                                    for name, fields in self._places.items()}, self._end)
        self.floors = [floor for units in groups for registers in units.values()
                       for floor in registers.falling.values()]

    def _fill(self, size: int) -> None:
        self._end = -(-self._end // size) * size

    def _add(self, units: Mapping[str, Registers], kind: str, word: Dtype) -> None:
        """Place all registers of a kind."""
        for name, registers in units.items():
            for register in getattr(registers, kind):
                length = registers.storage.get(register)
                self._places[name][register] = (word, (length,)) if length else word, self._end
                self._end += word.itemsize * (length or 1)

    def place(self, unit: str, register: str) -> int:
        """The index of a 64-bit register, in words."""
        fields = self.dtype[unit].fields
        assert fields is not None
        return int(fields[register][1]) // WORD.itemsize


def _packed_dtype(fields: Mapping[str, tuple[object, int]], end: int) -> np.dtype[np.void]:
    """A record of `end` bytes with fields at given offsets."""
    return np.dtype({"names": list(fields), "formats": [each for each, _ in fields.values()],
                     "offsets": [place for _, place in fields.values()], "itemsize": end})
