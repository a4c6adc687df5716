"""The engines of the accelerator, step by step: a coarse simulation of a schedule.

Instructions are taken in the order of the program. Each begins when it has been fetched into its
engine's queue, the engine is free, and the tokens it waits for have been posted; all of these are
due to earlier instructions. Transfers go burst by burst through the calendar of the bus.
"""

# No postponed annotations here: numba reads the functions as they are.
import numpy as np
import numpy.typing as npt

from ...base.compiled.deferred_functions import OPTIONS, Deferred
from .bus_calendar import LATEST, Bus, Numbers, helper
from .step_records import (
    ALU,
    ALU_END,
    ALU_FREE,
    ALU_LATENCY,
    ANSWER,
    CONSUMED,
    ENDING,
    FINISH,
    GEMM,
    GEMM_END,
    GEMM_FREE,
    GEMM_LATENCY,
    GROUP_END,
    INTERVALS,
    KEPT,
    OF_INPUTS,
    OF_PARAMETERS,
    OF_UOPS,
    OF_WEIGHTS,
    PARAMETERS,
    ROWS,
    SEQUENCES,
    SETS,
    SETS_KEPT,
    STORED,
    SUMMED,
    TOKEN,
    TURNS,
    WRITE_END,
    Loops,
    State,
    read_bus,
    read_loops,
)
from .step_transfers import dispatch, end_beside, give_back, load, note_start, store


@helper
def _multiply(loops: Loops, bus: Bus, state: State, data: float, begins: bool,
              newest: bool) -> None:
    """GEMM's part of a piece."""
    ready = data + TOKEN
    if begins:
        free = state.buffers[SUMMED, 1 if newest else 0]
        ready = max(ready, free + TOKEN if free > 0 else 0.0)
    for _ in range(loops.gemms):
        start = max(dispatch(loops, bus, state, GEMM), state.times[GEMM_FREE], ready)
        at = state.counts[GEMM] % INTERVALS
        note_start(state, GEMM, start)
        end = start + loops.products / (loops.parts * loops.gemms)
        state.gemm_busy[at, 0], state.gemm_busy[at, 1] = start + 6, end + 6
        state.gemm_busy[at, 2] = loops.share
        state.times[GEMM_FREE], state.times[GEMM_END] = end, end + GEMM_LATENCY


@helper
def _compute(loops: Loops, bus: Bus, state: State, cycles: float, ready: float,
             count: int, blocked: float) -> None:
    """Work of the ALU on what is ready at a time, in a number of instructions. It may keep LOAD
    from its bank for a share of its cycles."""
    times, begin = state.times, 0.0
    for number in range(count):
        start = max(dispatch(loops, bus, state, ALU), times[ALU_FREE], ready + TOKEN)
        note_start(state, ALU, start)
        begin = begin if number else start
        # GEMM has priority in the only bank.
        times[ALU_FREE] = end_beside(state.gemm_busy, state.counts[GEMM], start,
                                      cycles / count, 0.0)
    times[ALU_END] = times[ALU_FREE] + ALU_LATENCY
    at = state.counts[TURNS] % INTERVALS
    state.alu_busy[at, 0], state.alu_busy[at, 1] = begin + ALU_LATENCY, times[ALU_END]
    state.alu_busy[at, 2] = blocked
    state.counts[TURNS] += 1


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
        data = max(data, load(loops, bus, state, OF_WEIGHTS, loops.wgt_bursts / loops.parts,
                               loops.wgt_beats, 1.0, 0.0, token))
    if part == 0 and group < loops.fresh and loops.inp_bursts > 0:
        for each in range(loops.inp_loads):
            here = load(loops, bus, state, OF_INPUTS, loops.inp_bursts / loops.inp_loads,
                         loops.inp_beats, loops.inp_rate, loops.fill / loops.inp_loads, free)
            data = max(data, here)
            if loops.load_vectors > 0:
                _compute(loops, bus, state, loops.load_vectors, here, 1, loops.load_blocked)
                if each == loops.inp_loads - 1:
                    give_back(state, CONSUMED, state.times[ALU_END])
    if piece == part == 0 and loops.par_bursts > 0 and (
            step == 0 or (not loops.par_once and (inner == 0 or loops.par_every))):
        sets = state.counts[SETS]
        token = state.sets[(sets - loops.par_copies) % SETS_KEPT] if (
            sets >= loops.par_copies) else 0.0
        state.times[PARAMETERS] = load(loops, bus, state, OF_PARAMETERS, loops.par_bursts,
                                        loops.par_beats, loops.par_rate, 0.0, token)
        state.counts[SETS] += 1
    if loops.uops > 0:
        source = turn if group < loops.fresh else inner * loops.pieces + piece
        weights = (group * loops.pieces + piece if loops.wgt_stays else turn) * loops.parts + part
        key = ((source % loops.src_copies * 4096 + weights % loops.wgt_copies) * 2
               + step % loops.sums) * 16 + part % 16
        if not _has_micro_ops(loops, state, key):
            data = max(data, load(loops, bus, state, OF_UOPS, 1.0, loops.uop_beats, 1.0, 0.0, 0.0))
    return data


@helper
def _run_step(loops: Loops, bus: Bus, state: State, step: int) -> float:
    """Everything up to the sums of a step. When they are there."""
    ready: float = 0.0
    for piece in range(loops.pieces):
        for part in range(loops.parts):
            data = _load_piece(loops, bus, state, step, piece, part)
            ready = max(ready, data)
            if piece == part == 0 and loops.clears > 0:
                _compute(loops, bus, state, loops.clears, state.buffers[SUMMED, 0], 1, 0.0)
                data = max(data, state.times[ALU_END])
            if loops.products > 0:
                _multiply(loops, bus, state, data, piece == part == 0,
                          loops.sums == 1 or loops.share > 0)
                ready = state.times[GEMM_END]
                if part == loops.parts - 1:
                    give_back(state, CONSUMED, ready)
            elif loops.piece_vectors > 0:
                _compute(loops, bus, state, loops.piece_vectors, data, loops.piece_alus,
                         loops.load_blocked)
                ready = state.times[ALU_FREE]
                give_back(state, CONSUMED, state.times[ALU_END])
            if part < loops.parts - 1 and piece == loops.pieces - 1:
                _finish_part(loops, bus, state, ready, part == 0)
    if step % loops.steps == loops.steps - 1:
        state.times[GROUP_END] = ready
    return ready


@helper
def _finish_part(loops: Loops, bus: Bus, state: State, ready: float, begins: bool) -> None:
    """Results of a step, or of a part of it."""
    free = state.buffers[STORED, 2 - loops.results] if begins else 0.0
    if loops.sum_alus > 0:
        _compute(loops, bus, state, loops.sum_vectors, ready, loops.sum_alus, loops.blocked)
    _compute(loops, bus, state, loops.vectors / loops.parts, max(
        ready, state.times[PARAMETERS], free), loops.alus, 0.0)     # results are elsewhere
    store(loops, bus, state)


@helper
def _finish_step(loops: Loops, bus: Bus, state: State, step: int, ready: float) -> None:
    _finish_part(loops, bus, state, ready, True)
    end, group, inner = state.times[ALU_END], step // loops.steps, step % loops.steps
    give_back(state, SUMMED, end)
    if loops.products == 0 and loops.piece_vectors == 0 and loops.load_vectors == 0:
        give_back(state, CONSUMED, end - loops.late * (loops.sum_vectors + loops.vectors))
    if loops.par_every or inner == loops.steps - 1:
        state.sets[(step if loops.par_every else group) % SETS_KEPT] = end
    if inner == loops.steps - 1:
        state.groups[group] = state.times[WRITE_END]


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


def _simulate(schedule: Numbers, memory: Numbers, calendar: Numbers, rows: Numbers,
              counts: npt.NDArray[np.int64]) -> float:
    """The cycles of a schedule. The other arrays are for what happens, and begin as zeros; the
    first row has the ends of groups then."""
    calendar[:] = 0
    rows[:] = 0
    counts[:] = 0
    loops, bus = read_loops(schedule), read_bus(memory, calendar)
    state = State(groups=rows[0], times=rows[1], rests=rows[2], reads=rows[3], writes=rows[4],
                  loads=rows[5], stores=rows[6], dispatched=rows[7], sets=rows[8],
                  starts=rows[9:13], buffers=rows[13:16], gemm_busy=rows[16:20],
                  alu_busy=rows[20:ROWS], counts=counts[0], keys=counts[1])
    return _run(loops, bus, state)


simulate_loops = Deferred(_simulate, OPTIONS, "simulation of steps")
