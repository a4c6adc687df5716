"""Compiled code as plain Python, which checks what compiled code takes for granted: every index is
inside its array, and every number fits into its register."""

from __future__ import annotations

import numpy as np

from microtron.sim.llvm.entry import BoundArray
from microtron.sim.llvm.values import NUMBER, Array, Record


class Checked:
    """An array of NumPy that takes and gives plain integers, or records of them."""

    def __init__(self, array):
        object.__setattr__(self, "array", array)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, place):
        if isinstance(place, slice):
            return Checked(self.array[place])
        found = self.array[self._inside(place)]
        if self.array.dtype.names:
            start, = self._inside(place)
            return Fields(self.array[start:start + 1])
        return Checked(found) if found.ndim else int(found)

    def __setitem__(self, place, value):
        if isinstance(place, slice):
            assert len(self.array[place]) == len(value)
            self.array[place] = value.array
        else:
            self.array[self._inside(place)] = value     # NumPy refuses what does not fit
            assert self.array[place] == value

    def __iter__(self):
        return iter(self.array.tolist())

    def _inside(self, place):
        places = place if isinstance(place, tuple) else (place,)
        for each, length in zip(places, self.array.shape, strict=False):
            assert 0 <= each < length, f"{each} is outside of {length}"
        return places


class Fields:
    """A record, as an array of one."""

    def __init__(self, array):
        object.__setattr__(self, "array", array)

    def __getattr__(self, name):
        field = self.array[name]
        if field.dtype.names:
            return Fields(field)
        return Checked(field[0]) if field.ndim > 1 else int(field[0])

    def __setattr__(self, name, value):
        self.array[name] = value
        assert self.array[name] == value


def interpret(entry):
    """As an entry of compiled code, without compiling anything."""
    return lambda *given: entry.function(*map(_check, entry.kinds.values(), given))


def _check(kind, value):
    if isinstance(value, BoundArray):
        same = value.array.dtype == kind.dtype
        value = value.array if same else np.ndarray(kind.shape, kind.dtype, value.array)
    match kind:
        case Array():
            return Checked(value)
        case Record():
            return Fields(value)
        case tuple():
            return type(kind)._make(map(_check, kind, value))
    assert kind is NUMBER
    return int(value)
