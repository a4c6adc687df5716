"""Affine forms as tables of numbers, and how tables become arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np

from ....expression.affine import Affine
from ....expression.expression import Axis
from . import nest_arrays as tables
from .words import UnsupportedError


class FormTable:
    """Forms over the values of loops, each of which has a slot."""

    def __init__(self) -> None:
        self.slots: dict[Axis, int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._constants: list[int] = []                 # of forms ...
        self._ends = [0]                                # ... and where their terms end,
        self._term_slots: list[int] = []                # each with the slot of an axis ...
        self._coefficients: list[int] = []

    def slot(self, axis: Axis) -> int:
        """Where the value of an axis lies; beside it is room for a counter."""
        return self.slots.setdefault(axis, 2 * len(self.slots))

    def number(self, form: Affine) -> int:
        """The number of a form. The value of each of its axes is known where it is used."""
        key = (form.constant, *form.terms.items())
        if key not in self._numbers:
            self._numbers[key] = self.add(form)
        return self._numbers[key]

    def add(self, form: Affine) -> int:
        """The number of a form that may be there already."""
        if form.terms:
            try:
                self._term_slots += [self.slots[axis] for axis in form.terms]
            except KeyError:
                raise UnsupportedError from None
            self._coefficients += form.terms.values()
        self._constants.append(form.constant)
        self._ends.append(len(self._term_slots))
        return len(self._constants) - 1

    def add_row(self, forms: Iterable[Affine]) -> int:
        """The number of the first of several, one after the other."""
        first = len(self._constants)
        for each in forms:
            self.add(each)
        return first

    def columns(self) -> tuple[list[int], ...]:
        """In the order of `nest_arrays.Forms`."""
        return self._ends, self._term_slots, self._coefficients, self._constants


def slices_of(columns: Sequence[Sequence[int]]) -> list[tables.Numbers]:
    """Arrays of several columns, made at once: there are many, and all are short."""
    ends = [0, *accumulate(map(len, columns))]
    numbers = np.array([*chain.from_iterable(columns)], np.int64)
    return [numbers[begin:end] for begin, end in pairwise(ends)]


def records_of(given: Sequence[tuple[Sequence[Sequence[int]], np.dtype[np.void]]]) -> list[
        tables.Records]:
    """The same for rows of several kinds."""
    found = slices_of([[*chain.from_iterable(rows)] for rows, _ in given])
    return [each.view(kind) for each, (_, kind) in zip(found, given, strict=True)]
