"""Windows, compiled: a window is planned and executed as the equivalent depthwise gemm.

    window, inner loop of N      =      gemm, inner loop of N - 2, three micro-ops
    uop  dst, src, wgt                  uop  dst, src,              wgt
                                        uop  dst, src + src_step,   wgt + wgt_step + 1
                                        uop  dst, src + 2 src_step, wgt + 2 wgt_step + 2

where the steps are the strides of the inner loop. Importing this module imports numba.
"""

from __future__ import annotations

from functools import cache

from ...isa.instructions import WINDOW_ROWS, WINDOW_TAPS, Gemm, Window
from ...isa.verification.bounds import BIAS, DST, SRC, WGT
from ..compiled.numba_types import Word
from ..compiled.vectors import NUMBER, c_function, half_at, helper, number_at, write_number
from . import gemm_plan
from .gemm_plan import DEPTHWISE, FIELD, FIRST_UOP, LOOPS, UOP_BYTES, UOPS, plan_and_execute
from .machine_table import ADDRESS, ELSEWHERE, OUTSIDE, PLAN, TILES, WINDOWS, place

OUTER, INNER = place(Window, "loops"), place(Window, "loops") + 2
FLAGS, UOP, WGT_STRIDE = (place(Window, name) for name in ("flags", "uop", "wgt_stride"))
SRC_STEP, WGT_STEP = place(Window, "src_stride") + 2, WGT_STRIDE + 2
INNER_OF_GEMM = gemm_plan.INNER
# Loops and strides are adjacent in both instructions.
WALKS, WALKS_OF_GEMM = OUTER, gemm_plan.OUTER
WALK_NUMBERS = 4 * LOOPS
assert place(Gemm, "wgt_stride") == WALKS_OF_GEMM + 3 * LOOPS == WGT_STRIDE - WALKS + WALKS_OF_GEMM
MOST = 1 << 8 * FIELD       # numbers that a field of a micro-op holds


@cache
def window() -> int:
    """The address of a C function that executes a window, given its row and the machine. It does
    not handle those without sums, and those that no gemm of three micro-ops can express."""
    def function(row: int, machine: int) -> Word:
        if number_at(machine, WINDOWS) == 0:
            return OUTSIDE
        inner = number_at(row, INNER)
        if number_at(row, OUTER) * number_at(row, OUTER + 1) == 0 or inner < WINDOW_TAPS:
            return ELSEWHERE
        if number_at(row, UOP) >= number_at(machine, UOPS + TILES):
            return OUTSIDE
        uop = number_at(machine, UOPS + ADDRESS) + number_at(row, UOP) * UOP_BYTES
        if not _is_group_aligned(row, half_at(uop + WGT * FIELD)):
            return OUTSIDE
        gemm = number_at(machine, PLAN) + NUMBER * gemm_plan.SPACE
        uops = gemm + NUMBER * gemm_plan.ROW_NUMBERS
        for tap in range(WINDOW_TAPS):
            src = half_at(uop + SRC * FIELD) + tap * number_at(row, SRC_STEP)
            wgt = half_at(uop + WGT * FIELD) + tap * (number_at(row, WGT_STEP) + 1)
            if src < 0 or src >= MOST or wgt < 0 or wgt >= MOST:
                return ELSEWHERE
            _write_uop(uops + tap * UOP_BYTES, half_at(uop + DST * FIELD), src, wgt,
                       half_at(uop + BIAS * FIELD))
        for number in range(WALK_NUMBERS):
            write_number(gemm, WALKS_OF_GEMM + number, number_at(row, WALKS + number))
        write_number(gemm, INNER_OF_GEMM, inner - WINDOW_TAPS + 1)
        return plan_and_execute(gemm, machine, uops, WINDOW_TAPS,
                               number_at(row, FLAGS) | DEPTHWISE | FIRST_UOP)
    return c_function(function)


@helper
def _is_group_aligned(row: int, wgt: int) -> bool:
    """Whether the weights of a window start at the first row of a group."""
    beside = wgt
    for loop in range(LOOPS):
        if number_at(row, OUTER + loop) > 1:
            beside |= number_at(row, WGT_STRIDE + loop)
    return beside % WINDOW_ROWS == 0


@helper
def _write_uop(at: int, dst: int, src: int, wgt: int, bias: int) -> None:
    write_number(at, 0, dst << 8 * FIELD * DST | src << 8 * FIELD * SRC | wgt << 8 * FIELD * WGT
                 | bias << 8 * FIELD * BIAS)
