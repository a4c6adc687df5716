"""Skips cycles in which the ALU only reads tiles, one whenever GEMM does not use the bank.

Results for the output scratchpad never wait, so the issue of a step depends on GEMM alone, whose
reads are known in advance. A stretch of cycles is cut out together with the steps issued in it. It
must begin and end in cycles that follow an issue, or in cycles that do not. The contents of the
lanes then differ from those of a full run, but are equivalent until they have left the lanes, so a
stretch must end that many cycles before the quiet time does.
"""

from __future__ import annotations

from ..llvm.decorators import inline, noinline
from ..twins.gemm import gemm
from ..twins.record_types import Code, Machine, MicroOps, Settings, Unit
from .bundles import Given

BEHIND = 4              # cycles, besides the lanes', after which an issued step has left no trace
LEAST = 2               # steps that must remain in the inner loop


@inline
def skip(machine: Machine, given: Given, uops: MicroOps, cycles: int) -> int:
    """Skip some of the next cycles, in which nothing starts or ends. Returns how many."""
    most = cycles - given.config.alu_latency - BEHIND
    if most <= 0 or not _only_reads(machine, given.code, given.config):
        return 0
    passed, granted = _count_grants(machine, given.code, given.config, uops, most,
                                    machine.alu_sequencer.inner_left - LEAST)
    if passed:
        _move_on(machine, given.code[machine.alu_sequencer.of], passed, granted)
    return passed


@inline
def _only_reads(machine: Machine, code: Code, config: Settings) -> bool:
    """Whether all steps in flight belong to one inner loop that reads one operand and writes to the
    output scratchpad, and the lanes take a vector each cycle."""
    sequencer, issue, results = machine.alu_sequencer, machine.alu_issue, machine.alu_results
    if (results.begun != 1 or sequencer.running == 0 or results.pending or config.vector_cycles > 1
            or issue.front & issue.next & issue.clear == 0 or issue.stopped | issue.left_read
            or sequencer.inner_left <= LEAST or results.issued != 1 - issue.spare):
        return False
    row = code[sequencer.of]
    return (row.to_out & row.reads_left & row.inside != 0 and row.reads_right | row.no_work == 0
            and sequencer.inner_left + 2 + issue.spare <= row.inner
            and _are_steps(issue, sequencer, row.lhs_inner))


@inline
def _are_steps(issue: Unit, sequencer: Unit, stride: int) -> bool:
    """Whether the steps to be issued come right before the sequencer's in its inner loop."""
    return ((issue.front_fetches | issue.next_fetches | issue.front_before | issue.next_before
             | issue.front_reads_right | issue.next_reads_right | issue.parameter) == 0
            and issue.front_reads_left & issue.next_reads_left != 0
            and issue.next_left - issue.front_left == stride
            and (sequencer.lhs - issue.next_left == stride if issue.spare == 0 else (
                issue.spare_reads_left != 0
                and issue.spare_fetches | issue.spare_before | issue.spare_reads_right == 0
                and issue.spare_left - issue.next_left == stride
                and sequencer.lhs - issue.spare_left == stride)))


@inline
def _move_on(machine: Machine, row: Settings, cycles: int, steps: int) -> None:
    sequencer, issue = machine.alu_sequencer, machine.alu_issue
    machine.clock.now += cycles
    machine.compute_counts.alu_busy += cycles
    sequencer.inner_left -= steps
    sequencer.dst += steps * row.dst_inner
    sequencer.lhs += steps * row.lhs_inner
    sequencer.rhs += steps * row.rhs_inner
    issue.front_left += steps * row.lhs_inner
    issue.next_left += steps * row.lhs_inner
    issue.spare_left += steps * row.lhs_inner


@noinline
def _count_grants(machine: Machine, code: Code, config: Settings, uops: MicroOps, most: int,
                  limit: int) -> tuple[int, int]:
    """How many cycles, at most `most`, can be cut out, and in how many of them, at most `limit`,
    the ALU is granted its bank. The last one has a grant if the cycle before the first had one."""
    engine, issued = machine.gemm, machine.clock.now - config.gemm_read_stage
    stride, tile = code[machine.alu_sequencer.of].lhs_inner, int(machine.alu_issue.front_left)
    was_granted = machine.alu_issue.spare == 0
    end = tile + limit * stride
    banks = gemm.banks_between(min(tile, end), max(tile, end), config)
    passed = granted = best = best_granted = 0
    for number in range(engine.in_flight + 1):
        free, place = most, (engine.head + number) & gemm.IN_FLIGHT - 1
        row, slot = code[engine.of[place]], issued + passed - engine.first[place]
        if number < engine.in_flight:
            if slot >= row.slots:
                continue
            if engine.bad[place] >= 0:
                return best, best_granted
            free = max(-slot, 0)
            if engine.banks[place] & banks == 0 or row.no_work:
                free = row.slots - slot
        free = min(free, most - passed, limit - granted)
        passed += free
        granted += free
        tile += free * stride
        if free and was_granted:
            best, best_granted = passed, granted
        slot = issued + passed - engine.first[place]
        if number == engine.in_flight or passed == most or granted == limit:
            return best, best_granted
        if slot >= row.slots:
            continue
        step, inner, middle, outer = gemm.sum_counters(row, slot)
        while slot < row.slots and passed < most and granted < limit:
            bank = gemm.read_bank(row, config, uops, step, inner, middle, outer)
            free = bank != tile >> config.acc_bank_bits
            passed += 1
            slot += 1
            if free:
                granted += 1
                tile += stride
            if (free != 0) == was_granted:
                best, best_granted = passed, granted
            step, inner, middle, outer = gemm.next_counters(row, step, inner, middle, outer)
        if passed == most or granted == limit:
            return best, best_granted
    return best, best_granted
