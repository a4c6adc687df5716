"""Checks that conflicts over accumulator banks stay the same while cycles are skipped."""

from __future__ import annotations

from ...isa.instructions import Engine
from ..twins.alu import alu
from ..twins.alu.alu_results import PLACES
from ..twins.gemm import gemm
from ..twins.load.load_writer import WRITES
from ..twins.record_types import Code, Machine, MicroOps, Numbers, Settings, Unit
from ..twins.registers import inline
from . import skip_alu

LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
EVERYWHERE = gemm.EVERYWHERE


@inline
def conflicts_repeat(machine: Machine, saved: Machine, code: Code, config: Settings,
                     positions: Numbers, times: int) -> bool:
    """Whether the same engines share a bank in all periods. GEMM's bank accesses are irregular, so
    none may share one with it."""
    right, left = _operand_banks(machine, saved, code, config, times)
    store = _store_banks(machine, saved, code, config, positions, times)
    alu = _result_banks(machine, saved, code, config, times)
    fill = _fill_banks(machine, saved, code, config, positions, times)
    if right | left | store | alu | fill == 0:
        return True
    if store & (right | left) and not _reads_alike(machine, saved, code, positions):
        return False
    return (gemm_banks(machine.gemm) & (right | left | store | alu | fill) == 0
            and _never_conflict(right, left) and _never_conflict(right, store)
            and _never_conflict(left, store) and _never_conflict(alu, fill))


@inline
def alu_repeats(machine: Machine, saved: Machine, code: Code, config: Settings, uops: MicroOps,
                times: int, period: int) -> int:
    """For how many periods, at most `times`, the ALU conflicts with GEMM as in the last one: never
    or, if it is waiting for a bank, in every cycle."""
    right, left = _operand_banks(machine, saved, code, config, times)
    alu = _result_banks(machine, saved, code, config, times)
    if not _never_conflict(right, left):
        return 0
    engine, now, cycles = machine.gemm, machine.clock.now, (times + 1) * period
    touched = gemm_banks(engine) & (right | left | alu)
    if touched & (right | left):
        cycles = gemm.count_alike(engine, code, config, uops, now - period - config.gemm_read_stage,
                                  True, right | left, False, cycles)
    if touched & alu and cycles > period:
        cycles = gemm.count_alike(engine, code, config, uops, now - period - config.gemm_latency,
                                  False, alu, False, cycles)
    if cycles > period or period > 1:
        return max(cycles // period - 1, 0)
    return _blocked_cycles(machine, saved, code, config, uops, times)


@inline
def _blocked_cycles(machine: Machine, saved: Machine, code: Code, config: Settings, uops: MicroOps,
                    most: int) -> int:
    """For how many cycles, at most `most`, GEMM is certain to read from the bank that the ALU is
    waiting for while it does nothing else; 0 if that is not the case."""
    issue, results, bank = machine.alu_issue, machine.alu_results, config.acc_bank_bits
    right = alu.wants(issue.front_reads_right, issue.right_read, issue)
    left = alu.wants(issue.front_reads_left, issue.left_read, issue)
    if results.entered != saved.alu_results.entered or results.pending or not (right or left):
        return 0
    wanted = issue.front_right >> bank if right else issue.front_left >> bank
    if right and left and issue.front_left >> bank != wanted:
        return 0
    return gemm.count_alike(machine.gemm, code, config, uops,
                            machine.clock.now - config.gemm_read_stage, True, 1 << wanted, True,
                            most)


@inline
def _never_conflict(one: int, other: int) -> bool:
    """Whether two users never share a bank, or always do because both stay in the same one."""
    return one & other == 0 or (one == other and one & one - 1 == 0)


@inline
def gemm_banks(engine: Unit) -> int:
    """The banks that the gemms in flight may access."""
    mask = 0
    for number in range(engine.in_flight):
        mask |= engine.banks[(engine.head + number) & gemm.IN_FLIGHT - 1]
    return mask


@inline
def _visited_banks(now: int, then: int, times: int, config: Settings) -> int:
    """The banks that an index passes through from the beginning of this period to the end of the
    last."""
    end = now + times * (now - then)
    return gemm.banks_between(min(then, end), max(then, end), config)


@inline
def _operand_banks(machine: Machine, saved: Machine, code: Code, config: Settings,
                   times: int) -> tuple[int, int]:
    """The banks that the ALU reads: right, left."""
    issue, before = machine.alu_issue, saved.alu_issue
    now, then = machine.alu_sequencer, saved.alu_sequencer
    right = left = 0
    if issue.front:
        if issue.front_reads_right:
            right |= _visited_banks(issue.front_right, before.front_right, 0, config)
        if issue.front_reads_left:
            left |= _visited_banks(issue.front_left, before.front_left, 0, config)
    if issue.next:
        if issue.next_reads_right:
            right |= _visited_banks(issue.next_right, before.next_right, 0, config)
        if issue.next_reads_left:
            left |= _visited_banks(issue.next_left, before.next_left, 0, config)
    if issue.spare:
        if issue.spare_reads_right:
            right |= _visited_banks(issue.spare_right, before.spare_right, 0, config)
        if issue.spare_reads_left:
            left |= _visited_banks(issue.spare_left, before.spare_left, 0, config)
    if now.running:
        row = code[now.of]
        if row.reads_right or row.requantize:
            right |= _visited_banks(now.rhs, then.rhs, times, config)
        if row.reads_left:
            left |= _visited_banks(now.lhs, then.lhs, times, config)
    return right, left


@inline
def _result_banks(machine: Machine, saved: Machine, code: Code, config: Settings,
                  times: int) -> int:
    """The banks that the ALU writes. If it repeats, the results of the last period must be steps of
    the same loop, because the tiles of earlier ones are not known."""
    results, now, then = machine.alu_results, machine.alu_sequencer, saved.alu_sequencer
    if results.pending == 0:
        return 0
    moved = now.dst - then.dst
    goes_on = results.entered != saved.alu_results.entered
    if goes_on and skip_alu.steps_before(now, then, code) < results.tickets:
        return EVERYWHERE
    mask = _visited_banks(now.dst, then.dst, times, config) if goes_on else 0
    for number in range(results.tickets):
        if results.pending >> number & 1:
            target = results.target[(results.head + number) & PLACES - 1]
            mask |= _visited_banks(target, target - moved, 0, config)
    return mask


@inline
def _store_banks(machine: Machine, saved: Machine, code: Code, config: Settings, positions: Numbers,
                 times: int) -> int:
    reads, before, mask = machine.store_beats, saved.store_beats, 0
    if reads.front and code[reads.front_of].in_acc:
        mask |= _visited_banks_by_part(reads.front_at, before.front_at, code[reads.front_of].parts,
                                       0, config)
    if reads.back and code[reads.back_of].in_acc:
        mask |= _visited_banks_by_part(reads.back_at, before.back_at, code[reads.back_of].parts, 0,
                                       config)
    if machine.store.queue:
        box = code[positions[STORE, machine.store.reading]]
        if box.in_acc:
            mask |= _visited_banks_by_part(machine.store_steps.at, saved.store_steps.at, box.parts,
                                           times, config)
    return mask


@inline
def _reads_alike(machine: Machine, saved: Machine, code: Code, positions: Numbers) -> bool:
    """Whether STORE reads in the same cycles of every period: a tile of several beats is read only
    once, with the first beat."""
    moved = machine.store_steps.at - saved.store_steps.at
    return moved == 0 or (machine.store.queue != 0 and moved % code[
        positions[STORE, machine.store.reading]].parts == 0)


@inline
def _fill_banks(machine: Machine, saved: Machine, code: Code, config: Settings, positions: Numbers,
                times: int) -> int:
    write, before, mask = machine.load_write, saved.load_write, 0
    if write.pending & WRITES and code[write.position].in_acc:
        parts = code[write.position].parts
        mask |= _visited_banks_by_part(write.at, before.at, parts, 0, config)
    if write.back & WRITES and code[write.back_position].in_acc:
        parts = code[write.back_position].parts
        mask |= _visited_banks_by_part(write.back_at, before.back_at, parts, 0, config)
    if write.first & WRITES and code[write.first_of].in_acc:
        parts = code[write.first_of].parts
        mask |= _visited_banks_by_part(write.first_at, before.first_at, parts, 0, config)
    if write.second & WRITES and code[write.second_of].in_acc:
        parts = code[write.second_of].parts
        mask |= _visited_banks_by_part(write.second_at, before.second_at, parts, 0, config)
    if machine.load.queue:
        box = code[positions[LOAD, machine.load.writing]]
        if box.in_acc:
            mask |= _visited_banks_by_part(machine.load_steps.at, saved.load_steps.at, box.parts,
                                           times, config)
    return mask


@inline
def _visited_banks_by_part(now: int, then: int, parts: int, times: int, config: Settings) -> int:
    """Like `_visited_banks`, for an index that counts parts of tiles."""
    end = now + times * (now - then)
    return gemm.banks_between(min(then, end) // parts, max(then, end) // parts, config)
