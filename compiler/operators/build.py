"""Operators compiled: from a description to a program, with everything on the way to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from ...isa.config import Config
from ...isa.program import Program
from ...isa.timing import MemoryTiming
from ..accelerator.intrinsic import requantize
from ..accelerator.pipeline import build
from ..errors import CompileError
from ..nest.nest import Nest
from . import conv2d, conv2d_schedule
from .choice import Candidate, Options, Template, fastest, ranked
from .roofline import bound_of


@dataclass(frozen=True)
class Kernel:
    """A compiled operator. `knobs` are those of its template."""

    knobs: Any
    nest: Nest
    program: Program


def compiled(template: Template, whats: Sequence[Any], knobs: Any = None,
             **options: Unpack[Options]) -> Kernel:
    """An operator by its template: with knobs that are given, or the best that are found. There
    may be several ways to write down what is computed; knobs that are given are for one.

    Without `hide_latency`, engines take turns, on the schedule that is best if they do not.
    """
    memory, cost = options.get("memory", MemoryTiming()), options.get("cost")
    if knobs is not None:
        ordered, cost = [Candidate(0, whats[0], knobs)], None
    else:
        ordered = ranked(template, whats, memory)
    least = bound_of(whats[0].spec, whats[0].config, memory).cycles
    chosen = fastest(ordered, lambda candidate: _kernel(template, candidate), least, cost)
    if not options.get("hide_latency", True):
        what = next(each.what for each in ordered if each.knobs is chosen.knobs)
        return _kernel(template, Candidate(0, what, chosen.knobs), hide_latency=False)
    return chosen


def _kernel(template: Template, candidate: Candidate, *, hide_latency: bool = True) -> Kernel:
    what = candidate.what
    intrinsics = getattr(what, "intrinsics", None) or [requantize(what.config, what.function)]
    nest, program = build(template.schedule(what, candidate.knobs), what.config, intrinsics,
                          hide_latency=hide_latency)
    return Kernel(candidate.knobs, nest, program)


def compile_conv2d(spec: conv2d.Conv2d, config: Config, *,
                   knobs: conv2d_schedule.Knobs | None = None,
                   **options: Unpack[Options]) -> Kernel:
    """A convolution on the accelerator. The program's tensors `data`, `weights`, `parameters` and
    `output` are packed (see `packing`)."""
    whats = conv2d.variants(spec, config)
    if knobs is not None:
        whats = [each for each in whats if each.skips_columns == knobs.skip_columns]
        if not whats:
            raise CompileError("conv2d: there are no columns to skip: skip_columns is for kernels "
                               "of 1 × 1 without padding, whose stride divides height and width")
    kernel = compiled(conv2d_schedule, whats, knobs, **options)
    data = whats[0].data
    shape = (*data.shape[:2], spec.height, spec.width, *data.shape[-2:])
    tensors = tuple(replace(each, shape=shape) if each.name == data.name else each
                    for each in kernel.program.tensors)     # whichever rows are loaded
    return replace(kernel, program=replace(kernel.program, tensors=tensors))
