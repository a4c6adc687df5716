"""Special convolutions compiled: depthwise, first layers, grouped and transposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from ...isa.config import Config
from ..accelerator.emit import emit
from ..accelerator.intrinsic import requantize
from ..nest.nest import Buffer
from ..nest.views import View, joined
from . import conv2d, conv2d_schedule, depthwise, first_layer, grouped, transposed
from .build import Kernel, compile_conv2d, compiled
from .choice import Options


@dataclass(frozen=True)
class DepthwiseKernel(Kernel):
    """A compiled depthwise convolution. Its weights are packed in `chunks`."""

    chunks: depthwise.Chunks


def compile_depthwise(spec: depthwise.Depthwise, config: Config, *,
                      knobs: depthwise.Knobs | None = None,
                      **options: Unpack[Options]) -> DepthwiseKernel:
    """A depthwise convolution on the accelerator. The program's tensors `data`, `weights`,
    `parameters` and `output` are packed (see `packing_convolutions`)."""
    what = depthwise.expressions(spec, config)
    kernel = compiled(depthwise, [what], knobs, **options)
    return DepthwiseKernel(**vars(kernel), chunks=what.chunks)


@dataclass(frozen=True)
class FirstLayerKernel(Kernel):
    """A compiled first layer: the plain convolution `spec` of an input folded by `fold`."""

    fold: first_layer.Fold
    spec: conv2d.Conv2d


def compile_first_layer(spec: conv2d.Conv2d, config: Config, *,
                        fold: first_layer.Fold | None = None,
                        knobs: conv2d_schedule.Knobs | None = None,
                        **options: Unpack[Options]) -> FirstLayerKernel:
    """A convolution of few channels. Data and weights are folded (`packing_convolutions`), then
    packed as for the plain convolution that remains."""
    chosen = fold or first_layer.default_fold(spec, config)
    remaining = first_layer.folded(spec, chosen)
    kernel = compile_conv2d(remaining, config, knobs=knobs, **options)
    return FirstLayerKernel(**vars(kernel), fold=chosen, spec=remaining)


@dataclass(frozen=True)
class GroupedKernel(Kernel):
    """A compiled grouped convolution: so many groups are `merged` into one."""

    merged: int


def compile_grouped(spec: grouped.Grouped, config: Config, *, merged: int | None = None,
                    knobs: conv2d_schedule.Knobs | None = None,
                    **options: Unpack[Options]) -> GroupedKernel:
    """A grouped convolution on the accelerator. The program's tensors `data`, `weights`,
    `parameters` and `output` are packed (see `packing_convolutions`)."""
    chosen = merged or grouped.default_merge(spec, config)
    kernel = compiled(conv2d_schedule, [grouped.expressions(spec, config, chosen)], knobs,
                      **options)
    return GroupedKernel(**vars(kernel), merged=chosen)


def compile_transposed(spec: transposed.Transposed, config: Config,
                       **options: Unpack[Options]) -> Kernel:
    """A transposed convolution on the accelerator: a convolution for each phase, in one program,
    with the knobs of each. Its tensors `data`, `weights`, `parameters` and `output` are packed
    (see `packing_convolutions`)."""
    shapes = transposed.shapes(spec, config)
    data, weights, output = (Buffer(name, getattr(shapes, name), "int8")
                             for name in ("data", "weights", "output"))
    parameters = Buffer("parameters", shapes.parameters, "int32")
    parts, knobs, intrinsics = [], [], []
    for number, phase in enumerate(transposed.phases(spec)):
        what = conv2d.expressions(phase.spec, config)
        kernel = compiled(conv2d_schedule, [what], **options)
        views = {"data": View(data), "weights": View(weights, {0: number}),
                 "parameters": View(parameters, {0: number}),
                 "output": View(output, {3: phase.y.number, 5: phase.x.number})}
        parts.append((kernel.nest, {buffer: views[buffer.name] for buffer
                                    in (*kernel.nest.inputs, *kernel.nest.outputs)}))
        knobs.append(kernel.knobs)
        intrinsics.append(requantize(config, what.function))
    together = joined(parts, (data, weights, parameters), (output,))
    program = emit(together, config, intrinsics,
                   hide_latency=options.get("hide_latency", True))
    return Kernel(tuple(knobs), together, program)
