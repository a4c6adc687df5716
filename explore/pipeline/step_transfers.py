"""Instructions on their way to the engines, and the transfers of LOAD and STORE."""

# No postponed annotations here: numba reads the functions as they are.
import numpy as np
import numpy.typing as npt

from .bus_calendar import LATEST, READS, WRITES, Bus, Numbers, helper, reserve
from .step_records import (
    ALL,
    ALU_END,
    ANSWER,
    ARRIVED,
    BEGIN,
    DISPATCH,
    FETCHED,
    FILLED,
    FINISH,
    GEMM,
    IN_A_BURST,
    INTERVALS,
    LOAD,
    LOADS_IN_FLIGHT,
    MANY,
    OF_INPUTS,
    OF_PARAMETERS,
    OF_RESULTS,
    READ_BURSTS,
    READ_END,
    REQUEST,
    REQUESTED,
    RING,
    SENT,
    STORE,
    STORE_LATENCY,
    STORED,
    TOKEN,
    TURNS,
    WRITE_BURSTS,
    WRITE_END,
    WRITTEN,
    Loops,
    State,
)


@helper
def dispatch(loops: Loops, bus: Bus, state: State, engine: int) -> float:
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
def note_start(state: State, engine: int, time: float) -> None:
    state.starts[engine, state.counts[engine] % RING] = time
    state.counts[engine] += 1


@helper
def _whole_bursts(state: State, rest: int, bursts: float) -> int:
    """A number of bursts in the mean, as whole ones."""
    count = max(1, int(state.rests[rest] + bursts + 0.5))
    state.rests[rest] += bursts - count
    return count


@helper
def load(loops: Loops, bus: Bus, state: State, rest: int, bursts: float, beats: float,
          rate: float, fill: float, token: float) -> float:
    """A load. When its data are there."""
    times, number = state.times, state.counts[LOAD]
    start = max(dispatch(loops, bus, state, LOAD), times[REQUESTED])
    if token > 0:
        start = max(start, token + TOKEN)
    if number >= LOADS_IN_FLIGHT:
        start = max(start, state.loads[number % LOADS_IN_FLIGHT])
    note_start(state, LOAD, start)
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
    work, before = bursts * beats * rate + fill, times[FILLED]
    times[FILLED] = max(times[READ_END], before + work)
    if rest == OF_INPUTS and loops.load_blocked + loops.blocked > 0:
        times[FILLED] = max(times[FILLED], end_beside(
            state.alu_busy, state.counts[TURNS], max(before, start + bus.read_latency), work, 0.0))
    if rest == OF_PARAMETERS and loops.par_blocked > 0:
        # GEMM writes a sum in every cycle, and LOAD waits for its bank. So does all behind it.
        times[FILLED] = max(times[FILLED], end_beside(
            state.gemm_busy, state.counts[GEMM], max(before, times[READ_END] - work), work,
            loops.par_blocked))
        times[READ_END] = max(times[READ_END], times[FILLED])
    end: float = times[FILLED] + WRITTEN
    state.loads[number % LOADS_IN_FLIGHT] = end
    return end


@helper
def _note_burst(ring: Numbers, counts: npt.NDArray[np.int64], which: int, end: float) -> None:
    ring[counts[which] % RING] = end
    counts[which] += 1


@helper
def store(loops: Loops, bus: Bus, state: State) -> None:
    """Store what the ALU has made of a step, or of a part of it."""
    end: float = 0.0
    for _ in range(loops.stores):
        end = _store_one(loops, bus, state, loops.out_bursts / (loops.parts * loops.stores))
    give_back(state, STORED, end)


@helper
def _store_one(loops: Loops, bus: Bus, state: State, bursts: float) -> float:
    """One instruction. When its data are in memory."""
    times, number = state.times, state.counts[STORE]
    start = max(dispatch(loops, bus, state, STORE), times[ALU_END] + TOKEN, times[SENT])
    if number >= LOADS_IN_FLIGHT:
        start = max(start, state.stores[number % LOADS_IN_FLIGHT] - bus.write_latency)
    note_start(state, STORE, start)
    if bus.calendar[LATEST, 0] > times[WRITE_END]:          # reads have delayed earlier ones
        times[WRITE_END] = bus.calendar[LATEST, 0]
        state.buffers[STORED, 1] = max(state.buffers[STORED, 1],
                                       times[WRITE_END] + bus.write_latency)
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
    end: float = times[WRITE_END] + bus.write_latency + ANSWER
    state.stores[number % LOADS_IN_FLIGHT] = end
    times[FINISH] = max(times[FINISH], end)
    return end


@helper
def give_back(state: State, taker: int, time: float) -> None:
    state.buffers[taker, 0], state.buffers[taker, 1] = state.buffers[taker, 1], time


@helper
def end_beside(busy: Numbers, count: int, time: float, left: float, least: float) -> float:
    """When so many cycles of work are over, if others take a share of those in which they are
    busy, their own or this at least."""
    for number in range(max(0, count - INTERVALS + 1), count):
        at = number % INTERVALS
        begin, end, share = busy[at, 0], busy[at, 1], min(max(busy[at, 2], least), 0.999)
        if end > time and left > 0 and share > 0:
            alone = min(left, max(0.0, begin - time))
            time, left = time + alone, left - alone
            beside = min(left, (end - time) * (1 - share))
            time = time + beside / (1 - share) if beside == left and left > 0 else max(
                time, end if left > 0 else time)
            left -= beside
    return time + left
