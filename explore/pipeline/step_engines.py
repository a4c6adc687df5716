"""The engines of the accelerator, step by step: a coarse simulation of a schedule.

Instructions are taken in the order of the program. Each begins when it has been fetched into its
engine's queue, the engine is free, and the tokens it waits for have been posted; all of these are
due to earlier instructions. Transfers go burst by burst through the calendar of the bus.
"""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.compiled.deferred_functions import OPTIONS, Deferred
from .bus_calendar import LATEST, READS, WRITES, Bus, Numbers, helper, reserve

# Cycles: from the queue to the begin, from there to a request, from an answer to a token, of a
# token, from the last slot to a result, from a store's begin to its data.
DISPATCH, REQUEST, WRITTEN, TOKEN = 0.5, 0.5, 1.0, 2.5
GEMM_LATENCY, ALU_LATENCY, STORE_LATENCY, ANSWER, BEGIN = 8.0, 17.0, 8.0, 0.5, 5.5
ENDING = 4.5
IN_A_BURST = 8              # instructions; two bursts of them are fetched ahead
LOADS_IN_FLIGHT = 4         # the same number of stores
MANY = 96                   # bursts of a transfer that are taken as one
RING, KEPT = 64, 256        # of what came last; sequences of micro-ops that are remembered
SETS_KEPT, INTERVALS = 8, 4
ROWS = 20                   # of 64 numbers each, that a simulation needs
LOAD, GEMM, ALU, STORE = range(4)
# Points in time.
(FETCHED, ARRIVED, REQUESTED, READ_END, FILLED, SENT, WRITE_END, GEMM_FREE, GEMM_END, ALU_FREE,
 ALU_END, PARAMETERS, GROUP_END, FINISH) = range(14)
# Counts: instructions of each engine, and all; bursts; sequences of micro-ops; loads of parameters.
ALL, READ_BURSTS, WRITE_BURSTS, SEQUENCES, SETS = range(4, 9)
# What one transfer leaves for the next: a part of a burst.
OF_INPUTS, OF_WEIGHTS, OF_PARAMETERS, OF_RESULTS, OF_UOPS = range(5)
CONSUMED, SUMMED, STORED = range(3)     # of buffers: when the last two were given back


class Loops(NamedTuple):
    """A schedule: loops, and what each step takes. Transfers have bursts, beats of each, and the
    least cycles of a beat."""

    groups: int
    steps: int                  # of a group
    pieces: int                 # of a step
    parts: int                  # of a piece, and of a step's results
    fresh: int                  # groups that load their inputs
    inp_loads: int              # for a piece
    inp_bursts: float
    inp_beats: float
    inp_rate: float
    fill: float                 # cycles in which borders are filled in
    wgt_bursts: float
    wgt_beats: float
    wgt_stays: bool
    wgt_ahead: bool             # those of the next group come while these are in use
    par_bursts: float
    par_beats: float
    par_rate: float
    par_copies: int
    par_once: bool              # for all groups, or
    par_every: bool             # with each step
    out_bursts: float
    out_beats: float
    products: float             # of a piece
    vectors: float              # cycles of the ALU for a step
    piece_vectors: float        # and for a piece, where there are no products
    late: float                 # share of the ALU's cycles after it has read all inputs
    share: float                # of its cycles in which GEMM keeps the ALU from the only bank
    buffers: int                # of inputs
    sums: int                   # buffers of sums
    uops: float                 # micro-ops of a sequence
    uop_room: float
    src_copies: int             # buffers that sequences of micro-ops name
    wgt_copies: int
    uop_beats: float
    code_beats: float           # of a burst of instructions
    queue: int


class State(NamedTuple):
    """What has happened so far."""

    times: Numbers
    counts: npt.NDArray[np.int64]
    rests: Numbers
    starts: Numbers             # by engine: the last ones
    reads: Numbers              # ends of bursts
    writes: Numbers
    loads: Numbers              # ends
    stores: Numbers
    dispatched: Numbers
    buffers: Numbers            # by who takes them
    sets: Numbers               # of parameters: when they were no more needed
    intervals: Numbers          # in which GEMM worked, the last ones
    keys: npt.NDArray[np.int64]     # of sequences on the chip
    groups: Numbers             # ends


@helper
def _dispatch(loops: Loops, bus: Bus, state: State, engine: int) -> float:
    """Fetch an instruction. When its engine may take it."""
    times, counts = state.times, state.counts
    number = counts[ALL]
    if number % IN_A_BURST == 0:
        asked = BEGIN if number < 2 * IN_A_BURST else state.dispatched[
            (number - IN_A_BURST) % (2 * IN_A_BURST)]
        burst = counts[READ_BURSTS]
        if burst >= bus.reads:
            asked = max(asked, state.reads[(burst - bus.reads) % RING])
        times[ARRIVED] = reserve(bus, READS, asked + bus.read_latency + 1, loops.code_beats,
                                 bus.beat)
        state.reads[burst % RING] = max(times[ARRIVED], state.reads[(burst - 1) % RING])
        counts[READ_BURSTS] += 1
    ready: float = max(times[FETCHED] + 1, times[ARRIVED])
    if counts[engine] >= loops.queue:
        ready = max(ready, state.starts[engine, (counts[engine] - loops.queue) % RING])
    times[FETCHED] = state.dispatched[number % (2 * IN_A_BURST)] = ready
    counts[ALL] += 1
    return ready + DISPATCH


@helper
def _note_start(state: State, engine: int, time: float) -> None:
    state.starts[engine, state.counts[engine] % RING] = time
    state.counts[engine] += 1


@helper
def _whole_bursts(state: State, rest: int, bursts: float) -> int:
    """A number of bursts in the mean, as whole ones."""
    count = max(1, int(state.rests[rest] + bursts + 0.5))
    state.rests[rest] += bursts - count
    return count


@helper
def _load(loops: Loops, bus: Bus, state: State, rest: int, bursts: float, beats: float,
          rate: float, fill: float, token: float) -> float:
    """A load. When its data are there."""
    times, number = state.times, state.counts[LOAD]
    start = max(_dispatch(loops, bus, state, LOAD), times[REQUESTED])
    if token > 0:
        start = max(start, token + TOKEN)
    if number >= LOADS_IN_FLIGHT:
        start = max(start, state.loads[number % LOADS_IN_FLIGHT])
    _note_start(state, LOAD, start)
    count, asked = _whole_bursts(state, rest, bursts), start + REQUEST
    size = bursts * beats / count
    rate = max(rate, bus.beat)
    if count > MANY:
        slow = (bus.read_latency + 2 + size) / (bus.reads * size)
        times[READ_END] = reserve(bus, READS, max(asked + bus.read_latency, times[READ_END]),
                                  size * count, max(rate, slow))
        asked = max(asked, times[READ_END] - bus.read_latency)
        _note_burst(state.reads, state.counts, READ_BURSTS, times[READ_END])
        count = 0
    for each in range(count):
        if each:
            asked += 1
        if state.counts[READ_BURSTS] >= bus.reads:
            asked = max(asked, 1 + state.reads[(state.counts[READ_BURSTS] - bus.reads) % RING])
        times[READ_END] = reserve(bus, READS, max(asked + bus.read_latency, times[READ_END]),
                                  size, rate)
        _note_burst(state.reads, state.counts, READ_BURSTS, times[READ_END])
    times[REQUESTED] = asked
    times[FILLED] = max(times[READ_END], times[FILLED] + bursts * beats * rate + fill)
    end: float = times[FILLED] + WRITTEN
    state.loads[number % LOADS_IN_FLIGHT] = end
    return end


@helper
def _note_burst(ring: Numbers, counts: npt.NDArray[np.int64], which: int, end: float) -> None:
    ring[counts[which] % RING] = end
    counts[which] += 1


@helper
def _store(loops: Loops, bus: Bus, state: State) -> None:
    """Store what the ALU has made of a step, or of a part of it."""
    times, number = state.times, state.counts[STORE]
    start = max(_dispatch(loops, bus, state, STORE), times[ALU_END] + TOKEN, times[SENT])
    if number >= LOADS_IN_FLIGHT:
        start = max(start, state.stores[number % LOADS_IN_FLIGHT] - bus.write_latency)
    _note_start(state, STORE, start)
    if bus.calendar[LATEST, 0] > times[WRITE_END]:          # reads have delayed earlier ones
        times[WRITE_END] = bus.calendar[LATEST, 0]
        state.buffers[STORED, 1] = max(state.buffers[STORED, 1],
                                       times[WRITE_END] + bus.write_latency)
    bursts = loops.out_bursts / loops.parts
    count, sent = _whole_bursts(state, OF_RESULTS, bursts), start + STORE_LATENCY
    size, rate = bursts * loops.out_beats / count, bus.beat
    if count > MANY:
        rate = max(rate, (bus.write_latency + 2 + size) / (bus.writes * size))
        size, count = size * count, 1
    for each in range(count):
        if each:
            sent += 1
        if state.counts[WRITE_BURSTS] >= bus.writes:
            sent = max(sent, 1 + state.writes[(state.counts[WRITE_BURSTS] - bus.writes) % RING])
        times[WRITE_END] = reserve(bus, WRITES, max(sent + 1, times[WRITE_END]), size, rate)
        _note_burst(state.writes, state.counts, WRITE_BURSTS,
                    times[WRITE_END] + bus.write_latency + ANSWER)
    times[SENT] = sent
    end = times[WRITE_END] + bus.write_latency + ANSWER
    state.stores[number % LOADS_IN_FLIGHT] = end
    times[FINISH] = max(times[FINISH], end)
    _give_back(state, STORED, end)


@helper
def _give_back(state: State, taker: int, time: float) -> None:
    state.buffers[taker, 0], state.buffers[taker, 1] = state.buffers[taker, 1], time


@helper
def _multiply(loops: Loops, bus: Bus, state: State, data: float, begins: bool,
              newest: bool) -> None:
    """GEMM's part of a piece."""
    start = max(_dispatch(loops, bus, state, GEMM), state.times[GEMM_FREE], data + TOKEN)
    if begins:
        free = state.buffers[SUMMED, 1 if newest else 0]
        start = max(start, free + TOKEN if free > 0 else 0.0)
    at = state.counts[GEMM] % INTERVALS
    _note_start(state, GEMM, start)
    end = start + loops.products / loops.parts
    state.intervals[at, 0], state.intervals[at, 1] = start + 6, end + 6
    state.times[GEMM_FREE], state.times[GEMM_END] = end, end + GEMM_LATENCY


@helper
def _compute(loops: Loops, bus: Bus, state: State, cycles: float, ready: float) -> None:
    """Work of the ALU on what is ready at a time."""
    times = state.times
    start = max(_dispatch(loops, bus, state, ALU), times[ALU_FREE], ready + TOKEN)
    _note_start(state, ALU, start)
    times[ALU_FREE] = _end_beside_gemm(loops, state, start, cycles)
    times[ALU_END] = times[ALU_FREE] + ALU_LATENCY


@helper
def _end_beside_gemm(loops: Loops, state: State, time: float, left: float) -> float:
    """When so many cycles of the ALU are over, if GEMM has priority in the only bank."""
    if loops.share <= 0:
        return time + left
    gemms = state.counts[GEMM]
    for number in range(max(0, gemms - INTERVALS + 1), gemms):
        begin, end = state.intervals[number % INTERVALS, 0], state.intervals[number % INTERVALS, 1]
        if end > time and left > 0:
            alone = min(left, max(0.0, begin - time))
            time, left = time + alone, left - alone
            beside = min(left, (end - time) * (1 - loops.share))
            time = time + beside / (1 - loops.share) if beside == left and left > 0 else max(
                time, end if left > 0 else time)
            left -= beside
    return time + left


@helper
def _has_micro_ops(loops: Loops, state: State, key: int) -> bool:
    """Whether a sequence is on the chip; it is from now on."""
    count = state.counts[SEQUENCES]
    for at in range(count):
        if state.keys[at] == key:
            return True
    if count == KEPT or (count and (count + 1) * loops.uops > loops.uop_room):
        for at in range(count - 1):
            state.keys[at] = state.keys[at + 1]
        count -= 1
    state.keys[count] = key
    state.counts[SEQUENCES] = count + 1
    return False


@helper
def _load_piece(loops: Loops, bus: Bus, state: State, step: int, piece: int, part: int) -> float:
    """What a part of a piece needs. When it is there."""
    group, inner = step // loops.steps, step % loops.steps
    data, free = 0.0, state.buffers[CONSUMED, 0 if loops.buffers == 2 else 1]
    turn = step * loops.pieces + piece
    if loops.wgt_bursts > 0 and (inner == 0 or not loops.wgt_stays):
        token = free if not loops.wgt_stays else state.times[GROUP_END] if (
            group and not loops.wgt_ahead) else 0.0
        data = max(data, _load(loops, bus, state, OF_WEIGHTS, loops.wgt_bursts / loops.parts,
                               loops.wgt_beats, 1.0, 0.0, token))
    if part == 0 and group < loops.fresh and loops.inp_bursts > 0:
        for _ in range(loops.inp_loads):
            data = max(data, _load(loops, bus, state, OF_INPUTS,
                                   loops.inp_bursts / loops.inp_loads, loops.inp_beats,
                                   loops.inp_rate, loops.fill / loops.inp_loads, free))
    if piece == part == 0 and loops.par_bursts > 0 and (
            step == 0 or (not loops.par_once and (inner == 0 or loops.par_every))):
        sets = state.counts[SETS]
        token = state.sets[(sets - loops.par_copies) % SETS_KEPT] if (
            sets >= loops.par_copies) else 0.0
        state.times[PARAMETERS] = _load(loops, bus, state, OF_PARAMETERS, loops.par_bursts,
                                        loops.par_beats, loops.par_rate, 0.0, token)
        state.counts[SETS] += 1
    if loops.uops > 0:
        source = turn if group < loops.fresh else inner * loops.pieces + piece
        weights = (group * loops.pieces + piece if loops.wgt_stays else turn) * loops.parts + part
        key = ((source % loops.src_copies * 4096 + weights % loops.wgt_copies) * 2
               + step % loops.sums) * 16 + part % 16
        if not _has_micro_ops(loops, state, key):
            data = max(data, _load(loops, bus, state, OF_UOPS, 1.0, loops.uop_beats, 1.0, 0.0, 0.0))
    return data


@helper
def _run_step(loops: Loops, bus: Bus, state: State, step: int) -> float:
    """Everything up to the sums of a step. When they are there."""
    ready: float = 0.0
    for piece in range(loops.pieces):
        for part in range(loops.parts):
            data = _load_piece(loops, bus, state, step, piece, part)
            ready = max(ready, data)
            if loops.products > 0:
                _multiply(loops, bus, state, data, piece == part == 0,
                          loops.sums == 1 or loops.share > 0)
                ready = state.times[GEMM_END]
                if part == loops.parts - 1:
                    _give_back(state, CONSUMED, ready)
            elif loops.piece_vectors > 0:
                _compute(loops, bus, state, loops.piece_vectors, data)
                ready = state.times[ALU_FREE]
                _give_back(state, CONSUMED, state.times[ALU_END])
            if part < loops.parts - 1 and piece == loops.pieces - 1:
                _finish_part(loops, bus, state, ready, part == 0)
    if step % loops.steps == loops.steps - 1:
        state.times[GROUP_END] = ready
    return ready


@helper
def _finish_part(loops: Loops, bus: Bus, state: State, ready: float, begins: bool) -> None:
    """Results of a step, or of a part of it."""
    free = state.buffers[STORED, 0] if begins else 0.0
    _compute(loops, bus, state, loops.vectors / loops.parts, max(
        ready, state.times[PARAMETERS], free))
    _store(loops, bus, state)


@helper
def _finish_step(loops: Loops, bus: Bus, state: State, step: int, ready: float) -> None:
    _finish_part(loops, bus, state, ready, True)
    end, group, inner = state.times[ALU_END], step // loops.steps, step % loops.steps
    _give_back(state, SUMMED, end)
    if loops.products == 0 and loops.piece_vectors == 0:
        _give_back(state, CONSUMED, end - loops.late * loops.vectors)
    if loops.par_every or inner == loops.steps - 1:
        state.sets[(step if loops.par_every else group) % SETS_KEPT] = end
    if inner == loops.steps - 1:
        state.groups[group] = state.times[WRITE_END]


@helper
def _loops(given: Numbers) -> Loops:
    """What Python wrote down, in order."""
    return Loops(
        int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4]), int(given[5]),
        given[6], given[7], given[8], given[9], given[10], given[11], given[12] > 0, given[13] > 0,
        given[14], given[15], given[16], int(given[17]), given[18] > 0, given[19] > 0, given[20],
        given[21], given[22], given[23], given[24], given[25], given[26], int(given[27]),
        int(given[28]), given[29], given[30], int(given[31]), int(given[32]), given[33], given[34],
        int(given[35]))


@helper
def _bus(given: Numbers, calendar: Numbers) -> Bus:
    return Bus(given[0], given[1], given[2], given[3], given[4], int(given[5]), int(given[6]),
               given[7], calendar)


def _simulate(schedule: Numbers, memory: Numbers, calendar: Numbers, rows: Numbers,
              counts: npt.NDArray[np.int64]) -> float:
    """The cycles of a schedule. The other arrays are for what happens, and begin as zeros; the
    first row has the ends of groups then."""
    calendar[:] = 0
    rows[:] = 0
    counts[:] = 0
    loops, bus = _loops(schedule), _bus(memory, calendar)
    state = State(groups=rows[0], times=rows[1], rests=rows[2], reads=rows[3], writes=rows[4],
                  loads=rows[5], stores=rows[6], dispatched=rows[7], sets=rows[8],
                  starts=rows[9:13], buffers=rows[13:16], intervals=rows[16:ROWS],
                  counts=counts[0], keys=counts[1])
    return _run(loops, bus, state)


@helper
def _run(loops: Loops, bus: Bus, state: State) -> float:
    """Where GEMM keeps the ALU from its bank, it goes a step ahead."""
    ahead = loops.share > 0 and loops.sums == 2 and loops.parts == 1
    before = 0.0
    for step in range(loops.groups * loops.steps):
        ready = _run_step(loops, bus, state, step)
        if not ahead:
            _finish_step(loops, bus, state, step, ready)
        elif step:
            _finish_step(loops, bus, state, step - 1, before)
        before = ready
    if ahead:
        _finish_step(loops, bus, state, loops.groups * loops.steps - 1, before)
    late = bus.calendar[LATEST, 0] + bus.write_latency + ANSWER
    end: float = max(state.times[FINISH], late if bus.calendar[LATEST, 0] > 0 else 0.0)
    return end + ENDING


simulate_loops = Deferred(_simulate, OPTIONS, "simulation of steps")
