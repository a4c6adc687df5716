"""Special convolutions compiled: depthwise, first layers, grouped and transposed."""

from __future__ import annotations

from dataclasses import dataclass

from ..isa.config import Config
from ..isa.program import Program
from .build import compile_conv2d
from .emit import emit
from .expression import Function
from .intrinsic import requantize
from .nest import Buffer, Nest
from .operators import conv2d, depthwise, first_layer, grouped, transposed
from .pipeline import accelerated
from .schedule import Schedule
from .views import View, joined


@dataclass(frozen=True)
class DepthwiseKernel:
    """A compiled depthwise convolution. Its weights are packed in `chunks`."""

    knobs: depthwise.Knobs
    chunks: depthwise.Chunks
    nest: Nest
    program: Program


def compile_depthwise(spec: depthwise.Depthwise, config: Config, *,
                      knobs: depthwise.Knobs | None = None,
                      hide_latency: bool = True) -> DepthwiseKernel:
    """A depthwise convolution on the accelerator. The program's tensors `data`, `weights`,
    `parameters` and `output` are packed (see `packing_convolutions`)."""
    what = depthwise.expressions(spec, config)
    chosen = knobs or depthwise.default_knobs(what)
    nest = _nest(depthwise.schedule(what, chosen), config, what.function)
    program = emit(nest, config, requantizations={what.function.name: spec.requantization()},
                   hide_latency=hide_latency)
    return DepthwiseKernel(chosen, what.chunks, nest, program)


@dataclass(frozen=True)
class FirstLayerKernel:
    """A compiled first layer: the plain convolution `spec` of an input folded by `fold`."""

    fold: first_layer.Fold
    spec: conv2d.Conv2d
    knobs: conv2d.Knobs
    nest: Nest
    program: Program


def compile_first_layer(spec: conv2d.Conv2d, config: Config, *,
                        fold: first_layer.Fold | None = None,
                        knobs: conv2d.Knobs | None = None,
                        hide_latency: bool = True) -> FirstLayerKernel:
    """A convolution of few channels. Data and weights are folded (`packing_convolutions`), then
    packed as for the plain convolution that remains."""
    chosen = fold or first_layer.default_fold(spec, config)
    remaining = first_layer.folded(spec, chosen)
    kernel = compile_conv2d(remaining, config, knobs=knobs, hide_latency=hide_latency)
    return FirstLayerKernel(chosen, remaining, kernel.knobs, kernel.nest, kernel.program)


@dataclass(frozen=True)
class GroupedKernel:
    """A compiled grouped convolution: so many groups are `merged` into one."""

    merged: int
    knobs: grouped.Knobs
    nest: Nest
    program: Program


def compile_grouped(spec: grouped.Grouped, config: Config, *, merged: int | None = None,
                    knobs: grouped.Knobs | None = None,
                    hide_latency: bool = True) -> GroupedKernel:
    """A grouped convolution on the accelerator. The program's tensors `data`, `weights`,
    `parameters` and `output` are packed (see `packing_convolutions`)."""
    chosen = merged or grouped.default_merge(spec, config)
    what = grouped.expressions(spec, config, chosen)
    used = knobs or grouped.default_knobs(what)
    nest = _nest(grouped.schedule(what, used), config, what.function)
    program = emit(nest, config, requantizations={what.function.name: spec.requantization()},
                   hide_latency=hide_latency)
    return GroupedKernel(chosen, used, nest, program)


@dataclass(frozen=True)
class TransposedKernel:
    """A compiled transposed convolution, with the knobs of each phase."""

    knobs: tuple[conv2d.Knobs, ...]
    nest: Nest
    program: Program


def compile_transposed(spec: transposed.Transposed, config: Config, *,
                       hide_latency: bool = True) -> TransposedKernel:
    """A transposed convolution on the accelerator: a convolution for each phase, in one program.
    Its tensors `data`, `weights`, `parameters` and `output` are packed (see
    `packing_convolutions`)."""
    shapes = transposed.shapes(spec, config)
    data, weights, output = (Buffer(name, getattr(shapes, name), "int8")
                             for name in ("data", "weights", "output"))
    parameters = Buffer("parameters", shapes.parameters, "int32")
    parts, knobs, requantizations = [], [], {}
    for number, phase in enumerate(transposed.phases(spec)):
        what = conv2d.expressions(phase.spec, config)
        knobs.append(conv2d.default_knobs(what))
        nest = _nest(conv2d.schedule(what, knobs[-1]), config, what.function)
        views = {"data": View(data), "weights": View(weights, {0: number}),
                 "parameters": View(parameters, {0: number}),
                 "output": View(output, {3: phase.y.number, 5: phase.x.number})}
        parts.append((nest, {buffer: views[buffer.name]
                             for buffer in (*nest.inputs, *nest.outputs)}))
        requantizations[what.function.name] = phase.spec.requantization()
    together = joined(parts, (data, weights, parameters), (output,))
    program = emit(together, config, requantizations=requantizations, hide_latency=hide_latency)
    return TransposedKernel(tuple(knobs), together, program)


def _nest(plan: Schedule, config: Config, function: Function) -> Nest:
    return accelerated(plan, config, [requantize(config, function)])
