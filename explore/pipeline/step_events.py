"""The engines of the accelerator and its memory, event by event: what becomes of a table of
instructions.

Each is dispatched in the order of the program, once it has been fetched and its engine's queue has
room, and begins when its engine is free and the tokens that it waits for have been posted. Reads,
of instructions too, and writes are bursts that share the bus while both want it: they take turns,
beat by beat, and each time the bus turns.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.compiled.deferred_functions import OPTIONS, Deferred
from .step_records import (
    ALU,
    ALU_LATENCY,
    ANSWER,
    BEGIN,
    DISPATCH,
    ENDING,
    GEMM,
    GEMM_LATENCY,
    IN_A_BURST,
    LOAD,
    LOADS_IN_FLIGHT,
    REQUEST,
    STORE,
    STORE_LATENCY,
    TOKEN,
    WRITTEN,
    Bus,
    Loops,
    Numbers,
    helper,
    read_bus,
    read_loops,
)
from .step_table import (
    BEATS,
    BLOCKS,
    BY_ALU,
    BY_GEMM,
    EARLY,
    ENDS,
    ENGINE,
    FIRST,
    FOURTH,
    MERGED,
    RATE,
    WORK,
    Writer,
    write_table,
)

NEVER = 1e18
WAITING = 64                # bursts of a kind that wait or run, at most
ENGINES = 4
READ, WRITE = range(2)
CODE = -1                   # the owner of a burst of instructions
LEAST = 1e-3                # of a rate
MOST_EVENTS = 400_000
# Points in time, and amounts that are left, behind when each engine is free.
(NOW, DISPATCHED, GEMM_UNTIL, ALU_LEFT, READ_LEFT, WRITE_LEFT, NEXT_READ, NEXT_WRITE,
 FINISH) = range(ENGINES, ENGINES + 9)
# Counts, behind those of instructions that each engine has begun.
(TOTAL, SENT, CODE_ASKED, CODE_ARRIVED, TO_READ, TO_WRITE, ON_ALU, HAD_BUS) = range(
    ENGINES, ENGINES + 8)
# Of bursts, by kind: asked for, done, and what the first of the others does.
ASKED, DONE, DOES = range(3)
WAITS, MOVES, TURNS = range(3)      # for the bus, which it has, or which turns for it
(DISPATCH_EVENT, CODE_EVENT, LOAD_EVENT, STORE_EVENT, ALU_EVENT, READ_EVENT, WRITE_EVENT,
 GEMM_EVENT) = range(ENGINES, ENGINES + 8)


class Run(NamedTuple):
    """A run under way. Bursts are in rings, by kind."""

    times: Numbers
    counts: npt.NDArray[np.int64]
    bursts: npt.NDArray[np.int64]
    next: npt.NDArray[np.int64]     # places of each engine's instructions, in order
    sizes: npt.NDArray[np.int64]    # how many these are
    sent: npt.NDArray[np.int64]     # and how many are in its queue or behind it
    begins: Numbers             # when instructions were dispatched
    ends: Numbers               # and when they posted their tokens
    arrivals: Numbers           # of the last bursts of instructions
    due: Numbers                # when a burst may take the bus first
    beats: Numbers
    rates: Numbers
    answered: Numbers           # when its place is free again
    owners: npt.NDArray[np.int64]   # twice its instruction, and 1 for the last one
    groups: Numbers             # ends


@helper
def _tokens(rows: Numbers, run: Run, at: int) -> float:
    """When all that an instruction waits for has been posted."""
    latest = 0.0
    for column in range(FIRST, FOURTH):
        other = int(rows[at, column])
        if other >= 0:
            latest = max(latest, run.ends[other] - rows[other, EARLY] + TOKEN)
    return latest


@helper
def _may_begin(rows: Numbers, bus: Bus, run: Run, engine: int) -> float:
    """When an engine takes its next instruction."""
    number = run.counts[engine]
    if number >= run.sent[engine] or (engine == ALU and run.counts[ON_ALU] >= 0) or (
            engine == LOAD and run.counts[TO_READ] > 0) or (
            engine == STORE and run.counts[TO_WRITE] > 0):
        return NEVER
    at = run.next[engine, number]
    time: float = max(run.begins[at] + DISPATCH, run.times[engine], _tokens(rows, run, at))
    if engine in (LOAD, STORE) and number >= LOADS_IN_FLIGHT:
        end = run.ends[run.next[engine, number - LOADS_IN_FLIGHT]]
        time = max(time, end - bus.write_latency if engine == STORE else end)
    return time


@helper
def _may_dispatch(rows: Numbers, loops: Loops, run: Run) -> float:
    """When the next instruction is sent to its engine."""
    number = run.counts[SENT]
    burst = number // IN_A_BURST
    if number >= run.counts[TOTAL] or burst >= run.counts[CODE_ARRIVED]:
        return NEVER
    engine = int(rows[number, ENGINE])
    if run.sent[engine] - run.counts[engine] >= loops.queue:
        return NEVER
    time: float = max(run.times[DISPATCHED] + 1, run.arrivals[burst % WAITING])
    return time


@helper
def _may_ask_for_code(bus: Bus, run: Run) -> float:
    """When the next burst of instructions is asked for: two are kept."""
    asked = run.counts[CODE_ASKED]
    if asked * IN_A_BURST >= run.counts[TOTAL] or not _has_room(bus, run):
        return NEVER
    if asked < 2:
        return BEGIN
    return run.times[NOW] if run.counts[SENT] > (asked - 1) * IN_A_BURST else NEVER


@helper
def _has_room(bus: Bus, run: Run) -> bool:
    waiting: int = run.bursts[READ, ASKED] - run.bursts[READ, DONE]
    return waiting < min(bus.reads, WAITING)


@helper
def _may_write(bus: Bus, run: Run) -> float:
    """When the next burst of a store is sent."""
    asked = run.bursts[WRITE, ASKED]
    if run.counts[TO_WRITE] == 0 or asked - run.bursts[WRITE, DONE] >= WAITING:
        return NEVER
    time: float = run.times[NEXT_WRITE]
    if asked >= bus.writes:
        time = max(time, run.answered[WRITE, (asked - bus.writes) % WAITING] + 1)
    return time


@helper
def _ask(rows: Numbers, loops: Loops, bus: Bus, run: Run, kind: int, is_code: bool) -> None:
    """A new burst, behind the others of its kind."""
    now, counts, engine = run.times[NOW], run.counts, LOAD if kind == READ else STORE
    at = run.bursts[kind, ASKED] % WAITING
    run.bursts[kind, ASKED] += 1
    run.answered[kind, at] = NEVER
    if is_code:
        counts[CODE_ASKED] += 1
        run.due[READ, at] = now + bus.read_latency + 1
        run.beats[READ, at], run.rates[READ, at] = loops.code_beats, bus.beat
        run.owners[READ, at] = CODE
        return
    left = TO_READ if kind == READ else TO_WRITE
    instruction = run.next[engine, counts[engine] - 1]
    run.due[kind, at] = now + (bus.read_latency if kind == READ else 1.0)
    run.beats[kind, at] = rows[instruction, BEATS]
    run.rates[kind, at] = max(bus.beat, rows[instruction, RATE])
    if rows[instruction, MERGED] > 1:           # these wait for places in flight among themselves
        latency, places = (bus.read_latency, bus.reads) if kind == READ else (
            bus.write_latency, bus.writes)
        beats = run.beats[kind, at] / rows[instruction, MERGED]
        run.rates[kind, at] = max(run.rates[kind, at],
                                  (latency + run.rates[kind, at] * beats) / (places * beats))
    run.owners[kind, at] = 2 * instruction + (1 if counts[left] == 1 else 0)
    counts[left] -= 1
    run.times[engine] = now
    run.times[NEXT_READ if kind == READ else NEXT_WRITE] = now + 1


@helper
def _paces(rows: Numbers, bus: Bus, run: Run) -> tuple[float, float]:
    """Cycles that a beat takes of the reads and of the writes that move."""
    reads, writes = run.bursts[READ, DOES] == MOVES, run.bursts[WRITE, DOES] == MOVES
    pace = NEVER
    if reads:
        at = run.bursts[READ, DONE] % WAITING
        pace, owner = run.rates[READ, at], run.owners[READ, at]
        if owner != CODE:
            blocks = rows[owner // 2, BLOCKS]
            if blocks == BY_GEMM and run.times[GEMM_UNTIL] > run.times[NOW]:
                pace /= LEAST
            if blocks == BY_ALU and run.counts[ON_ALU] >= 0:
                pace /= max(LEAST, 1 - rows[run.counts[ON_ALU], BLOCKS])
    if not writes:
        return pace, NEVER
    least = run.rates[WRITE, run.bursts[WRITE, DONE] % WAITING]
    if not reads or bus.shared == 0:
        return pace, least
    both = 2 * (bus.beat + bus.turn)
    if pace <= both:
        return both, max(both, least)
    return pace, max(least, pace / max(1.0, (pace - bus.beat - 2 * bus.turn) / bus.beat))


@helper
def _burst_due(run: Run, kind: int, left: float, pace: float) -> float:
    """When the first burst of a kind has its next event: its begin or its end."""
    if run.bursts[kind, DOES] == MOVES:
        end: float = run.times[NOW] + left * pace
        return end
    if run.bursts[kind, DONE] >= run.bursts[kind, ASKED]:
        return NEVER
    time: float = run.due[kind, run.bursts[kind, DONE] % WAITING]
    return time


@helper
def _move(rows: Numbers, bus: Bus, run: Run, kind: int) -> None:
    """A burst begins, perhaps after the bus has turned, or ends."""
    counts, bursts, now = run.counts, run.bursts, run.times[NOW]
    at = bursts[kind, DONE] % WAITING
    if bursts[kind, DOES] != MOVES:
        alone = bursts[1 - kind, DOES] == WAITS
        if bursts[kind, DOES] == WAITS and alone and bus.shared * bus.turn > 0 and (
                counts[HAD_BUS] != kind):
            run.due[kind, at], bursts[kind, DOES] = now + bus.turn, TURNS
        else:
            bursts[kind, DOES] = MOVES
            run.times[READ_LEFT if kind == READ else WRITE_LEFT] = run.beats[kind, at]
        counts[HAD_BUS] = kind
        return
    bursts[kind, DOES] = WAITS
    bursts[kind, DONE] += 1
    owner = run.owners[kind, at]
    if bursts[1 - kind, DOES] != WAITS:
        counts[HAD_BUS] = 1 - kind
    if owner == CODE:
        run.arrivals[counts[CODE_ARRIVED] % WAITING] = now
        counts[CODE_ARRIVED] += 1
        return
    instruction = owner // 2
    end = now + (WRITTEN if kind == READ else bus.write_latency + ANSWER)
    run.answered[kind, at] = end
    if owner % 2:
        run.ends[instruction] = end
        if kind == WRITE:
            run.times[FINISH] = max(run.times[FINISH], end)
            if rows[instruction, ENDS] >= 0:
                run.groups[int(rows[instruction, ENDS])] = end


@helper
def _begin(rows: Numbers, run: Run, engine: int) -> None:
    """An engine takes an instruction."""
    counts, times, now = run.counts, run.times, run.times[NOW]
    at = run.next[engine, counts[engine]]
    counts[engine] += 1
    if engine == GEMM:
        times[GEMM] = times[GEMM_UNTIL] = now + rows[at, WORK]
        run.ends[at] = times[GEMM] + GEMM_LATENCY
    elif engine == ALU:
        counts[ON_ALU], times[ALU_LEFT] = at, rows[at, WORK]
    elif engine == LOAD:
        counts[TO_READ], times[NEXT_READ] = int(rows[at, WORK]), now + REQUEST
    else:
        counts[TO_WRITE], times[NEXT_WRITE] = int(rows[at, WORK]), now + STORE_LATENCY


@helper
def _dispatch(rows: Numbers, run: Run) -> None:
    number = run.counts[SENT]
    engine = int(rows[number, ENGINE])
    run.begins[number] = run.times[DISPATCHED] = run.times[NOW]
    run.sent[engine] += 1
    run.counts[SENT] += 1


@helper
def _next_event(rows: Numbers, loops: Loops, bus: Bus, run: Run, read_pace: float,
                write_pace: float, alu_rate: float) -> tuple[float, int]:
    """What happens next, and when."""
    times, now, what = run.times, run.times[NOW], -1
    first = NEVER
    for event in range(GEMM_EVENT + 1):
        if event < ENGINES:
            time = _may_begin(rows, bus, run, event)
        elif event == DISPATCH_EVENT:
            time = _may_dispatch(rows, loops, run)
        elif event == CODE_EVENT:
            time = _may_ask_for_code(bus, run)
        elif event == LOAD_EVENT:
            time = times[NEXT_READ] if run.counts[TO_READ] > 0 and _has_room(bus, run) else NEVER
        elif event == STORE_EVENT:
            time = _may_write(bus, run)
        elif event == ALU_EVENT:
            time = NEVER if run.counts[ON_ALU] < 0 else now + times[ALU_LEFT] / alu_rate
        elif event == READ_EVENT:
            time = _burst_due(run, READ, times[READ_LEFT], read_pace)
        elif event == WRITE_EVENT:
            time = _burst_due(run, WRITE, times[WRITE_LEFT], write_pace)
        else:
            time = times[GEMM_UNTIL] if times[GEMM_UNTIL] > now else NEVER
        if time < first:
            first, what = max(time, now), event
    return first, what


@helper
def _happen(rows: Numbers, loops: Loops, bus: Bus, run: Run, what: int) -> None:
    if what < ENGINES:
        _begin(rows, run, what)
    elif what == DISPATCH_EVENT:
        _dispatch(rows, run)
    elif what in (CODE_EVENT, LOAD_EVENT):
        _ask(rows, loops, bus, run, READ, what == CODE_EVENT)
    elif what == STORE_EVENT:
        _ask(rows, loops, bus, run, WRITE, False)
    elif what == ALU_EVENT:
        at = run.counts[ON_ALU]
        run.times[ALU], run.ends[at] = run.times[NOW], run.times[NOW] + ALU_LATENCY
        run.counts[ON_ALU] = -1
    elif what in (READ_EVENT, WRITE_EVENT):
        _move(rows, bus, run, READ if what == READ_EVENT else WRITE)


@helper
def run_table(rows: Numbers, loops: Loops, bus: Bus, run: Run) -> float:
    """The cycles of all instructions."""
    times, counts = run.times, run.counts
    counts[ON_ALU], counts[HAD_BUS] = -1, WRITE
    times[DISPATCHED] = -1
    for at in range(counts[TOTAL]):
        engine = int(rows[at, ENGINE])
        run.next[engine, run.sizes[engine]] = at
        run.sizes[engine] += 1
        run.ends[at] = NEVER
    for _ in range(MOST_EVENTS):
        beside = times[GEMM_UNTIL] > times[NOW] and loops.share > 0
        alu_rate = max(LEAST, 1 - loops.share) if beside else 1.0
        read_pace, write_pace = _paces(rows, bus, run)
        time, what = _next_event(rows, loops, bus, run, read_pace, write_pace, alu_rate)
        if what < 0:
            break
        passed = time - times[NOW]
        times[READ_LEFT] = max(0.0, times[READ_LEFT] - passed / read_pace)
        times[WRITE_LEFT] = max(0.0, times[WRITE_LEFT] - passed / write_pace)
        times[ALU_LEFT] = max(0.0, times[ALU_LEFT] - passed * alu_rate)
        times[NOW] = time
        _happen(rows, loops, bus, run, what)
    end: float = times[FINISH] + ENDING
    return end


def _simulate(schedule: Numbers, memory: Numbers, rows: Numbers, numbers: Numbers,
              places: npt.NDArray[np.int64], ends: Numbers, order: npt.NDArray[np.int64]) -> float:
    """The cycles of a schedule. The other arrays are for what happens; the first row of `numbers`
    has the ends of groups then."""
    numbers[:] = 0
    places[:] = 0
    loops, bus = read_loops(schedule), read_bus(memory)
    writer = Writer(rows=rows, marks=places[0], buffers=places[1:4], loads=places[12],
                    sets=places[4], keys=order[ENGINES], rests=numbers[1])
    total = write_table(loops, writer)
    run = Run(times=numbers[2], counts=places[5], bursts=places[6:8], next=order,
              sizes=places[8], sent=places[9], begins=ends[0], ends=ends[1],
              arrivals=numbers[3], due=numbers[4:6], beats=numbers[6:8], rates=numbers[8:10],
              answered=numbers[10:12], owners=places[10:12], groups=numbers[0])
    run.counts[TOTAL] = total
    return run_table(rows, loops, bus, run)


simulate_loops = Deferred(_simulate, OPTIONS, "simulation of steps")
