"""Odds of branches: counted right, of the simulator as it is, and without effect on results."""

import ctypes

import numpy as np

from microtron.base.machine_code import Library, object_file
from microtron.sim.cycle import loop
from microtron.sim.llvm import branch_odds
from microtron.sim.llvm.branch_odds import COUNTS, MOST, WHOLE, Counting, write_table
from microtron.sim.llvm.entry import ENTRY, Entry
from microtron.sim.llvm.values import NUMBER


def collatz(number: int, steps: int) -> int:
    while number != 1 and steps < 1000:
        if number & 1:
            number = 3 * number + 1
        else:
            number >>= 1
        steps += 1
    return steps


KINDS = {"number": NUMBER, "steps": NUMBER}
ODD, DONE = ("test_branch_odds.collatz", "number & 1"), ("test_branch_odds.collatz", "number != 1")


def entry():
    return Entry(collatz, KINDS, name="test", sources="")


def run(library, *numbers):
    words = np.array(numbers, np.int64)
    return library.function(ENTRY, ctypes.c_int64, ctypes.c_int64)(words.ctypes.data)


def test_counts_are_those_of_a_run():
    odds = Counting()
    library = Library(object_file(entry().text(odds)))
    assert run(library, 27, 0) == 111
    counts = (ctypes.c_int64 * (2 * MOST)).from_address(library.address(COUNTS))

    def of(key):
        place = odds.places[key]
        return counts[2 * place], counts[2 * place + 1]
    assert of(ODD) == (70, 41)
    assert of(DONE) == (1, 111)


def test_odds_reach_llvm_and_change_no_result(monkeypatch, tmp_path):
    without = entry().text()
    monkeypatch.setattr(branch_odds, "TABLE", tmp_path / "odds.csv")
    assert write_table({ODD: (70, 41), DONE: (1, 111), ("nobody", "x"): (0, 0)}) == 1
    branch_odds._known.cache_clear()
    try:
        text = entry().text()
    finally:
        branch_odds._known.cache_clear()
    assert "branch_weights" not in without
    assert f'!"branch_weights", i32 {round(WHOLE * 111 / 112) + 1}, i32 ' in text
    assert run(Library(object_file(text)), 27, 0) == 111


def test_most_of_the_table_is_about_the_simulator_as_it_is():
    odds = Counting()
    loop.compiled.text(odds)
    known = set(branch_odds._known())
    assert len(known & set(odds.places)) > 0.9 * len(known), "run tools/branch_odds.py"
    assert len(known) > 500
