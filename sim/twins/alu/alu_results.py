"""Twin of hw.alu.alu_results: a ticket for each step in flight, and the writes in order."""

from __future__ import annotations

from ....isa.instructions import Engine
from ..record_types import Unit, Wires
from ..registers import Registers, inline

ALU = int(Engine.ALU)
DEPTH = 16                  # most steps in flight: issued, and not yet written
TICKETS = DEPTH + 3         # of these steps, and of those waiting to be issued
PLACES = 32                 # size of the ring of tickets, a power of two
LATENCY = 14                # cycles from the issue of a step until its result is at the head,
                            # if a vector takes one cycle
NOWHERE, ACC, OUT = range(3)            # destination of a ticket's result

# `tickets` counts tickets, including those of steps yet to be issued; the hardware has only those
# of steps `under_way`, `results` of which have their result. `pending` is the set of those that
# will write to acc, and `begun` counts instructions. The oldest ticket is at `head` modulo PLACES.
# Steps leave the lanes in the pattern in which they were issued, `alu_latency` cycles later. The
# contents of the lanes are run-length encoded: whether a step was `issued` in the last cycle,
# whether a result `arrives`, in how many cycles that changes, and the set of further changes, bit k
# for one k cycles after the first.
REGISTERS = Registers(
    same=("results", "issued", "arrives", "edges", "pending", "begun"),
    falling={"edge_in": 2}, moving=("tickets", "under_way", "head", "entered"),
    storage={"of": PLACES, "kind": PLACES, "target": PLACES, "last": PLACES, "outside": PLACES})


def latency(vector_cycles: int) -> int:
    """If a vector takes several cycles, selecting its parts takes one more, and they arrive one by
    one."""
    return LATENCY + (vector_cycles if vector_cycles > 1 else 0)


@inline
def oldest(results: Unit) -> int:
    return results.head & PLACES - 1


@inline
def wants_acc(results: Unit, halt: int) -> bool:
    """Whether the oldest result requests a write to the accumulator."""
    return results.results != 0 and halt == 0 and results.kind[oldest(results)] == ACC


@inline
def retire(results: Unit, wires: Wires, halt: int) -> bool:
    """Write the oldest result, if there is one and its write is granted. Returns whether its ticket
    is freed."""
    place = oldest(results)
    wires.alu_end = -1
    wires.alu_fault_position = results.of[place]
    wires.alu_fault = results.results != 0 and results.outside[place] != 0
    over = (results.results != 0 and halt == 0 and results.outside[place] == 0
            and (results.kind[place] != ACC or wires.alu_write_granted != 0))
    if over and results.last[place]:
        wires.alu_end = results.of[place]
    return over


@inline
def writes_to(results: Unit, reads_left: int, left: int, reads_right: int, right: int,
              retired: int) -> int:
    """The tickets with writes to these tiles that are still pending after this cycle."""
    if results.pending >> retired == 0 or not (reads_left or reads_right):
        return 0
    one = left if reads_left else right
    other = right if reads_right else left
    found = 0                               # by place; without a branch, so that vectors do it
    for place in range(PLACES):
        target = results.target[place]
        found |= ((target == one) | (target == other)) << place
    head = oldest(results)
    by_age = found >> head | found << PLACES - head
    return by_age & results.pending & -1 << retired


@inline
def enter(results: Unit, position: int, kind: int, target: int, last: int, outside: int) -> None:
    """Allocate the ticket of a step."""
    place = (results.head + results.tickets) & PLACES - 1
    results.of[place], results.kind[place], results.target[place] = position, kind, target
    results.last[place], results.outside[place] = last, outside
    if kind == ACC:
        results.pending |= 1 << results.tickets
    results.tickets += 1
    results.entered += 1


@inline
def advance(results: Unit, issued: int, retired: int, latency: int) -> None:
    """End the cycle, after `enter`."""
    _move_lanes(results)
    results.results += results.arrives - retired
    results.under_way += issued - retired
    if issued != results.issued:
        results.issued = issued
        if results.edges == 0:
            results.edge_in = latency
        results.edges |= 1 << latency - results.edge_in
    if retired:
        results.tickets -= 1
        results.pending >>= 1
        results.head += 1


@inline
def _move_lanes(results: Unit) -> None:
    if results.edges == 0:
        return
    results.edge_in -= 1
    if results.edge_in == 0:
        results.arrives = 1 - results.arrives
        results.edges >>= 1
        if results.edges:
            results.edge_in = 1
            while results.edges & 1 == 0:
                results.edges >>= 1
                results.edge_in += 1


@inline
def history(results: Unit, latency: int) -> int:
    """The cycles in which steps were issued, bit k for k cycles ago: those of all that are in the
    lanes, and of the one that left them last."""
    issued, cycles = int(results.arrives), int(results.arrives)
    since = latency - results.edge_in       # cycles since the first of the changes
    for number in range(latency):
        cycle = latency - 1 - number
        if since >= cycle and results.edges >> since - cycle & 1:
            issued = 1 - issued
        cycles = cycles << 1 | issued
    return cycles


@inline
def _count_ones(history: int, latency: int) -> int:
    ones = 0
    for number in range(latency + 1):
        ones += history >> number & 1
    return ones


@inline
def follows(results: Unit, history: int, latency: int) -> bool:
    """Whether no result has ever waited for its write: all that is in flight is in the lanes."""
    return (_count_ones(history, latency) == results.under_way
            and results.results == results.arrives)


@inline
def set_lanes(results: Unit, history: int, latency: int, issued: int) -> None:
    """Set everything that follows from the history, as long as no result waits for its write.
    `issued` counts the steps that it has more."""
    results.issued = history & 1
    results.arrives = results.results = history >> latency & 1
    changes, edges, first = history ^ history >> 1, 0, -1
    for number in range(latency):
        cycle = latency - 1 - number
        if changes >> cycle & 1:
            if first < 0:
                first = cycle
            edges |= 1 << first - cycle
    results.edges = edges
    results.edge_in = latency - first if edges else 0
    under_way = _count_ones(history, latency)
    retired = results.under_way + issued - under_way
    results.under_way = under_way
    results.tickets -= retired
    results.head += retired
