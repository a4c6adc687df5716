"""Operators compiled: from a description to a program, with everything on the way to look at."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..isa.config import Config
from ..isa.program import Program
from .intrinsic import requantize
from .nest import Nest
from .operators import conv2d
from .pipeline import build


@dataclass(frozen=True)
class Kernel:
    """A compiled operator."""

    knobs: conv2d.Knobs
    nest: Nest
    program: Program


def compile_conv2d(spec: conv2d.Conv2d, config: Config, *,
                   knobs: conv2d.Knobs | None = None, hide_latency: bool = True) -> Kernel:
    """A convolution on the accelerator. The program's tensors `data`, `weights`, `parameters` and
    `output` are packed (see `packing`)."""
    what = conv2d.expressions(spec, config)
    chosen = knobs or conv2d.default_knobs(what)
    nest, program = build(conv2d.schedule(what, chosen), config,
                          [requantize(config, what.function)],
                          requantizations={what.function.name: spec.requantization()},
                          hide_latency=hide_latency)
    shape = (what.data.shape[0], what.data.shape[1], spec.height, spec.width, *what.data.shape[-2:])
    tensors = tuple(replace(each, shape=shape) if each.name == what.data.name else each
                    for each in program.tensors)    # whichever rows are loaded
    return Kernel(chosen, nest, replace(program, tensors=tensors))
