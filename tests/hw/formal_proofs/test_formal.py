"""Proofs for all time: tokens are counted, queues keep order, the arbiter starves nobody.

Each claim is also put to variants with one fault, and must find the run that shows it.
"""

import itertools
from dataclasses import replace

import pytest
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered

from microtron.hw.bus.arbiter import RoundRobin
from microtron.hw.fetch.command_queue import CommandQueue
from microtron.hw.fifo import RegisteredFifo, RegisterSlice, StagedFifo
from microtron.hw.tokens import Tokens
from microtron.isa.config import tiny

from .claims import (
    CommandsPassInOrder,
    FifoPassesInOrder,
    NobodyStarves,
    ReservedPassesInOrder,
    SlicePassesInOrder,
    StagedPassesInOrder,
    StreamPassesInOrder,
    TokensAreCounted,
)
from .formal import broken, counterexample, prove

SMALL = replace(tiny, token_bits=2)
WIDTH = 3


def later(right, wrong):
    """A fault whose counterexample takes seconds, for `make soak`."""
    return pytest.param(right, wrong, marks=pytest.mark.soak)


def fifo(depth, unit=SyncFIFO):
    return FifoPassesInOrder(unit(width=WIDTH, depth=depth), place="unit", depth=depth,
                             width=WIDTH, buffered=False)


def buffered_fifo(depth, unit=SyncFIFOBuffered):
    return FifoPassesInOrder(unit(width=WIDTH, depth=depth), place="unit", depth=depth,
                             width=WIDTH, buffered=True)


def command_queue(depth, unit=CommandQueue):
    return CommandsPassInOrder(unit(replace(tiny, queue_depth=depth)), depth=depth)


def registered_queue(depth, unit=RegisteredFifo):
    return StreamPassesInOrder(unit(WIDTH, depth), depth=depth, width=WIDTH)


def reserved_queue(depth, unit=RegisteredFifo):
    return ReservedPassesInOrder(unit(WIDTH, depth, reserved=True), depth=depth, width=WIDTH)


def staged_queue(depth, unit=StagedFifo):
    return StagedPassesInOrder(unit(WIDTH, depth), depth=depth, width=WIDTH)


def register_slice(unit=RegisterSlice):
    return SlicePassesInOrder(unit(WIDTH), width=WIDTH)


def test_token_counters_equal_posts_minus_takes_and_refuse_only_what_overflows():
    prove(TokensAreCounted(SMALL, Tokens), steps=5)


@pytest.mark.parametrize(("claim", "depth"), [
    (fifo, 1), *(pytest.param(claim, depth, marks=[pytest.mark.soak] if depth == 4 else [])
                 for claim, depth in itertools.product(
        (fifo, buffered_fifo, registered_queue, reserved_queue, staged_queue, command_queue),
        (2, 3, 4)))])
def test_queues_neither_lose_nor_double_nor_reorder_nor_hold_back(claim, depth):
    prove(claim(depth), steps=depth + 3)


def test_a_register_slice_neither_loses_nor_doubles_nor_reorders_nor_holds_back():
    prove(register_slice(), steps=5)


@pytest.mark.parametrize(("right", "wrong"), [
    ("put.ready.eq(room)", "put.ready.eq(1)"),                      # loses one
    ("with m.If(~waiting)", "with m.If(1)"),                        # overwrites the one that waits
    ("will_hold = waiting | self.put.valid", "will_hold = self.put.valid"),       # forgets it
])
def test_a_fault_in_the_register_slice_has_a_counterexample(right, wrong):
    assert counterexample(register_slice(broken(RegisterSlice, right, wrong)), steps=8)


@pytest.mark.parametrize(("right", "wrong"), [
    ("enters.eq(put.valid & put.ready)", "enters.eq(put.valid)"),   # overwrites when full
    ("(room & ~fills)", "1"),                                       # loses one
    ("take.ready & (some | enters)", "take.ready & some"),          # shows one again
    ("Mux(some, read.data, put.payload)", "put.payload"),           # overtaken
    ("Mux(consume == places - 1, 0, consume + 1)", "consume + 1"),  # depth 4: wrong word
])
def test_a_fault_in_the_registered_queue_has_a_counterexample(right, wrong):
    assert counterexample(registered_queue(4, broken(RegisteredFifo, right, wrong)), steps=10)


@pytest.mark.parametrize(("right", "wrong"), [
    ("written.addr.eq(produce)", "written.addr.eq(consume)"),       # overwrites the oldest
    ("some & ((behind != 1) | enters)", "some"),                    # shows what is not there
])
def test_a_fault_in_the_reserved_queue_has_a_counterexample(right, wrong):
    assert counterexample(reserved_queue(4, broken(RegisteredFifo, right, wrong)), steps=10)


@pytest.mark.parametrize("clients", [2, 3])
def test_the_arbiter_serves_who_requests_after_at_most_each_other_once(clients):
    prove(NobodyStarves(clients, RoundRobin), steps=clients + 2)


@pytest.mark.parametrize(("right", "wrong"), [
    later("after(~posted, posted & ~full)", "after(1, posted & ~full)"),    # a token too many
    ("after(~posted, posted & ~full)", "~full"),                    # one too few
    ("count == self.config.token_limit", "0"),                      # wraps
    later("after(0, posted & full)", "posted & full"),              # overflow though taken
    ("Mux(posted, some, many), posted", "1, posted"),               # granted without a token
    later("many & (posted | (count != 2))", "many"),                # granted the token just taken
    ("port.wait[giver] & ~some)", "~some)"),                        # waits unasked
    ("~Mux(port.wait[giver], many, some)", "~some"),                # a token for two
    (" & ~some & ~arrives)", " & ~some)"),                          # a cycle late
    ("~port.bars & ", ""),                                          # granted though barred
])
def test_a_fault_in_the_token_counters_has_a_counterexample(right, wrong):
    assert counterexample(TokensAreCounted(SMALL, broken(Tokens, right, wrong)), steps=6)


@pytest.mark.parametrize(("right", "wrong"), [
    ("(self.level != self.depth)", "(1)"),                          # overwrites
    ("self.r_rdy.eq(self.level != 0)", "self.r_rdy.eq(1)"),         # shows what is not there
    ("produce.eq(_incr(produce, self.depth))", "produce.eq(produce + 1)"),  # depth 3: lost
    ("r_port.addr.eq(consume)", "r_port.addr.eq(0)"),               # out of order
    ("do_read & ~do_write", "do_read"),                             # forgets one
])
def test_a_fault_in_the_queue_has_a_counterexample(right, wrong):
    assert counterexample(fifo(3, broken(SyncFIFO, right, wrong)), steps=10)


@pytest.mark.parametrize(("right", "wrong"), [
    ("do_inner_read  = inner_r_rdy & (~self.r_rdy | self.r_en)",
     "do_inner_read  = inner_r_rdy & ~self.r_rdy"),                 # every other cycle
    ("do_inner_read  = inner_r_rdy & (~self.r_rdy | self.r_en)",
     "do_inner_read  = inner_r_rdy"),                               # overwrites what is shown
    ("r_port.en.eq(do_inner_read)", "r_port.en.eq(1)"),             # shows the next too early
])
def test_a_fault_in_the_buffered_queue_has_a_counterexample(right, wrong):
    assert counterexample(buffered_fifo(3, broken(SyncFIFOBuffered, right, wrong)), steps=10)


@pytest.mark.parametrize(("right", "wrong"), [
    ("put.ready.eq(room)", "put.ready.eq(1)"),                      # loses when full
    ("held.eq(enters)\n", "held.eq(put.valid)\n"),                  # takes what it refuses
    ("(room & ~(enters & (count == self.depth - 1)))", "room"),     # loses when full
    ("self.empty.eq(~held & ~take.valid)", "self.empty.eq(~take.valid)"),   # overlooks the last
])
def test_a_fault_in_the_staged_queue_has_a_counterexample(right, wrong):
    assert counterexample(staged_queue(3, broken(StagedFifo, right, wrong)), steps=10)


@pytest.mark.parametrize(("right", "wrong"), [
    ("with m.If(room):", "with m.If(1):"),                          # overwrites the one that waits
    ("with m.If(moves):", "with m.If(1):"),                         # overwrites the head
    ("(held & ~moves)", "held"),                                    # shows one again
    ("take.valid.eq(held | (take.valid & ~take.ready))", "take.valid.eq(held)"),    # loses one
    ("self.empty.eq(~held & ~take.valid)", "self.empty.eq(~held)"),     # overlooks the last
])
def test_a_fault_in_a_staged_queue_of_two_places_has_a_counterexample(right, wrong):
    assert counterexample(staged_queue(2, broken(StagedFifo, right, wrong)), steps=10)


@pytest.mark.parametrize(("right", "wrong"), [
    ("self.grant + 1", "self.grant"),                               # the same again
    ("with m.If(self.served)", "with m.If(0)"),                     # fixed priority
    ("(head + place) % self.clients", "place"),                     # fixed priority
    ("with m.If(self.requests[client])", "with m.If(1)"),           # to one that did not ask
])
def test_a_fault_in_the_arbiter_has_a_counterexample(right, wrong):
    assert counterexample(NobodyStarves(3, broken(RoundRobin, right, wrong)), steps=8)
