"""Twin of hw.accumulator: the arbitration of banks."""

from __future__ import annotations

from .alu import alu, alu_results
from .gemm import gemm
from .load.load_writer import WRITES
from .record_types import Code, Machine, MicroOps, Settings, Wires
from .registers import inline
from .store import store_reader

NOBODY = -1


@inline
def arbitrate(machine: Machine, wires: Wires, code: Code, config: Settings, uops: MicroOps) -> None:
    """Grant banks in order of priority: GEMM, the ALU's right and left operand and STORE for reads;
    GEMM, ALU and LOAD for writes."""
    wires.right_granted = 0
    wires.left_granted = 0
    wires.store_granted_read = 0
    issue = machine.alu_issue
    right = alu.wants(issue.front_reads_right, issue.right_read, issue)
    left = alu.wants(issue.front_reads_left, issue.left_read, issue)
    store_tile = store_reader.reads_acc(machine, code)
    wires.store_reads = store_tile >= 0
    if right or left or store_tile >= 0:
        bank = config.acc_bank_bits
        second = issue.front_right >> bank if right else NOBODY
        third = issue.front_left >> bank if left else NOBODY
        wanted = (1 << second if right else 0) | (1 << third if left else 0)
        if store_tile >= 0:
            wanted |= 1 << (store_tile >> bank)
        first = gemm.bank_of(machine.gemm, code, config, uops,
                             machine.clock.now - config.gemm_read_stage, True, wanted)
        wires.right_granted = right and second != first
        wires.left_granted = left and third != first and third != second
        if store_tile >= 0:
            fourth = store_tile >> bank
            wires.store_granted_read = fourth not in (first, second, third)
    _arbitrate_writes(machine, wires, code, config, uops)


@inline
def arbitrate_compute(machine: Machine, wires: Wires, code: Code, config: Settings,
                      uops: MicroOps) -> None:
    """The same between GEMM and the ALU, when no other engine uses their banks."""
    issue, results, bank = machine.alu_issue, machine.alu_results, config.acc_bank_bits
    right = alu.wants(issue.front_reads_right, issue.right_read, issue)
    left = alu.wants(issue.front_reads_left, issue.left_read, issue)
    if right or left:
        second = issue.front_right >> bank if right else NOBODY
        third = issue.front_left >> bank if left else NOBODY
        wanted = (1 << second if right else 0) | (1 << third if left else 0)
        first = gemm.bank_of(machine.gemm, code, config, uops,
                             machine.clock.now - config.gemm_read_stage, True, wanted)
        wires.right_granted = right and second != first
        wires.left_granted = left and third != first and third != second
    if alu_results.wants_acc(results, 0):
        target = results.target[alu_results.oldest(results)] >> bank
        wires.alu_write_granted = target != gemm.bank_of(
            machine.gemm, code, config, uops, machine.clock.now - config.gemm_latency, False,
            1 << target)


@inline
def may_fill(machine: Machine, code: Code, config: Settings, uops: MicroOps) -> bool:
    """Whether GEMM does not use the bank that LOAD writes, if it writes."""
    write = machine.load_write
    if write.pending & WRITES == 0 or code[write.position].in_acc == 0:
        return True
    bank = write.at // code[write.position].parts >> config.acc_bank_bits
    return bank != gemm.bank_of(machine.gemm, code, config, uops,
                                machine.clock.now - config.gemm_latency, False, 1 << bank)


@inline
def _arbitrate_writes(machine: Machine, wires: Wires, code: Code, config: Settings,
                      uops: MicroOps) -> None:
    results, write = machine.alu_results, machine.load_write
    wires.alu_write_granted = 0
    wires.fill_ready = 1
    alu_writes = alu_results.wants_acc(results, machine.control.halt)
    fills = write.pending & WRITES != 0 and code[write.position].in_acc != 0
    if not alu_writes and not fills:
        return
    bank = config.acc_bank_bits
    second = third = NOBODY
    wanted = 0
    if alu_writes:
        second = results.target[alu_results.oldest(results)] >> bank
        wanted |= 1 << second
    if fills:
        third = write.at // code[write.position].parts >> bank
        wanted |= 1 << third
    first = gemm.bank_of(machine.gemm, code, config, uops,
                         machine.clock.now - config.gemm_latency, False, wanted)
    wires.alu_write_granted = alu_writes and second != first
    if fills:
        wires.fill_ready = third not in (first, second)
