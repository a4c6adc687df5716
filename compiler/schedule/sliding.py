"""Stages that slide: each iteration computes what the one before has not, and keeps the rest.

Copies of the buffer overlap: where one ends, the next has what both need. They lie in a ring

    first        step         step
    ┌─────┬────────────┬────────────┐
    │     │ new of 0   │ new of 1   │
    └─────┴────────────┴────────────┘
    copy 0 ────────────┘
                 copy 1 ────────────┘    its end is the beginning of copy 0, where it is written too
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import CompileError
from ..expression.affine import Affine
from ..expression.expression import Axis
from ..nest.nest import Slide
from .regions import Part
from .stage import Stage


def slide_of(stage: Stage, part: Part, loop: Axis) -> Slide | None:
    """How a stage slides through the part that an iteration of a loop needs; None if it does not,
    or iterations have nothing in common."""
    if stage.sliding is None:
        return None
    dimension = stage.tensor.axes.index(stage.sliding)
    start, extent = part.start[dimension], part.extents[dimension]
    if not 0 < start.of(loop) < extent:
        return None
    step = start.of(loop)
    first = extent - step
    if start.drop_axes(loop).range()[1] + first > 0:
        raise CompileError(f"{stage} slides by {step} in {loop}, but the first iteration needs "
                           f"{first} of {stage.sliding} from before that lie inside the tensor; "
                           f"split that loop late")
    return Slide(dimension, step, first)


def new_part(part: Part, slide: Slide) -> Part:
    """What an iteration computes of the part that it needs."""
    start, extents = list(part.start), list(part.extents)
    start[slide.dimension] += Affine(slide.first)
    extents[slide.dimension] = slide.step
    return replace(part, start=tuple(start), extents=tuple(extents))


def ring_copies(stage: Stage, slide: Slide) -> int:
    """Copies in a ring: enough that the beginning of it is no longer needed when its end is
    written, perhaps an iteration ahead."""
    return 2 * -(-slide.first // slide.step) + stage.ahead
