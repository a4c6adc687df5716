"""The queue between two clocks, proven for clocks of any kind, and faults that must show."""

import pytest

from microtron.boards.crossing.async_fifo import AsyncFifo

from ...hw.formal_proofs.formal import broken, counterexample, prove
from .crossing_claims import CrossesInOrder

WIDTH = 2


@pytest.mark.parametrize("depth", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_items_cross_between_any_two_clocks_in_order_and_none_is_lost(depth):
    prove(CrossesInOrder(AsyncFifo, depth=depth, width=WIDTH), steps=2 * depth + 8)


@pytest.mark.parametrize(("right", "wrong", "names"), [
    # Pointers that are plain numbers: right, but for two bits that change together.
    ("0b11 << self.bits - 2", "0b10 << self.bits - 2", {"gray": lambda number: number}),
    ("self.produced.eq(gray(following))", "self.produced.eq(gray(produce))", {}),   # a step behind
    ("0b11 << self.bits - 2", "0b01 << self.bits - 2", {}),         # full too early or too late
    ("self.put.ready.eq(~full)", "self.put.ready.eq(1)", {}),       # loses what it does not store
    ("self.consumed != produced_seen", "produced_seen != 0", {}),    # shows what is not there
    ("(~held | self.take.ready)", "1", {}),                         # overwrites the head
    ("with m.Elif(self.take.ready)", "with m.Elif(0)", {}),         # shows one again
    ("self.written.addr.eq(produce)", "self.written.addr.eq(self.produced)", {}),
])
def test_a_fault_in_the_queue_has_a_counterexample(right, wrong, names):
    claim = CrossesInOrder(broken(AsyncFifo, right, wrong, **names), depth=2, width=1)
    assert counterexample(claim, steps=12)
