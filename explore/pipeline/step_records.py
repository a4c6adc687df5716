"""What a simulation of steps begins with, a schedule as loops, and what it keeps track of."""

# No postponed annotations here: numba reads the functions as they are.
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...base.compiled.deferred_functions import OPTIONS, Deferred

# Cycles: from the queue to the begin, from there to a request, from an answer to a token, of a
# token, from the last slot to a result, from a store's begin to its data.
DISPATCH, REQUEST, WRITTEN, TOKEN = 0.5, 0.5, 1.0, 2.5
GEMM_LATENCY, ALU_LATENCY, STORE_LATENCY, ANSWER, BEGIN = 8.0, 17.0, 8.0, 0.5, 5.5
ENDING = 4.5
IN_A_BURST = 8              # instructions; two bursts of them are fetched ahead
LOADS_IN_FLIGHT = 4         # the same number of stores
MANY = 96                   # bursts of a transfer that are taken as one
ROOM, KEPT = 64, 256        # groups whose ends are noted; sequences of micro-ops remembered
SETS_KEPT, LOADS_KEPT = 8, 16
LOAD, GEMM, ALU, STORE = range(4)
# What one transfer leaves for the next: a part of a burst.
OF_INPUTS, OF_WEIGHTS, OF_PARAMETERS, OF_RESULTS, OF_UOPS = range(5)
CONSUMED, SUMMED, STORED = range(3)     # of buffers: who gave back the last two
Numbers = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., object])


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
    par_blocked: float          # share of GEMM's cycles in which it keeps them from their bank
    out_bursts: float
    out_beats: float
    products: float             # of a piece
    vectors: float              # cycles of the ALU for a step
    piece_vectors: float        # and for a piece, where there are no products
    sum_vectors: float          # before them, where no result is written yet
    sum_alus: int               # instructions that these take
    alus: int                   # instructions of the ALU for a part of a step's results,
    stores: int                 # of STORE,
    gemms: int                  # and of GEMM for a part of a piece
    clears: float               # cycles in which the ALU clears sums before GEMM begins
    load_vectors: float         # cycles of the ALU for what each load has brought
    piece_alus: int             # instructions of the ALU for a piece
    late: float                 # share of the ALU's cycles after it has read all inputs
    share: float                # of its cycles in which GEMM keeps the ALU from the only bank
    load_blocked: float         # of the ALU's cycles for a load or a piece, and
    blocked: float              # for a step's sums, in which it keeps LOAD from its bank
    buffers: int                # of inputs
    sums: int                   # buffers of sums
    results: int                # buffers of results
    uops: float                 # micro-ops of a sequence
    uop_room: float
    src_copies: int             # buffers that sequences of micro-ops name
    wgt_copies: int
    uop_beats: float
    code_beats: float           # of a burst of instructions
    queue: int
    rows: int                   # of the input that are kept, if each is loaded once; otherwise 0
    rows_step: int              # from a step's first row to that of the next


class Bus(NamedTuple):
    """A memory. Times are cycles."""

    read_latency: float
    write_latency: float
    beat: float
    turn: float
    shared: float               # 1 or 0
    reads: int                  # in flight
    writes: int


def helper(function: Function) -> Function:
    """A function that only compiled functions call."""
    return cast(Function, Deferred(
        function, OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}))


@helper
def read_loops(given: Numbers) -> Loops:
    """What Python wrote down, in order."""
    return Loops(
        int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4]), int(given[5]),
        given[6], given[7], given[8], given[9], given[10], given[11], given[12] > 0, given[13] > 0,
        given[14], given[15], given[16], int(given[17]), given[18] > 0, given[19] > 0, given[20],
        given[21], given[22], given[23], given[24], given[25], given[26], int(given[27]),
        int(given[28]), int(given[29]), int(given[30]), given[31], given[32], int(given[33]),
        given[34], given[35], given[36], given[37], int(given[38]), int(given[39]), int(given[40]),
        given[41], given[42], int(given[43]), int(given[44]), given[45], given[46], int(given[47]),
        int(given[48]), int(given[49]))


@helper
def read_bus(given: Numbers) -> Bus:
    return Bus(given[0], given[1], given[2], given[3], given[4], int(given[5]), int(given[6]))
