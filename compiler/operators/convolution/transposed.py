"""Transposed convolution, as one ordinary convolution for each phase of its stride.

Output row Y reads input row y through tap ky where Y + top = y × stride + ky × dilation. Rows with
the same Y % stride read through the same taps, so they are an ordinary convolution of the input, of
stride 1, with these taps in reverse:

    stride 2, kernel 4, top 1:    even rows: taps 3, 1      odd rows: taps 2, 0

No product with an inserted zero is computed. The output is packed as (n, block, y, phase y, x,
phase x, batch, lane): rows and columns of all phases in their order, up to a multiple of the
stride.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES
from ....isa.program import Program
from ...accelerator.selection.intrinsic import requantize
from ...errors import CompileError
from ...nest.nest import Buffer, Interleave, Nest
from ..choice import columns_of
from ..description import Epilogue, activation, border, extent
from ..form import Form, blocks_of
from ..kernel import (
    AnyOperator,
    Kernel,
    Operator,
    Options,
    best_kernel,
    build_nest,
)
from ..layout import Layout, interleaves, memory_block, tile_images, wide_tiles
from ..packing import (
    Array,
    Operand,
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    parameter_operands,
    unpack_activations,
    weight_operand,
    weight_tiles,
    weights_in_dram,
)
from ..program_cache import cached_program
from ..segment_sizes import check_sizes
from ..work import Work, parameter_bytes, weight_bytes
from . import all_phases, conv2d
from .all_phases import AllPhasesForm, Side
from .conv2d import Conv2d
from .conv2d_schedule import TEMPLATE

MOST_PHASES = 1024          # each is a part of the program
WORTH_TRYING = 1.1          # the bound: above, phases are tried one by one, too


@dataclass(frozen=True, kw_only=True)
class Transposed(Epilogue):
    """A transposed convolution. Weights are (channels_in, channels_out, y, x)."""

    operator: ClassVar[str] = "transposed"

    height: int = extent("rows of the input")
    width: int = extent("columns of the input")
    channels_in: int = extent("channels of the input")
    channels_out: int = extent("channels of the output")
    kernel: tuple[int, int] = extent("rows and columns of the kernel", (3, 3))
    stride: tuple[int, int] = extent("rows and columns from one window to the next", (2, 2))
    dilation: tuple[int, int] = extent("rows and columns from one tap to the next", (1, 1))
    pad: tuple[int, int, int, int] = border(
        "rows and columns that the result lacks: top, bottom, left, right", (0, 0, 0, 0))
    output_padding: tuple[int, int] = border(
        "rows and columns that the result has in addition, at the bottom and the right", (0, 0))
    images: int = extent("images at once", 1)
    zero_point_in: int = activation("zero point of the input")

    def check(self) -> None:
        super().check()
        phases = min(self.stride[0], self.out_size[0]) * min(self.stride[1], self.out_size[1])
        if phases > MOST_PHASES:
            raise self.wrong("stride", self.stride, f"{MOST_PHASES} phases at most, not {phases}")
        if min(self.out_size) < 1:
            raise CompileError(f"transposed: pad is {self.pad}, which leaves nothing of the output")

    @property
    def out_size(self) -> tuple[int, int]:
        top, bottom, left, right = self.pad
        height, width = ((size - 1) * stride + (kernel - 1) * dilation + 1 - cut + more
                         for size, stride, kernel, dilation, cut, more in zip(
                             (self.height, self.width), self.stride, self.kernel, self.dilation,
                             (top + bottom, left + right), self.output_padding, strict=True))
        return height, width

    @property
    def macs(self) -> int:
        """Products of inputs and taps, including those that fall into the cut border."""
        return (self.images * self.height * self.width * self.channels_in * self.channels_out
                * self.kernel[0] * self.kernel[1])


@dataclass(frozen=True, kw_only=True)
class PhaseConv2d(Conv2d):
    """The convolution of a phase. Its border may be negative: input that is not read."""

    def __post_init__(self) -> None:        # nothing that a user wrote
        assert min(self.out_height, self.out_width) >= 1, "phases are made to fit"


@dataclass(frozen=True)
class Phase:
    """The output rows, or columns, at the same offset within the stride."""

    number: int
    taps: tuple[int, ...]       # of the kernel, in the order of the rows that they read
    offset: int                 # of the row that output row 0 of the phase reads first
    dilation: int
    outputs: int                # rows of the phase


@dataclass(frozen=True)
class PhasePair:
    """A phase along y and one along x, and the convolution that they are."""

    y: Phase
    x: Phase
    spec: PhaseConv2d


def phases_along(spec: Transposed, axis: int) -> list[Phase]:
    """The phases of one axis that the output has."""
    stride, dilation, size = spec.stride[axis], spec.dilation[axis], spec.out_size[axis]
    outputs = blocks_of(size, stride)
    return [_phase(spec, axis, number, outputs, dilation)
            for number in range(min(stride, size))]


def _phase(spec: Transposed, axis: int, number: int, outputs: int, dilation: int) -> Phase:
    stride, before = spec.stride[axis], spec.pad[2 * axis]
    inside = (spec.height, spec.width)[axis]
    offsets = {tap: (number + before - tap * dilation) // stride
               for tap in reversed(range(spec.kernel[axis]))
               if (number + before - tap * dilation) % stride == 0}
    taps = list(offsets)
    # Where even the last output row reads above the input, or the first below it, nothing is read.
    if not taps or offsets[taps[0]] >= inside or offsets[taps[-1]] + outputs <= 0:
        return Phase(number, (), 0, 1, outputs)
    step = offsets[taps[1]] - offsets[taps[0]] if len(taps) > 1 else 1
    return Phase(number, tuple(taps), offsets[taps[0]], step, outputs)


def phases(spec: Transposed) -> list[PhasePair]:
    """All phases, with the convolution that each is. One that no tap reaches has one tap with
    weights of zero."""
    return [PhasePair(y, x, _convolution(spec, y, x))
            for y, x in product(phases_along(spec, 0), phases_along(spec, 1))]


def _convolution(spec: Transposed, y: Phase, x: Phase) -> PhaseConv2d:
    pad: list[int] = []
    for phase, inside in ((y, spec.height), (x, spec.width)):
        reach = (max(len(phase.taps), 1) - 1) * phase.dilation + 1
        pad += [-phase.offset, phase.outputs - 1 + reach - inside + phase.offset]
    top, bottom, left, right = pad
    return PhaseConv2d(
        height=spec.height, width=spec.width, channels_in=spec.channels_in,
        channels_out=spec.channels_out, kernel=(max(len(y.taps), 1), max(len(x.taps), 1)),
        dilation=(y.dilation, x.dilation), pad=(top, bottom, left, right), images=spec.images,
        zero_point_in=spec.zero_point_in, zero_point_out=spec.zero_point_out, low=spec.low,
        high=spec.high, rounding=spec.rounding)


def shapes(spec: Transposed, config: Config) -> dict[str, tuple[int, ...]]:
    """Shapes of the packed tensors. Weights are (phase, output block, input block, y, x, output
    lane, input lane), where phases with fewer taps than others leave some unused."""
    images = blocks_of(spec.images, config.batch)
    depth, outputs = (blocks_of(spec.channels_in, config.block_in),
                      blocks_of(spec.channels_out, config.block_out))
    every = phases(spec)
    taps = [max(each.spec.kernel[axis] for each in every) for axis in range(2)]
    (height, width), (sy, sx) = spec.out_size, spec.stride
    return {
        "data": (images, depth, spec.height, spec.width, config.batch, config.block_in),
        "weights": (len(every), outputs, depth, *taps, config.block_out, config.block_in),
        "parameters": (len(every), outputs, PARAMETER_TILES, config.batch, config.block_out),
        "output": (images, outputs, blocks_of(height, sy), sy, blocks_of(width, sx), sx,
                   config.batch, config.block_out)}


@dataclass(frozen=True, kw_only=True)
class TransposedForm(Form):
    """A transposed convolution as convolutions, one for each phase."""

    spec: Transposed
    phases: tuple[PhasePair, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: self.memory_shape(name, shape)
                for name, shape in shapes(self.spec, self.config).items()}

    @property
    def note(self) -> str:
        return f"a convolution for each of {len(self.phases)} phases"

    @property
    def work(self) -> Work:
        """The products of all phases; bytes as if every phase found the input on the chip."""
        spec, config = self.spec, self.config
        images = blocks_of(spec.images, config.batch)
        blocks = blocks_of(spec.channels_out, config.block_out)
        depth = blocks_of(spec.channels_in, config.block_in)
        pixels = [images * each.spec.out_height * each.spec.out_width for each in self.phases]
        taps = [len(each.y.taps) * len(each.x.taps) for each in self.phases]
        height, width = spec.out_size
        weights = weight_bytes(spec.channels_in * spec.channels_out * sum(taps), config)
        written = spec.images * spec.channels_out * height * width
        return Work(
            macs=spec.macs, passes=sum(pixels) * blocks, written=written,
            parameters=parameter_bytes(spec.channels_out, config),
            products=sum(map(int.__mul__, pixels, taps)) * blocks * depth,
            bytes=weights + written + spec.images * spec.channels_in * spec.height * spec.width)

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels_in, spec.height, spec.width)),
                weight_operand((spec.channels_in, spec.channels_out, *spec.kernel), self.config),
                *parameter_operands(spec.channels_out))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        rows, columns = (blocks_of(size, stride) * stride for size, stride
                         in zip(spec.out_size, spec.stride, strict=True))
        output = tile_images(spec.images, spec.channels_out, rows, columns, config,
                             memory_block(config, config.block_out)).stages[0]
        return {"data": tile_images(spec.images, spec.channels_in, spec.height, spec.width,
                                    config, memory_block(config, config.block_in)),
                "output": Layout((replace(output, source=(spec.images, spec.channels_out,
                                                          *spec.out_size)),))}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return interleaves(self.config)

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """What the zero point of the input adds to a sum depends on the taps of a phase."""
        config, parameters = self.config, []
        weights = np.zeros(self.shapes["weights"], np.int8)
        for number, phase in enumerate(self.phases):
            taps = _taps(given["weights"], phase)
            bias = bias_with_zero_point(given["bias"], taps, self.spec.zero_point_in)
            parameters.append(pack_parameters(bias, given["multiplier"], given["shift"], config))
            if phase.y.taps and phase.x.taps:
                tiles = weight_tiles(taps, config)
                weights[number, :, :, :tiles.shape[2], :tiles.shape[3]] = tiles
        data = pack_activations(given["data"], config, memory_block(config, config.block_in))
        return {"data": data.reshape(self.shapes["data"]),
                "weights": weights_in_dram(weights, config), "parameters": np.stack(parameters)}

    def unpack(self, output: Array) -> Array:
        """(n block, block, y, phase, x, phase, batch, lane) → (n, channels, y, x)"""
        output = wide_tiles(output, self.config, self.config.block_out)
        images, blocks, far_y, near_y, far_x, near_x, batch, lanes = output.shape
        rows = output.reshape(images, blocks, far_y * near_y, far_x * near_x, batch, lanes)
        height, width = self.spec.out_size
        return unpack_activations(rows, self.config, self.spec.images,
                                  self.spec.channels_out)[:, :, :height, :width]


def _taps(weights: Array, phase: PhasePair) -> Array:
    """The weights of a phase as (outputs, inputs, y, x), in the order in which it reads."""
    taps: Array = weights[:, :, list(phase.y.taps)][:, :, :, list(phase.x.taps)]
    return taps.transpose(1, 0, 2, 3)


def form_of(spec: Transposed, config: Config) -> TransposedForm:
    return TransposedForm(spec=spec, config=config, phases=tuple(phases(spec)))


def joint_form_of(form: TransposedForm) -> AllPhasesForm | None:
    """The form that computes all phases in one step; None if they have different numbers of taps,
    or do not follow one another evenly."""
    rows, columns = (_side_of(form.spec, axis) for axis in range(2))
    if rows is None or columns is None or form.interleaves:
        return None
    return all_phases.form_of(form, form.spec, rows, columns)


def _side_of(spec: Transposed, axis: int) -> Side | None:
    along = phases_along(spec, axis)
    first = along[0]
    step = along[1].offset - first.offset if len(along) > 1 else 0
    even = all(each.taps and len(each.taps) == len(first.taps) and each.dilation == first.dilation
               and each.offset == first.offset + number * step for number, each in enumerate(along))
    if not even or step < 0 or len(along) < spec.stride[axis]:
        return None
    reach = first.outputs + (len(along) - 1) * step + (len(first.taps) - 1) * first.dilation
    return Side(len(along), len(first.taps), first.dilation, step, before=-first.offset, size=reach,
                outputs=first.outputs)


def compile_transposed(operator: AnyOperator, spec: Transposed, config: Config,
                       options: Options) -> Kernel:
    """All phases in one step, or a convolution for each: what is faster."""
    if options.knobs is not None or options.form is not None:
        raise CompileError("transposed: every phase has knobs of its own; none can be given")
    form = form_of(spec, config)
    check_sizes(form)
    joint = _compile_joint(form, options)
    if joint is None:
        return compile_phases(operator, form, options)
    least = form.work.bound(config, options.memory).cycles
    if options.cost is None or options.cost(joint.program) <= WORTH_TRYING * least:
        return joint
    phased = compile_phases(operator, form, options)
    cost = options.cost
    return min((joint, phased), key=lambda each: cost(each.program))


def _compile_joint(form: TransposedForm, options: Options) -> Kernel | None:
    joint = joint_form_of(form)
    if joint is None or columns_of(all_phases.TEMPLATE, joint) is None:
        return None
    kernel = best_kernel(all_phases.TEMPLATE, [joint], options)
    return replace(kernel, form=form)


def compile_phases(operator: AnyOperator, form: TransposedForm, options: Options) -> Kernel:
    """A convolution for each phase, with knobs of its own, all in one program."""
    spec, config = form.spec, form.config
    chosen: dict[Conv2d, Kernel] = {}       # most phases are alike
    for phase in form.phases:
        if phase.spec not in chosen:
            chosen[phase.spec] = best_kernel(
                operator.template, [conv2d.form_of(phase.spec, config)], options)
    kernels = [chosen[phase.spec] for phase in form.phases]
    knobs = tuple(each.knobs for each in kernels)

    @cache
    def loops() -> Nest:
        # Loops and buffers are objects, so each phase has a nest of its own.
        return _join_phases(form, [build_nest(operator.template, each.form, each.knobs)
                                   for each in kernels])

    last = requantize(config, spec.requantization())

    def emit_program() -> Program:
        from ...accelerator.emission.emit import emit  # most programs are kept from before
        return emit(loops(), config, [last], hide_latency=options.hide_latency,
                    interleaves=form.interleaves)

    program = cached_program(emit_program, config, compile_phases, form, knobs,
                             options.hide_latency)
    return Kernel(form, knobs, program, loops)


def _join_phases(form: TransposedForm, nests: Sequence[Nest]) -> Nest:
    """The loops of all phases, on the same tensors."""
    from ...nest.views import View, concatenate
    data, weights, parameters, output = (
        Buffer(name, shape, "int32" if name == "parameters" else "int8")
        for name, shape in shapes(form.spec, form.config).items())
    parts = []
    for number, (phase, nest) in enumerate(zip(form.phases, nests, strict=True)):
        views = {"data": View(data), "weights": View(weights, {0: number}),
                 "parameters": View(parameters, {0: number}),
                 "output": View(output, {3: phase.y.number, 5: phase.x.number})}
        parts.append((nest, {buffer: views[buffer.name]
                             for buffer in (*nest.inputs, *nest.outputs)}))
    return concatenate(parts, (data, weights, parameters), (output,))


OPERATOR = Operator[Transposed, Any, Any](
    description=Transposed, forms=lambda spec, config: [form_of(spec, config)], template=TEMPLATE,
    compile=compile_transposed)
