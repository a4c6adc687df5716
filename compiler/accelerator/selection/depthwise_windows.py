"""Depthwise sums as windows: three taps a cycle, sliding along one loop.

    for x: for kx in 3: acc[x] += inp[x + kx] ⊙ wgt[kx]     →     window, x + 2 cycles

Such a pair of loops is found in the loops around a depthwise product: taps that walk through rows
of weights one by one, and another that walks through activations as they do. The three rows must be
the first of a group of four, which is how the weights were packed (`operators.depthwise`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ....isa.instructions import WINDOW_ROWS, WINDOW_TAPS, GemmFlags, Instruction, Window
from ...expression.affine import Affine
from ...expression.expression import Axis
from .hardware_loops import (
    HARDWARE_LOOPS,
    REMEMBERED,
    Plan,
    Walk,
    Walks,
    fuse_loops,
    offsets,
    pad_loops,
    plan_of,
    split_off_longest,
    walks_of,
)
from .instructions import PLAIN, MicroKernels, Tiles, advance_tiles, gemms, longest_sequence

OPERANDS = 3                # dst, src and wgt
MORE = WINDOW_TAPS - 1      # iterations of a window's inner loop that make no sum

_window = lru_cache(REMEMBERED)(Window)


class WindowPlan(NamedTuple):
    """Loops around a depthwise product as windows."""

    parts: Walks            # of each sum, instructions of their own
    space: Plan
    first: GemmFlags        # of the windows that begin sums


@lru_cache(REMEMBERED)
def plan_windows(walks: Walks) -> WindowPlan | None:
    """Loops as windows; None if they are none, or take as long without. Two loops beside the one
    that slides are run by the hardware, the longest; they may add up."""
    taps = next((place for place, walk in enumerate(walks)
                 if walk.extent == WINDOW_TAPS and walk.steps[0] == 0 and walk.steps[2] == 1), None)
    slides = [place for place, walk in enumerate(walks) if taps is not None
              and walk.steps[0] and walk.steps[1:] == (walks[taps].steps[1], 0)
              and walk.extent + MORE < WINDOW_TAPS * walk.extent]
    if not slides:
        return None
    chosen = max(slides, key=lambda place: walks[place].extent)
    slide = walks[chosen]
    others = fuse_loops(tuple(walk for place, walk in enumerate(walks)
                              if place not in (taps, chosen)))
    if any(walk.steps[2] % WINDOW_ROWS for walk in others):
        return None
    written, near = split_off_longest(others, HARDWARE_LOOPS - 1)
    near = pad_loops(near, HARDWARE_LOOPS - 1, OPERANDS)
    first = GemmFlags.START
    for walk, flag in zip(near, (GemmFlags.FIRST_OUTER, GemmFlags.FIRST_MIDDLE), strict=True):
        if walk.extent > 1 and not walk.steps[0]:
            first |= flag
    return WindowPlan(tuple(walk for walk in written if not walk.steps[0]), plan_of(
        tuple(walk for walk in written if walk.steps[0]),
        (*near, Walk(slide.extent + MORE, slide.steps)), OPERANDS), first)


def depthwise_sums(axes: Sequence[Axis], dst: Affine, src: Affine, wgt: Affine,
                   kernels: MicroKernels, *, starts: bool,
                   mode: GemmFlags = PLAIN) -> Iterator[Instruction]:
    """Windows for loops around a depthwise product where the accelerator has them and they are
    faster, else gemms; with `starts`, the first product of each accumulator tile begins its sum.
    `mode` says what is multiplied."""
    plan = None
    if kernels.config.has_windows and wgt.constant % WINDOW_ROWS == 0:
        plan = plan_windows(walks_of(axes, (dst, src, wgt)))
    if plan is None:
        return gemms(axes, dst, src, wgt, kernels, starts=starts, mode=mode | GemmFlags.DEPTHWISE)
    return _windows(plan, (dst.constant, src.constant, wgt.constant), kernels, mode, starts=starts)


def _windows(plan: WindowPlan, tiles: Tiles, kernels: MicroKernels, mode: GemmFlags, *,
             starts: bool) -> Iterator[Instruction]:
    """Each window has one micro-op; those of many are loaded at once."""
    dst_stride, src_stride, wgt_stride = plan.space.strides
    found = [(number, advance_tiles(advance_tiles(tiles, part), near))
             for number, part in enumerate(offsets(plan.parts, OPERANDS))
             for near in offsets(plan.space.written, OPERANDS)]
    most = longest_sequence(kernels.config)
    for begin in range(0, len(found), most):
        some = found[begin:begin + most]
        uop, loads = kernels.place(tuple(each for _, each in some), mode | GemmFlags.DEPTHWISE)
        yield from loads
        for place, (number, _) in enumerate(some):
            yield _window(flags=mode | (plan.first if starts and number == 0 else PLAIN),
                          uop=uop + place, loops=plan.space.counts, dst_stride=dst_stride,
                          src_stride=src_stride, wgt_stride=wgt_stride)
