"""Checks that the ALU repeats its period while cycles are skipped (see `skip_repeats`).

It does if all its steps belong to one loop and stay in range, and none of them has to wait for a
pending write.
"""

from __future__ import annotations

from ..twins.alu.alu_results import DEPTH, PLACES, TICKETS
from ..twins.record_types import Code, Machine, Settings, Unit
from ..twins.registers import inline

FOREVER = 1 << 62


@inline
def even_steps(machine: Machine, saved: Machine, code: Code, config: Settings, times: int) -> int:
    """For how many periods, at most `times`, the ALU repeats the last one; 0 if that is not
    certain."""
    results = machine.alu_results
    if not _moves_evenly(machine, saved) or not _lanes_go_on(machine, saved):
        return 0
    entered = results.entered - saved.alu_results.entered        # in a period
    retired = results.head - saved.alu_results.head
    if entered != retired:
        times = min(times, _cycles_until_last_ticket(machine, saved, entered - retired))
    if retired:
        times = min(times, _count_alike_tickets(results) // retired)
    if entered == 0 or times == 0:
        return times
    if (not _walks_stay_in_one_loop(machine, saved, code, entered)
        or not _has_no_hazard(machine, saved, code, entered, times * entered)
        or not _walks_are_inside(machine, saved, code, config, entered, times * entered)):
        return 0
    return times


@inline
def _cycles_until_last_ticket(machine: Machine, saved: Machine, more: int) -> int:
    """For how many cycles the number of steps in flight can keep changing before the tickets run
    out, or a ticket becomes free again. That could happen in the middle of a period of several
    cycles, so the result is then 0."""
    under_way = machine.alu_results.under_way
    if (machine.clock.now - saved.clock.now > 1
            or max(under_way, saved.alu_results.under_way) == DEPTH):
        return 0
    return DEPTH - 1 - under_way if more > 0 else FOREVER


@inline
def _lanes_go_on(machine: Machine, saved: Machine) -> bool:
    """Whether the lanes are unchanged, or one period closer to the next edge. If an edge passed
    during the period, the remaining ones may look the same but are at other distances."""
    nearer = saved.alu_results.edge_in - machine.alu_results.edge_in
    return nearer in (0, machine.clock.now - saved.clock.now)


@inline
def _moves_evenly(machine: Machine, saved: Machine) -> bool:
    """Whether copies of tile indices advance like the originals. In the first period after a new
    row or instruction they may not."""
    issue, then = machine.alu_issue, saved.alu_issue
    left = machine.alu_sequencer.lhs - saved.alu_sequencer.lhs
    right = machine.alu_sequencer.rhs - saved.alu_sequencer.rhs
    if issue.front and ((issue.front_reads_left and issue.front_left - then.front_left != left)
                        or (issue.front_reads_right
                            and issue.front_right - then.front_right != right)):
        return False
    if issue.next and ((issue.next_reads_left and issue.next_left - then.next_left != left)
                       or (issue.next_reads_right
                           and issue.next_right - then.next_right != right)):
        return False
    return issue.spare == 0 or (
        (issue.spare_reads_left == 0 or issue.spare_left - then.spare_left == left)
        and (issue.spare_reads_right == 0 or issue.spare_right - then.spare_right == right))


@inline
def _walks_are_inside(machine: Machine, saved: Machine, code: Code, config: Settings, entered: int,
                      steps: int) -> bool:
    """Whether the next steps of the ALU stay in range."""
    now, then = machine.alu_sequencer, saved.alu_sequencer
    row, ahead = code[now.of], steps - 1
    dst = now.dst + ahead * ((now.dst - then.dst) // entered)
    lhs = now.lhs + ahead * ((now.lhs - then.lhs) // entered)
    rhs = now.rhs + ahead * ((now.rhs - then.rhs) // entered)
    return (_within(now.dst, dst, config.out_tiles if row.to_out else config.acc_tiles)
            and (row.reads_left == 0 or _within(now.lhs, lhs, config.acc_tiles))
            and (row.reads_right == 0 or _within(now.rhs, rhs, config.acc_tiles)))


@inline
def _within(one: int, other: int, tiles: int) -> bool:
    return min(one, other) >= 0 and max(one, other) < tiles


@inline
def _count_alike_tickets(results: Unit) -> int:
    """How many tickets can retire before one that ends its instruction or has another
    destination."""
    newest = (results.head + results.tickets - 1) & PLACES - 1
    for number in range(results.tickets):
        place = (results.head + number) & PLACES - 1
        if (results.last[place] or results.outside[place]
                or results.kind[place] != results.kind[newest]):
            return number
    return FOREVER


@inline
def _walks_stay_in_one_loop(machine: Machine, saved: Machine, code: Code, entered: int) -> bool:
    """Whether all steps of a period belong to the same loop, so that all strides are equal. An
    outer loop does not qualify if parameters are read in it."""
    now, then = machine.alu_sequencer, saved.alu_sequencer
    issue, row = machine.alu_issue, code[now.of]
    if row.requantize and then.inner_left == row.inner and then.middle_left == row.middle:
        return False            # the period began with parameter reads, which do not repeat
    if (issue.front_before | issue.next_before | issue.spare_before
            or issue.delays != saved.alu_issue.delays):
        return False            # nor does a period in which a step waited for another
    inner = then.inner_left - now.inner_left
    middle = then.middle_left - now.middle_left
    outer = then.outer_left - now.outer_left
    return ((inner == entered and middle == 0 and outer == 0)
            or (inner == 0 and middle == entered and outer == 0 and now.inner_left == 1)
            or (inner == 0 and middle == 0 and outer == entered and now.inner_left == 1
                and now.middle_left == 1 and row.requantize == 0))


@inline
def steps_before(now: Unit, then: Unit, code: Code) -> int:
    """The number of steps of the loop before this period."""
    row = code[now.of]
    if now.inner_left != then.inner_left:
        return row.inner - then.inner_left
    if now.middle_left != then.middle_left:
        return row.middle - then.middle_left
    return row.outer - then.outer_left


@inline
def _has_no_hazard(machine: Machine, saved: Machine, code: Code, entered: int, steps: int) -> bool:
    """Whether no step reads a tile with a pending write of an earlier one."""
    now, then, results = machine.alu_sequencer, saved.alu_sequencer, machine.alu_results
    row = code[now.of]
    writes_acc = row.to_out == 0
    if results.pending == 0 and not writes_acc:
        return True
    dst_stride = (now.dst - then.dst) // entered
    if row.reads_left and not _clear(results, writes_acc, now.dst, dst_stride, now.lhs,
                                     (now.lhs - then.lhs) // entered, steps):
        return False
    return row.reads_right == 0 or _clear(results, writes_acc, now.dst, dst_stride, now.rhs,
                                          (now.rhs - then.rhs) // entered, steps)


@inline
def _clear(results: Unit, writes_acc: bool, dst: int, dst_stride: int, source: int, stride: int,
           steps: int) -> bool:
    """Whether reads from `source` on conflict neither with pending writes nor with those from `dst`
    on."""
    low = min(source, source + (steps - 1) * stride)
    high = max(source, source + (steps - 1) * stride)
    for number in range(results.tickets):
        target = results.target[(results.head + number) & PLACES - 1]
        if results.pending >> number & 1 and low <= target <= high:
            return False
    if not writes_acc:
        return True
    if stride == dst_stride:
        ahead = dst - source            # a hazard if it is a small multiple of the stride
        if stride == 0:
            return ahead != 0
        return ahead % stride != 0 or not 0 < ahead // stride <= TICKETS
    return (min(dst, dst + (steps - 1) * dst_stride) > high
            or max(dst, dst + (steps - 1) * dst_stride) < low)


@inline
def renew_tickets(machine: Machine, saved: Machine, times: int) -> None:
    """Record the tickets of the steps in the skipped periods; only the last ones remain."""
    results = machine.alu_results
    entered = results.entered - saved.alu_results.entered
    if entered == 0:
        return
    stride = (machine.alu_sequencer.dst - saved.alu_sequencer.dst) // entered
    free = results.head + results.tickets
    newest = free - 1 & PLACES - 1
    of, kind, target = results.of[newest], results.kind[newest], results.target[newest]
    for number in range(max(0, times * entered - PLACES), times * entered):
        place = free + number & PLACES - 1
        results.of[place], results.kind[place] = of, kind
        results.target[place] = target + (number + 1) * stride
        results.last[place] = results.outside[place] = 0
