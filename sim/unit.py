"""Registers of the twins: named integers, sorted by how they go on while nothing new happens.

A twin of a hardware unit is its registers, as one NumPy record, and functions that advance them by
a cycle. The machine skips over stretches in which every cycle repeats the one before (see
`quiet`). For that, each register says what repeating means for it:

    same        equal every time. If it differs, something new has happened.
    falling     falls in equal steps; nothing new happens before it reaches its floor
    moving      goes on in equal steps, and nobody decides anything by it
    storage     never looked at: arrays, which change only together with a register that is `same`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PER_BEAT = -1       # as a floor: one more than the tiles that a beat can hold
WORD = np.dtype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Registers:
    """The registers of one unit. A floor is the least value at which its unit still repeats."""

    same: tuple[str, ...] = ()
    falling: Mapping[str, int] = field(default_factory=dict)        # name → floor
    moving: tuple[str, ...] = ()
    storage: Mapping[str, int] = field(default_factory=dict)        # name → length


class Layout:
    """A record with a record for each unit, in memory sorted by kind: first what is `same` of all
    units, then what is falling, then what is moving, then the storage.

    So a machine seen as an array of integers can be compared and moved on by whole slices. The
    units' records therefore overlap: each spans everything, and has its registers here and there.
    """

    def __init__(self, units: Mapping[str, Registers]):
        places: dict[str, dict[str, tuple[Any, int]]] = {name: {} for name in units}
        self.ends: list[int] = []       # of same, falling, moving, storage
        end = 0
        for kind in ("same", "falling", "moving", "storage"):
            for name, registers in units.items():
                for register in getattr(registers, kind):
                    length = registers.storage.get(register)
                    places[name][register] = ((WORD, (length,)) if length else WORD, end)
                    end += length or 1
            self.ends.append(end)
        self.dtype = _spread({name: (_spread(fields, end), 0) for name, fields in places.items()},
                             end)
        self.floors = [floor for registers in units.values()
                       for floor in registers.falling.values()]

    def place(self, unit: str, register: str) -> int:
        """Where a register is, in integers from the start."""
        fields = self.dtype[unit].fields
        assert fields is not None
        return int(fields[register][1]) // WORD.itemsize


def _spread(fields: Mapping[str, tuple[Any, int]], end: int) -> np.dtype[np.void]:
    """A record of `end` integers with fields where they are told to be."""
    return np.dtype({"names": list(fields), "formats": [each for each, _ in fields.values()],
                     "offsets": [WORD.itemsize * place for _, place in fields.values()],
                     "itemsize": WORD.itemsize * end})
