"""Functions that numba compiles are called without it, with all that it was given."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from microtron.base.compiled.deferred_functions import OPTIONS, Deferred, Entry, bind
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Program
from microtron.isa.stream import encode
from microtron.isa.verification.derive_tokens import with_tokens

KIND = np.dtype([("number", "i8"), ("pair", "i2", (2,))])


class Inner(NamedTuple):
    bytes: np.ndarray
    rows: np.ndarray


class Outer(NamedTuple):
    first: Inner
    several: tuple[np.ndarray, ...]
    factor: int


class Found(NamedTuple):
    total: int
    largest: int


def _add(left: int, right: int) -> int:
    return left + right


add = Deferred(_add, OPTIONS)


def _summarize(given: Outer, table: np.ndarray, negate: bool) -> Found:
    total, largest = 0, 0
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            total = add(total, table[row, column] * (row + 1))
    for each in given.first.rows:
        total = add(total, each["number"] * given.factor + each["pair"][1])
    for some in given.several:
        for value in some:
            largest = max(largest, value)
    given.first.bytes[0] = 7
    return Found(-total if negate else total, largest)


summarize = Entry(_summarize, "little thing", sources=Path(__file__).read_text())


def _example(seed: int) -> tuple[Outer, np.ndarray, bool]:
    made = np.random.default_rng(seed)
    rows = np.zeros(made.integers(0, 4), KIND)
    rows["number"] = made.integers(-9, 9, len(rows))
    rows["pair"] = made.integers(0, 9, (len(rows), 2))
    several = tuple(made.integers(0, 99, made.integers(0, 5)) for _ in range(3))
    return (Outer(Inner(np.zeros(1, np.uint8), rows), several, int(made.integers(-5, 5))),
            made.integers(-99, 99, made.integers(1, 5, 2)).astype(np.int32), bool(seed % 2))


def test_arguments_arrive_and_results_return():
    for seed in range(20):
        given, table, negate = _example(seed)
        found = summarize(given, table, negate)
        assert isinstance(found, Found)
        assert given.first.bytes[0] == 7
        assert found == _summarize(given, table, negate)
        assert summarize(bind(given), bind(table), negate) == found


def test_read_only_arrays_are_another_kind_of_argument():
    given, table, _ = _example(3)
    frozen = table.copy()
    frozen.flags.writeable = False
    assert summarize(given, frozen, True) == summarize(given, table, True)


def test_what_is_not_in_a_row_is_refused():
    with pytest.raises(AssertionError, match="one after the other"):
        bind(np.zeros((3, 4))[:, :2])


SCRIPT = """
import sys
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Program
from microtron.isa.stream import encode
from microtron.isa.verification.derive_tokens import with_tokens
with_tokens(Program(tiny, encode([Sync()])))
print("numba" in sys.modules)
"""


def test_tokens_are_derived_without_numba():
    """A new process says nothing, because it compiles nothing."""
    with_tokens(Program(tiny, encode([Sync()])))        # compiles
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                          check=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
