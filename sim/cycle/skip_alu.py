"""Whether the ALU keeps moving evenly while cycles are skipped (see `skip_repeats`).

It does if all its steps belong to one loop and stay inside the scratchpads, and none of them has to
wait for what another has yet to write.
"""

from __future__ import annotations

from ..twins.alu.alu_results import DEPTH, PLACES, TICKETS
from ..twins.record_types import Code, Machine, Settings, Unit
from ..twins.registers import inline

FOREVER = 1 << 62


@inline
def even_steps(machine: Machine, kept: Machine, code: Code, config: Settings, times: int) -> int:
    """In how many periods, at most `times`, the ALU goes on as in the last one; 0 if that is not
    certain."""
    results = machine.alu_results
    if not _moves_evenly(machine, kept) or not _lanes_go_on(machine, kept):
        return 0
    entered = results.entered - kept.alu_results.entered        # in a period
    retired = results.head - kept.alu_results.head
    if entered != retired:
        times = min(times, _cycles_until_last_ticket(machine, kept, entered - retired))
    if retired:
        times = min(times, _count_alike_tickets(results) // retired)
    if entered == 0 or times == 0:
        return times
    if (not _walks_stay_in_one_loop(machine, kept, code, entered)
        or not _has_no_hazard(machine, kept, code, entered, times * entered)
        or not _walks_are_inside(machine, kept, code, config, entered, times * entered)):
        return 0
    return times


@inline
def _cycles_until_last_ticket(machine: Machine, kept: Machine, more: int) -> int:
    """For how many cycles the number of steps under way can keep changing: until no ticket is left,
    or since there was none. In a period of several cycles that could happen in the middle, so then
    it is 0."""
    under_way = machine.alu_results.under_way
    if (machine.clock.now - kept.clock.now > 1
            or max(under_way, kept.alu_results.under_way) == DEPTH):
        return 0
    return DEPTH - 1 - under_way if more > 0 else FOREVER


@inline
def _lanes_go_on(machine: Machine, kept: Machine) -> bool:
    """Whether the lanes are as they were, or one period closer to the next edge. If an edge passed
    during the period, the remaining ones may look alike, but they are not as far away."""
    nearer = kept.alu_results.edge_in - machine.alu_results.edge_in
    return nearer in (0, machine.clock.now - kept.clock.now)


@inline
def _moves_evenly(machine: Machine, kept: Machine) -> bool:
    """Whether copies of tile numbers move like the originals. In the first period after a new row
    or instruction they may not."""
    issue, then = machine.alu_issue, kept.alu_issue
    left = machine.alu_sequencer.lhs - kept.alu_sequencer.lhs
    right = machine.alu_sequencer.rhs - kept.alu_sequencer.rhs
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
def _walks_are_inside(machine: Machine, kept: Machine, code: Code, config: Settings, entered: int,
                      steps: int) -> bool:
    """Whether the next steps of the ALU stay inside their scratchpads."""
    now, then = machine.alu_sequencer, kept.alu_sequencer
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
    """How many tickets can retire before one that ends its instruction or writes to another place
    than the rest."""
    newest = (results.head + results.tickets - 1) & PLACES - 1
    for number in range(results.tickets):
        place = (results.head + number) & PLACES - 1
        if (results.last[place] or results.outside[place]
                or results.kind[place] != results.kind[newest]):
            return number
    return FOREVER


@inline
def _walks_stay_in_one_loop(machine: Machine, kept: Machine, code: Code, entered: int) -> bool:
    """Whether all steps of a period belong to the same loop, so that all strides are equal. An
    outer loop does not qualify if parameters are read in it."""
    now, then = machine.alu_sequencer, kept.alu_sequencer
    issue, row = machine.alu_issue, code[now.of]
    if row.requantize and then.inner_left == row.inner and then.middle_left == row.middle:
        return False            # the period began with reads of parameters, which do not come again
    if (issue.front_before | issue.next_before | issue.spare_before
            or issue.delays != kept.alu_issue.delays):
        return False            # nor does a period in which a step had to wait for another
    inner = then.inner_left - now.inner_left
    middle = then.middle_left - now.middle_left
    outer = then.outer_left - now.outer_left
    return ((inner == entered and middle == 0 and outer == 0)
            or (inner == 0 and middle == entered and outer == 0 and now.inner_left == 1)
            or (inner == 0 and middle == 0 and outer == entered and now.inner_left == 1
                and now.middle_left == 1 and row.requantize == 0))


@inline
def steps_before(now: Unit, then: Unit, code: Code) -> int:
    """How many steps of the walk came before this period."""
    row = code[now.of]
    if now.inner_left != then.inner_left:
        return row.inner - then.inner_left
    if now.middle_left != then.middle_left:
        return row.middle - then.middle_left
    return row.outer - then.outer_left


@inline
def _has_no_hazard(machine: Machine, kept: Machine, code: Code, entered: int, steps: int) -> bool:
    """Whether no step reads a tile that an earlier one has yet to write."""
    now, then, results = machine.alu_sequencer, kept.alu_sequencer, machine.alu_results
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
    """Whether reads that begin at `source` meet neither pending writes nor those that begin at
    `dst`."""
    low = min(source, source + (steps - 1) * stride)
    high = max(source, source + (steps - 1) * stride)
    for number in range(results.tickets):
        target = results.target[(results.head + number) & PLACES - 1]
        if results.pending >> number & 1 and low <= target <= high:
            return False
    if not writes_acc:
        return True
    if stride == dst_stride:
        ahead = dst - source            # a hazard if it is a few strides
        if stride == 0:
            return ahead != 0
        return ahead % stride != 0 or not 0 < ahead // stride <= TICKETS
    return (min(dst, dst + (steps - 1) * dst_stride) > high
            or max(dst, dst + (steps - 1) * dst_stride) < low)


@inline
def renew_tickets(machine: Machine, kept: Machine, times: int) -> None:
    """Record the tickets that the steps of the skipped periods get; only the last ones remain."""
    results = machine.alu_results
    entered = results.entered - kept.alu_results.entered
    if entered == 0:
        return
    stride = (machine.alu_sequencer.dst - kept.alu_sequencer.dst) // entered
    free = results.head + results.tickets
    newest = free - 1 & PLACES - 1
    of, kind, target = results.of[newest], results.kind[newest], results.target[newest]
    for number in range(max(0, times * entered - PLACES), times * entered):
        place = free + number & PLACES - 1
        results.of[place], results.kind[place] = of, kind
        results.target[place] = target + (number + 1) * stride
        results.last[place] = results.outside[place] = 0
