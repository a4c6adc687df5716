"""How the input of depthwise sums comes: in boxes, or in rows of which each is loaded once.

Boxes overlap where windows do: 3 × 3 windows of 28 × 28 results see 30 × 30 pixels, 15 % more. Rows
have buffers of their own, used in turn; a row that is still in one is not loaded again:

    row 0 of results     rows 0 1 2 of the input      loads 0 1 2
    row 1                     1 2 3                         3
    row 2                       2 3 4                       4
"""

from __future__ import annotations

import numpy as np

from ...schedule.schedule import Schedule, Stage
from ..cost_model import Column, Mask
from .depthwise import DepthwiseForm

ROWS_AHEAD = 2                  # steps of which rows are loaded early


def is_row_by_row(form: DepthwiseForm, rows: Column) -> Mask:
    """Whether steps of so many rows of results load rows of the input one by one: those of one
    row do, unless windows slide across rows. With two planes of weights the MAC array works twice
    as long, and streams did not become faster."""
    spec, chunks = form.spec, form.chunks
    if (chunks.slide == 0 or chunks.counts != (1, 1) or spec.kernel[0] <= spec.stride[0]
            or spec.dilation[0] > 1 or spec.planes > 1 or form.asked.columns_in > 1
            or form.repeats > 1 or form.pitch):
        return False
    single: Mask = np.equal(rows, 1) & (spec.out_height > 1)
    return single


def row_buffers(form: DepthwiseForm) -> int:
    """Rows of the input on the chip: those of a window, and of the next steps."""
    return form.spec.kernel[0] + ROWS_AHEAD * form.spec.stride[0]


def load_rows_once(plan: Schedule, form: DepthwiseForm, stage: Stage) -> None:
    """Load the input of some sums row by row."""
    n, o, y, x, b, j, ty, tx, across, *taps = stage.leaves
    stage.reorder(ty, tx, across, n, o, y, x, *taps, b, j)
    plan[form.padded].compute_at(stage, across)
    plan[form.padded].keep(row_buffers(form))


def load_boxes(plan: Schedule, form: DepthwiseForm, stage: Stage) -> None:
    """Load the input of some sums box by box, chunk by chunk."""
    n, o, y, x, b, j, ty, tx, *taps = stage.leaves
    stage.reorder(ty, tx, n, o, y, x, *taps, b, j)
    plan[form.padded].compute_at(stage, tx)
    plan[form.padded].double_buffer(tx)
