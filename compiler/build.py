"""Operators compiled: from a description to a program, with everything on the way to look at."""

from __future__ import annotations

from dataclasses import dataclass

from ..isa.config import Config
from ..isa.program import Program
from .dma import form_transfers
from .emit import emit
from .intrinsic import accelerator_intrinsics, requantize
from .lower import lower
from .nest import Nest
from .operators import conv2d
from .tensorize import tensorize


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
    intrinsics = accelerator_intrinsics(config)
    intrinsics[what.function.name] = requantize(config, what.function)
    nest = form_transfers(tensorize(lower(conv2d.schedule(what, chosen)), intrinsics))
    program = emit(nest, config, requantizations={what.function.name: spec.requantization()},
                   hide_latency=hide_latency)
    return Kernel(chosen, nest, program)
