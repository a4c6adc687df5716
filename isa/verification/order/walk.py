"""Walks a stream in program order and knows, at each instruction, what is surely complete.

Every token counter has one producer and one consumer, both in order, so the k-th wait is always
satisfied by the k-th post, whatever the timing: the order that tokens give is a fact of the
stream. `walk` keeps it as vector clocks (how many instructions of each engine are complete
before this one starts) and, in shadow memory, who touched each cell last. A conflict with an
instruction that the clock does not cover is a race; `walk` either reports it or, when it derives
tokens, adds the wait and the post that close it. Compiled with numba: linear in the number of
instructions, whatever their loops.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np

from .accesses import DRAM, Table
from .feeds import Contents, Feeds, bring
from .footprints import Numbers
from .jit import entry_point, helper, inline_always
from .shadow import ENGINES, Shadow, touch_pad
from .shadow_dram import DramShadow, touch_dram

DONE, STARVED, OUTSIDE, TOO_MUCH = range(4)     # how a walk ends

RACE = np.dtype([           # an instruction that no token orders after an earlier one
    ("instruction", "i8"), ("space", "i8"),
    ("engine", "i8"), ("sequence", "i8"),       # the earlier one
])


class Code(NamedTuple):
    """The stream: what each instruction waits for, posts and touches."""

    engine: Numbers     # -1 is a barrier
    wait: Numbers       # filled when tokens are derived
    post: Numbers
    rows: Table         # the access table ...
    row_begin: Numbers  # ... and where each instruction's rows begin
    feeds: Feeds        # loads of micro-ops ...
    feed_begin: Numbers # ... and where each instruction's begin: it has one or none
    contents: Contents  # of the segments they come from


class Order(NamedTuple):
    """What the walk finds out; and what must be complete before each instruction starts, whatever
    its data demand, when tokens are derived."""

    least: Numbers
    clocks: Numbers     # of each instruction
    members: Numbers    # instructions of each engine, in order
    races: Table
    found: Numbers      # one number: races written down


class State(NamedTuple):
    """Where a walk stands. Engines count instructions; pairs of engines count tokens."""

    sequence: Numbers   # instructions of each engine so far
    floor: Numbers      # ... and as of the last barrier
    latest: Numbers     # the clock of each engine's last instruction
    given: Numbers      # tokens posted, by poster and taker
    taken: Numbers
    posters: Numbers    # who posted each of them
    need: Numbers       # what an instruction needs to be complete, by engine
    before: Numbers     # ... before its next access is looked at


def new_order(instructions: int, most_races: int) -> Order:
    return Order(np.zeros((instructions, ENGINES), np.int64),
                 np.zeros((instructions, ENGINES), np.int64),
                 np.zeros((ENGINES, instructions), np.int64),
                 np.zeros(most_races, RACE), np.zeros(1, np.int64))


def new_state(tokens: int) -> State:
    """The state before the first instruction of a stream that posts this many tokens."""
    numbers, pairs = (ENGINES,), (ENGINES, ENGINES)
    return State(*(np.zeros(shape, np.int64) for shape in (
        numbers, numbers, pairs, pairs, pairs, (*pairs, tokens), numbers, numbers)))


@entry_point
def walk(code: Code, pads: Shadow, dram: DramShadow, result: Order, state: State,
         derive: bool) -> tuple[int, int, int]:
    """Returns how the walk ended, at which instruction, and the engine it starved for."""
    for now in range(len(code.engine)):
        own = code.engine[now]
        if own < 0:
            _raise(state.floor, state.sequence)
            continue
        result.members[own, state.sequence[own]] = now
        state.sequence[own] += 1
        clock = result.clocks[now]
        _raise(clock, state.latest[own])
        _raise(clock, state.floor)
        if not derive:
            starved = _take(code, now, own, clock, result, state)
            if starved >= 0:
                return STARVED, now, starved
        end = _touch(code, now, own, pads, dram, result, state)
        if end != DONE:
            return end, now, -1
        if derive:
            _satisfy(state.need, clock, code, result, own, now)
        for at in range(code.feed_begin[now], code.feed_begin[now + 1]):
            bring(code.feeds, at, code.contents, pads.uops)
        clock[own] = state.sequence[own]
        _raise(state.latest[own], clock)
        if not derive:
            _give(code, now, own, state)
    return DONE, len(code.engine), -1


@helper
def _take(code: Code, now: int, own: int, clock: Numbers, result: Order, state: State) -> int:
    """Take the tokens that an instruction waits for; what their posters knew is known then.
    Returns the engine of one that is not there, or -1."""
    for other in range(ENGINES):
        if code.wait[now] >> other & 1:
            number = state.taken[other, own]
            if number == state.given[other, own]:
                return other
            _raise(clock, result.clocks[state.posters[other, own, number]])
            state.taken[other, own] += 1
    return -1


@helper
def _give(code: Code, now: int, own: int, state: State) -> None:
    for other in range(ENGINES):
        if code.post[now] >> other & 1:
            state.posters[own, other, state.given[own, other]] = now
            state.given[own, other] += 1


@helper
def _raise(numbers: Numbers, least: Numbers) -> None:
    """Let no number be less than its counterpart."""
    for each in range(ENGINES):
        numbers[each] = max(numbers[each], least[each])


@inline_always
def _touch(code: Code, now: int, own: int, pads: Shadow, dram: DramShadow, result: Order,
           state: State) -> int:
    """All accesses of an instruction. `need` grows to the latest instructions they conflict with,
    and what makes it grow is written down as a race, unless the instruction is no good at all."""
    need, before, sequence = state.need, state.before, state.sequence[own]
    races = result.found[0]
    for other in range(ENGINES):
        need[other] = before[other] = max(result.clocks[now, other], result.least[now, other])
    for at in range(code.row_begin[now], code.row_begin[now + 1]):
        row = code.rows[at]
        if row.space < DRAM:
            if not touch_pad(row, pads, need, own, sequence):
                result.found[0] = races
                return OUTSIDE
        elif not touch_dram(code.rows, at, dram, need, sequence):
            result.found[0] = races
            return TOO_MUCH
        for other in range(ENGINES):
            if need[other] > before[other]:
                before[other] = need[other]
                if result.found[0] < len(result.races):
                    race = result.races[result.found[0]]
                    race.instruction, race.space = now, row.space
                    race.engine, race.sequence = other, need[other]
                    result.found[0] += 1
    return DONE


@helper
def _satisfy(need: Numbers, clock: Numbers, code: Code, result: Order, own: int,
             now: int) -> None:
    """Add the waits that `need` asks for. The latest instruction first: it may cover the rest."""
    while True:
        chosen, latest = -1, -1
        for other in range(ENGINES):
            if need[other] > clock[other] and result.members[other, need[other] - 1] > latest:
                chosen, latest = other, result.members[other, need[other] - 1]
        if chosen < 0:
            return
        code.wait[now] |= 1 << chosen
        code.post[latest] |= 1 << own
        _raise(clock, result.clocks[latest])
