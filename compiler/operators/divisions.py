"""Sizes of the parts that an extent can be divided into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from .cost_model import Column

Knobs = TypeVar("Knobs")

SHRINK = 0.75               # from one size to the next, at least, where there are many


def even_sizes(extent: int) -> list[int]:
    """One size for each number of parts that is possible, the largest size first. All parts but the
    last have this size, and no smaller size gives the same number of parts."""
    sizes = [extent]
    while sizes[-1] > 1:
        parts = -(-extent // (sizes[-1] - 1))
        sizes.append(-(-extent // parts))
    return sizes


def fair_sizes(extent: int) -> list[int]:
    """The even sizes whose last part is at least half as large as the others: a smaller one costs
    more than it saves."""
    return [size for size in even_sizes(extent) if 2 * ((extent - 1) % size + 1) >= size]


def some_sizes(extent: int) -> list[int]:
    """Sizes worth trying, the largest first: those that divide the extent if there are enough of
    them, otherwise some that nearly divide it. The size 1 is always among them."""
    sizes = even_sizes(extent)
    divisors = [size for size in sizes if extent % size == 0]
    if len(divisors) >= extent.bit_length():
        return divisors
    found = sizes[:1]
    for size in sizes:
        if size <= found[-1] * SHRINK or size == 1 != found[-1]:
            found.append(size)
    return found


def grid(kind: type[Knobs], **sizes: Sequence[int]) -> Knobs:
    """Knobs in columns, one row for each combination of sizes; the last size varies fastest."""
    columns = np.meshgrid(*(np.array(each) for each in sizes.values()), indexing="ij")
    return knob_columns(kind, {name: column.ravel() for name, column in zip(sizes, columns,
                                                                            strict=True)})


def knob_columns(kind: type[Knobs], columns: Mapping[str, Column]) -> Knobs:
    """Knobs whose fields are these columns."""
    return kind(**columns)
