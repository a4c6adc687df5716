"""A schedule as a table of instructions, in the order of the program, each with those before it
whose tokens it waits for. Nothing of it is emitted: rows have amounts of work, no addresses."""

# No postponed annotations here: numba reads the functions as they are.
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...compiler.operators.depthwise.rows_once import ROWS_AHEAD
from .step_records import (
    ALU,
    CONSUMED,
    GEMM,
    KEPT,
    LOAD,
    LOADS_KEPT,
    MANY,
    OF_INPUTS,
    OF_PARAMETERS,
    OF_RESULTS,
    OF_UOPS,
    OF_WEIGHTS,
    SETS_KEPT,
    STORE,
    STORED,
    SUMMED,
    Loops,
    Numbers,
    helper,
)

MOST_ROWS = 24_000          # of a table
NONE = -1.0                 # no instruction
BY_GEMM, BY_ALU = 1.0, 2.0  # who keeps a load from its bank
# Columns: cycles of GEMM or the ALU, or bursts; beats of a burst and cycles of each; what keeps it
# from its bank, or the share of the ALU's cycles in which it keeps LOAD from it; instructions to
# wait for; how long before its end an instruction gives back its input; the group that it ends; how
# many bursts each stands for.
(ENGINE, WORK, BEATS, RATE, BLOCKS, FIRST, SECOND, THIRD, FOURTH, EARLY, ENDS,
 MERGED, COLUMNS) = range(13)
(LAST_LOAD, LAST_GEMM, LAST_ALU, LAST_STORE, PARAMETERS, GROUP_END, SETS, SEQUENCES,
 COUNT) = range(9)          # of what is remembered while a table is written
REMEMBERED = 16


class Writer(NamedTuple):
    """A table under way. What is remembered are places in it."""

    rows: Numbers
    marks: npt.NDArray[np.int64]
    buffers: npt.NDArray[np.int64]      # by who takes them: the last two that gave one back
    loads: npt.NDArray[np.int64]        # who took what the last loads, or steps of rows, brought
    sets: npt.NDArray[np.int64]         # of parameters: who needed them last
    keys: npt.NDArray[np.int64]         # of sequences of micro-ops on the chip
    rests: Numbers


@helper
def _append(writer: Writer, engine: int, work: float, first: int, second: int) -> int:
    """A new row. Once the table is full, its last one."""
    at: int = min(writer.marks[COUNT], MOST_ROWS - 1)
    row = writer.rows[at]
    row[:] = NONE
    row[ENGINE], row[WORK], row[FIRST], row[SECOND], row[EARLY] = engine, work, first, second, 0.0
    row[BLOCKS] = 0.0
    writer.marks[COUNT] = at + 1
    return at


@helper
def _transfer(writer: Writer, engine: int, rest: int, bursts: float, beats: float,
              least: float) -> int:
    """A transfer, whose bursts are whole ones that come to the right number in the end."""
    count = max(1, int(writer.rests[rest] + bursts + 0.5))
    writer.rests[rest] += bursts - count
    at = _append(writer, engine, min(count, MANY), int(NONE), int(NONE))
    row = writer.rows[at]
    row[BEATS], row[RATE] = bursts * beats / row[WORK], least
    row[MERGED] = count / row[WORK]
    return at


@helper
def _load(writer: Writer, rest: int, bursts: float, beats: float, rate: float, fill: float,
          token: int) -> int:
    at = _transfer(writer, LOAD, rest, bursts, beats, rate)
    row = writer.rows[at]
    row[FIRST] = token
    row[RATE] = rate + fill / max(1.0, row[WORK] * row[BEATS])
    writer.marks[LAST_LOAD] = at
    return at


@helper
def _compute(writer: Writer, cycles: float, count: int, blocks: float, first: int, second: int,
             third: int) -> int:
    """Work of the ALU on what others have made, in a number of instructions."""
    at = 0
    for _ in range(count):
        at = _append(writer, ALU, cycles / count, first, second)
        writer.rows[at, THIRD], writer.rows[at, BLOCKS] = third, blocks
    writer.marks[LAST_ALU] = at
    return at


@helper
def _give_back(writer: Writer, taker: int, by: int) -> None:
    writer.buffers[taker, 0], writer.buffers[taker, 1] = writer.buffers[taker, 1], by


@helper
def _has_micro_ops(loops: Loops, writer: Writer, key: int) -> bool:
    """Whether a sequence is on the chip; it is from now on."""
    count = writer.marks[SEQUENCES]
    for at in range(count):
        if writer.keys[at] == key:
            return True
    if count == KEPT or (count and (count + 1) * loops.uops > loops.uop_room):
        for at in range(count - 1):
            writer.keys[at] = writer.keys[at + 1]
        count -= 1
    writer.keys[count] = key
    writer.marks[SEQUENCES] = count + 1
    return False


@helper
def _load_piece(loops: Loops, writer: Writer, step: int, piece: int, part: int) -> int:
    """What a part of a piece needs. The last of its loads, if there is one."""
    group, inner = step // loops.steps, step % loops.steps
    marks, data = writer.marks, int(NONE)
    free = writer.buffers[CONSUMED, 0 if loops.buffers == 2 else 1]
    turn = step * loops.pieces + piece
    if loops.rows > 0:                          # there are those of two steps more
        free = writer.loads[(step - ROWS_AHEAD - 1) % LOADS_KEPT]
    if loops.wgt_bursts > 0 and (inner == 0 or not loops.wgt_stays):
        token = free if not loops.wgt_stays else marks[GROUP_END] if (
            group and not loops.wgt_ahead) else int(NONE)
        data = _load(writer, OF_WEIGHTS, loops.wgt_bursts / loops.parts, loops.wgt_beats, 1.0, 0.0,
                     token)
    if part == 0 and group < loops.fresh and loops.inp_bursts > 0:
        for each in range(loops.inp_loads):
            number = (group * loops.steps + inner) * loops.inp_loads + each
            if loops.load_vectors > 0:          # each is taken by itself
                free = writer.loads[(number - loops.buffers * loops.inp_loads) % LOADS_KEPT]
            data = _load(writer, OF_INPUTS, loops.inp_bursts / loops.inp_loads, loops.inp_beats,
                         loops.inp_rate, loops.fill / loops.inp_loads, free)
            if loops.load_blocked + loops.blocked > 0:
                writer.rows[data, BLOCKS] = BY_ALU
            if loops.load_vectors > 0:
                _compute(writer, loops.load_vectors, 1, loops.load_blocked, data, int(NONE),
                         int(NONE))
                writer.loads[number % LOADS_KEPT] = marks[LAST_ALU]
    if piece == part == 0 and loops.par_bursts > 0 and (
            step == 0 or (not loops.par_once and (inner == 0 or loops.par_every))):
        sets = marks[SETS]
        token = writer.sets[(sets - loops.par_copies) % SETS_KEPT] if (
            sets >= loops.par_copies) else int(NONE)
        marks[PARAMETERS] = _load(writer, OF_PARAMETERS, loops.par_bursts, loops.par_beats,
                                  loops.par_rate, 0.0, token)
        if loops.par_blocked > 0:
            writer.rows[marks[PARAMETERS], BLOCKS] = BY_GEMM
        marks[SETS] += 1
    if loops.rows > 0:
        for each in range(loops.gemms):
            key = ((step * loops.rows_step + each) % loops.rows * 64 + each) * 2 + step % 2
            if not _has_micro_ops(loops, writer, key):
                data = _load(writer, OF_UOPS, 1.0, loops.uop_beats, 1.0, 0.0, int(NONE))
    elif loops.uops > 0:
        source = turn if group < loops.fresh else inner * loops.pieces + piece
        weights = (group * loops.pieces + piece if loops.wgt_stays else turn) * loops.parts + part
        key = ((source % loops.src_copies * 4096 + weights % loops.wgt_copies) * 2
               + step % loops.sums) * 16 + part % 16
        if not _has_micro_ops(loops, writer, key):
            data = _load(writer, OF_UOPS, 1.0, loops.uop_beats, 1.0, 0.0, int(NONE))
    return data


@helper
def _write_step(loops: Loops, writer: Writer, step: int) -> int:
    """Everything up to the sums of a step. What they wait for, in the end."""
    ready, summed = int(NONE), writer.buffers[SUMMED]
    for piece in range(loops.pieces):
        for part in range(loops.parts):
            data = _load_piece(loops, writer, step, piece, part)
            ready, begins, cleared = max(ready, data), piece == part == 0, int(NONE)
            if begins and loops.clears > 0:
                cleared = _compute(writer, loops.clears, 1, 0.0, summed[0], int(NONE), int(NONE))
            if loops.products > 0:
                free = int(NONE) if not begins else summed[
                    1 if loops.sums == 1 or loops.share > 0 else 0]
                for _ in range(loops.gemms):
                    ready = _append(writer, GEMM, loops.products / (loops.parts * loops.gemms),
                                    data, free)
                    writer.rows[ready, THIRD] = cleared
                if part == loops.parts - 1:
                    _give_back(writer, CONSUMED, ready)
                    if loops.rows > 0:
                        writer.loads[step % LOADS_KEPT] = ready
            elif loops.piece_vectors > 0:
                last = _compute(writer, loops.piece_vectors, loops.piece_alus, loops.load_blocked,
                                data, int(NONE), int(NONE))
                ready = int(NONE)               # the ALU goes on by itself
                _give_back(writer, CONSUMED, last)
            if part < loops.parts - 1 and piece == loops.pieces - 1:
                _write_results(loops, writer, ready, part == 0)
    if step % loops.steps == loops.steps - 1:
        writer.marks[GROUP_END] = ready
    return ready


@helper
def _write_results(loops: Loops, writer: Writer, ready: int, begins: bool) -> None:
    """Results of a step, or of a part of it."""
    free = writer.buffers[STORED, 2 - loops.results] if begins else int(NONE)
    if loops.sum_alus > 0:
        _compute(writer, loops.sum_vectors, loops.sum_alus, loops.blocked, ready, int(NONE),
                 int(NONE))
    last = _compute(writer, loops.vectors / loops.parts, loops.alus, 0.0, ready,
                    writer.marks[PARAMETERS], free)     # results are elsewhere
    for _ in range(loops.stores):
        at = _transfer(writer, STORE, OF_RESULTS, loops.out_bursts / (loops.parts * loops.stores),
                       loops.out_beats, 1.0)
        writer.rows[at, FIRST] = last
        writer.marks[LAST_STORE] = at
    _give_back(writer, STORED, writer.marks[LAST_STORE])


@helper
def _finish_step(loops: Loops, writer: Writer, step: int, ready: int) -> None:
    _write_results(loops, writer, ready, True)
    end, group, inner = writer.marks[LAST_ALU], step // loops.steps, step % loops.steps
    _give_back(writer, SUMMED, end)
    if loops.products == 0 and loops.piece_vectors == 0 and loops.load_vectors == 0:
        writer.rows[end, EARLY] = loops.late * (loops.sum_vectors + loops.vectors)
        _give_back(writer, CONSUMED, end)
    if loops.par_every or inner == loops.steps - 1:
        writer.sets[(step if loops.par_every else group) % SETS_KEPT] = end
    if inner == loops.steps - 1:
        writer.rows[writer.marks[LAST_STORE], ENDS] = group


@helper
def write_table(loops: Loops, writer: Writer) -> int:
    """All instructions. Where GEMM keeps the ALU from its bank, it goes a step ahead."""
    ahead = loops.share > 0 and loops.sums == 2 and loops.parts == 1
    writer.marks[:] = 0
    writer.marks[PARAMETERS], writer.marks[GROUP_END] = int(NONE), int(NONE)
    writer.buffers[:] = int(NONE)
    writer.loads[:] = int(NONE)
    writer.rests[:] = 0
    before = int(NONE)
    for step in range(loops.groups * loops.steps):
        ready = _write_step(loops, writer, step)
        if not ahead:
            _finish_step(loops, writer, step, ready)
        elif step:
            _finish_step(loops, writer, step - 1, before)
        before = ready
    if ahead:
        _finish_step(loops, writer, loops.groups * loops.steps - 1, before)
    return int(writer.marks[COUNT])
