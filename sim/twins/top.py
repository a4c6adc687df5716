"""All twins together: the registers of the accelerator, and one cycle of it."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...isa.config import Config
from ...isa.instructions import Buffer, Engine
from ...isa.memory_timing import MemoryTiming
from . import accumulator, control, tokens
from .alu import alu, alu_results
from .bus import dram, reader, writer
from .fetch import command_queue, fetch
from .gemm import gemm
from .load import load, load_writer
from .record_types import Code, Machine, MicroOps, Numbers, OneRecord, Settings, Wires
from .registers import PER_BEAT, Layout, Registers, inline
from .store import store, store_reader
from .transfer import burst_walker, packing

ENGINES = len(Engine)
LOAD, GEMM, ALU, STORE = (int(each) for each in Engine)

# The two sides of the machine, which are mostly independent (see `cycle.skip_memory_side`). The
# counters of both are adjacent.
MEMORY: dict[str, Registers] = {
    "reader": reader.REGISTERS, "dram": dram.REGISTERS, "load_write": load_writer.REGISTERS,
    "load_steps": packing.REGISTERS, "store_beats": store_reader.REGISTERS,
    "store_steps": packing.REGISTERS, "writer": writer.REGISTERS,
    "load_rows": burst_walker.REGISTERS, "store_rows": burst_walker.REGISTERS,
    "load": load.REGISTERS, "store": store.REGISTERS,
    "fetch": fetch.REGISTERS, "buffer": command_queue.REGISTERS, "clock": control.CLOCK,
    "memory_counts": control.MEMORY_COUNTS,
}
COMPUTE: dict[str, Registers] = {
    "compute_counts": control.COMPUTE_COUNTS, "alu_results": alu_results.REGISTERS,
    "alu_issue": alu.ISSUE, "alu_sequencer": alu.SEQUENCER, "gemm": gemm.REGISTERS,
    "load_queue": command_queue.REGISTERS, "gemm_queue": command_queue.REGISTERS,
    "alu_queue": command_queue.REGISTERS, "store_queue": command_queue.REGISTERS,
    "tokens": tokens.REGISTERS, "control": control.REGISTERS,
}
LAYOUT = Layout(MEMORY, COMPUTE)
# Where each kind of register ends, the memory side first.
MEMORY_SAME, SAME = LAYOUT.same
MEMORY_FALLING, FALLING = LAYOUT.falling
MEMORY_MOVING, MOVING = LAYOUT.moving
FIRST_COUNTER = LAYOUT.place("memory_counts", control.MEMORY_COUNTS.moving[0])

# What a cycle of the memory side changed. `soft`: a register that may return to its value;
# `toggled`: the bus or a lane, which may have a period of two cycles. The others are registers that
# are `noted`; `asked`: on the way of requests, which does not affect data until later; `turned`: a
# burst or a run of steps ended; `fetched`: an instruction arrived in part, or came closer to its
# queue; `hard`: anything else. Then what the changes of falling and moving registers follow from.
CHANGES = ("soft", "toggled", "hard", "asked", "turned", "fetched", "rvalid_before",
           "bvalid_before", "read_was_due_in", "answer_was_due_in", "read_shown", "beat_sent",
           "load_moved", "load_stride", "load_kind", "store_moved")

# Signals of one cycle. `…_start` and `…_end` are the positions of instructions, or -1.
WIRES = np.dtype([
    *((name, np.int64) for name in (
        "arready", "awready", "wready", "ar_taken", "aw_taken", "w_taken", "r_taken", "r_client",
        "r_last", "r_error", "b_taken", "b_error", "answers_ready", "quiet", "finished", "idle",
        "fetch_requests", "fetch_beats", "fetch_address", "fetch_granted", "load_requests",
        "load_beats", "load_address", "load_granted", "store_granted", "store_beats",
        "store_address", "store_offers", "beat_taken", "dispatched", "put_to", "fetch_fault",
        "fetch_position", "load_fault", "load_fault_position", "store_fault",
        "store_fault_position", "load_writer_fault", "load_writer_position",
        "store_reader_fault", "store_reader_position", "alu_fault", "alu_fault_position",
        "right_granted", "left_granted", "store_reads", "store_granted_read",
        "alu_write_granted", "fill_ready", *CHANGES)),
    *((f"{engine.name.lower()}_{name}", np.int64) for engine in Engine for name in (
        "start", "end", "wait", "busy", "wait_memory", "bytes"))])

SETTINGS = np.dtype([(name, np.int64) for name in (
    *Config().numbers(), "inp_group_bits", "acc_group_bits", "acc_bank_bits", "gemm_read_stage",
    "gemm_latency", "alu_latency", "count", "code_base")])
TIMING = np.dtype([(name, np.int64) for name in (
    *vars(MemoryTiming()), "bus_bytes", "fail_from", "fail_to")])
LEVELS_PER_STAGE = 1        # of the adder tree
PRODUCT_STAGE = 7           # of GEMM's pipeline: products are valid
READ_LATENCY = 3            # of the accumulator


def settings(config: Config, count: int, code_base: int) -> OneRecord:
    """The constants that twins derive from a configuration, and the address of the code."""
    record = _of_config(config).copy()
    record["count"], record["code_base"] = count, code_base
    return record


@cache
def _of_config(config: Config) -> OneRecord:
    tree = max(1, -(-(config.block_in - 1).bit_length() // LEVELS_PER_STAGE))
    return _record(SETTINGS, {
        **config.numbers(),
        "inp_group_bits": config.inp_groups.bit_length() - 1,
        "acc_group_bits": config.acc_groups.bit_length() - 1,
        "acc_bank_bits": config.acc_bank_tiles.bit_length() - 1,
        "gemm_read_stage": PRODUCT_STAGE + tree - READ_LATENCY,
        "gemm_latency": PRODUCT_STAGE + tree + 1,
        "alu_latency": alu_results.latency(config.vector_cycles)})


def timing_of(timing: MemoryTiming, bus_bytes: int, failing: range) -> OneRecord:
    """The constants of the DRAM twin. Some addresses may fail."""
    return _record(TIMING, {**vars(timing), "bus_bytes": bus_bytes, "fail_from": failing.start,
                            "fail_to": failing.stop if failing else 0})


def _record(dtype: np.dtype[np.void], values: dict[str, int]) -> OneRecord:
    array = np.zeros(1, dtype)
    for name, value in values.items():
        array[name] = value
    return array


def machines(count: int) -> Numbers:
    """Machines, as words. The first is in its initial state."""
    words = np.zeros((count, LAYOUT.dtype.itemsize // 8), np.int64)
    words[0] = _at_rest()
    return words


def registers(words: Numbers) -> OneRecord:
    """The first of some machines."""
    return np.ndarray(1, LAYOUT.dtype, words)           # faster than a view


@cache
def _at_rest() -> Numbers:
    """The initial state, as words, because overlapping records would be copied register by
    register."""
    machine = np.zeros(1, LAYOUT.dtype)
    machine["fetch"]["broken"] = machine["gemm"]["stop_at"] = -1
    return machine.view(np.int64)


@cache
def floors(config: Config) -> Numbers:
    """For each falling register, the smallest value at which its unit still repeats."""
    lanes = max(1, *(config.bus_bytes // config.tile_bytes(buffer) for buffer in Buffer))
    return np.array([lanes + 1 if floor == PER_BEAT else floor for floor in LAYOUT.floors])


@inline
def cycle(machine: Machine, counters: Numbers, wires: Wires, code: Code, config: Settings,
          timing: Settings, positions: Numbers, uops: MicroOps) -> None:
    """Advance everything by one cycle. `counters` are the machine's counters as an array."""
    halt = machine.control.halt
    _bus(machine, wires, timing, machine.clock.now, False)
    _look(machine, wires)
    accumulator.arbitrate(machine, wires, code, config, uops)
    fetch.offer(machine.fetch, wires, halt)
    load.offer(machine, wires)
    reader.take_request(machine.reader, wires, config, halt)
    wires.load_start = load.step(machine, wires, code, config, positions)
    fetch.step(machine, wires, config, code)
    reader.deliver(machine.reader, wires)
    wires.store_start = store.step(machine, wires, code, config, positions)
    writer.step(machine.writer, wires, halt)
    wires.gemm_start = gemm.step(machine, wires, code, config, positions, uops)
    wires.alu_start = alu.step(machine, wires, code, config, positions)
    overflow = commands(machine, counters, wires, code, config, positions)
    control.count_memory(machine.memory_counts, wires)
    control.count_compute(machine.compute_counts, wires)
    control.step(machine, wires, overflow)


@inline
def memory_cycle(machine: Machine, wires: Wires, code: Code, config: Settings, timing: Settings,
                 positions: Numbers, uops: MicroOps, fetches: bool, contested: bool) -> None:
    """Advance the memory side by one cycle in which it has no bank conflict with the ALU, nothing
    halts, the compute side is not idle, and memory is calm. `fetches`: FETCH is not asleep.
    `contested`: LOAD may have a bank conflict with GEMM."""
    _bus(machine, wires, timing, machine.clock.now, True)
    wires.fill_ready = not contested or accumulator.may_fill(machine, code, config, uops)
    wires.gemm_start = wires.alu_start = wires.gemm_end = wires.alu_end = -1
    if fetches:
        fetch.offer(machine.fetch, wires, 0)
    load.offer(machine, wires)
    reader.take_request(machine.reader, wires, config, 0)
    wires.load_start = load.step(machine, wires, code, config, positions)
    wires.put_to = -1
    if fetches:
        fetch.step(machine, wires, config, code)
    reader.deliver(machine.reader, wires)
    wires.store_start = store.step(machine, wires, code, config, positions)
    writer.step(machine.writer, wires, 0)
    control.count_memory(machine.memory_counts, wires)


@inline
def _bus(machine: Machine, wires: Wires, timing: Settings, now: int, calm: bool) -> None:
    """The outputs of memory, and which handshakes take place."""
    memory, ar, aw = machine.dram, machine.reader, machine.writer
    wires.answers_ready = store.answers_ready(machine.store)
    dram.decide(memory, timing, wires, aw, now, calm)
    wires.r_taken = memory.rvalid != 0 and ar.queue != reader.QUEUE_DEPTH
    wires.r_client, wires.r_last, wires.r_error = memory.rid, memory.rlast, memory.rerror
    wires.ar_taken = ar.arvalid != 0 and wires.arready != 0
    wires.aw_taken = aw.awvalid != 0 and wires.awready != 0
    wires.w_taken = aw.wvalid != 0 and wires.wready != 0
    wires.b_taken = memory.bvalid != 0 and (aw.answered == 0 or wires.answers_ready != 0)
    wires.b_error = memory.berror
    dram.clock(memory, timing, wires, ar, aw, now, calm)


@inline
def _look(machine: Machine, wires: Wires) -> None:
    """The outputs of units in this cycle, before any of them changes."""
    wires.quiet = reader.is_quiet(machine.reader) and writer.is_quiet(machine.writer)
    wires.finished = machine.fetch.finished
    wires.load_fault, wires.load_fault_position = machine.load.fault, machine.load.fault_position
    wires.store_fault = machine.store.fault
    wires.store_fault_position = machine.store.fault_position
    wires.idle = (compute_is_idle(machine) and machine.load.queue == 0
                  and not load_writer.is_busy(machine.load_write)
                  and not burst_walker.is_busy(machine.store_rows) and machine.store.awaited == 0)


@inline
def compute_is_idle(machine: Machine) -> bool:
    """Whether GEMM and the ALU are idle, and no command waits."""
    return (machine.gemm.in_flight == 0 and machine.alu_results.begun == 0
            and command_queue.is_empty(machine.load_queue)
            and command_queue.is_empty(machine.gemm_queue)
            and command_queue.is_empty(machine.alu_queue)
            and command_queue.is_empty(machine.store_queue))


@inline
def commands(machine: Machine, counters: Numbers, wires: Wires, code: Code, config: Settings,
             positions: Numbers) -> int:
    """Update queues, waits and tokens for the instructions that arrived, started and ended. Returns
    the engines whose posts overflow a counter."""
    put_to = wires.put_to
    command_queue.step_of(LOAD, machine.load_queue, wires, put_to, wires.load_start,
                          positions, code)
    command_queue.step_of(GEMM, machine.gemm_queue, wires, put_to, wires.gemm_start,
                          positions, code)
    command_queue.step_of(ALU, machine.alu_queue, wires, put_to, wires.alu_start,
                          positions, code)
    command_queue.step_of(STORE, machine.store_queue, wires, put_to, wires.store_start,
                          positions, code)
    if wires.load_wait | wires.gemm_wait | wires.alu_wait | wires.store_wait:
        control.count_waits(counters, LOAD, wires.load_wait, 1)
        control.count_waits(counters, GEMM, wires.gemm_wait, 1)
        control.count_waits(counters, ALU, wires.alu_wait, 1)
        control.count_waits(counters, STORE, wires.store_wait, 1)
    if not news(wires):
        return 0
    tokens.take(machine.tokens, code, LOAD, wires.load_start)
    tokens.take(machine.tokens, code, GEMM, wires.gemm_start)
    tokens.take(machine.tokens, code, ALU, wires.alu_start)
    tokens.take(machine.tokens, code, STORE, wires.store_start)
    limit = config.token_limit
    return (tokens.post(machine.tokens, code, LOAD, wires.load_end, limit)
            | tokens.post(machine.tokens, code, GEMM, wires.gemm_end, limit)
            | tokens.post(machine.tokens, code, ALU, wires.alu_end, limit)
            | tokens.post(machine.tokens, code, STORE, wires.store_end, limit))


@inline
def news(wires: Wires) -> bool:
    """Whether an instruction starts or ends in this cycle, that is, one of these is not -1."""
    return (wires.load_start & wires.gemm_start & wires.alu_start & wires.store_start
            & wires.load_end & wires.gemm_end & wires.alu_end & wires.store_end) >= 0
