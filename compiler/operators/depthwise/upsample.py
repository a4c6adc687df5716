"""Bilinear enlargement by whole numbers, as depthwise convolutions of two by two taps.

Output rows with the same Y % factor are a phase: all read two neighbouring rows with the same
weights. The first or the last row of a phase would read a row beyond the input, which is its own
neighbour there; it is a piece of its own, with all the weight on one tap:

    factor 2:    row 0: 4 x[0]    rows 2 i: x[i−1] + 3 x[i]    rows 2 i + 1: 3 x[i] + x[i+1]    …

So are columns. Each piece of rows and of columns is a convolution without a border, of a part of
the input; all are one program. Weights add up to the same number in each, so that all share their
parameters. The output is packed as (n, block, y, phase y, x, phase x, batch, lane).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.program import Program
from ...errors import CompileError
from ...nest.nest import Buffer, Interleave, Nest
from ..description import Epilogue, activation, extent, setting
from ..form import Form
from ..kernel import (
    AnyOperator,
    Kernel,
    Operator,
    Options,
    best_kernel,
    build_nest,
)
from ..layout import Layout
from ..packing import Array, Operand, parameter_operands
from ..program_cache import cached_program
from ..segment_sizes import check_sizes
from ..work import Work
from .depthwise import Depthwise, DepthwiseForm, form_of
from .depthwise_schedule import TEMPLATE
from .linear_taps import LARGEST_UNIT, axis_taps

MOST_PIECES = 64            # each is a part of the program


@dataclass(frozen=True, kw_only=True)
class Upsample(Epilogue):
    """A bilinear enlargement of images. Numbers are sums whose weights add up to `unit`, times
    multiplier and shift."""

    operator: ClassVar[str] = "upsample"

    height: int = extent("rows of the input")
    width: int = extent("columns of the input")
    channels: int = extent("channels")
    factors: tuple[int, int] = setting("rows and columns that each pixel becomes", (2, 2), low=1,
                                       high=LARGEST_UNIT)
    centred: bool = setting("pixels lie in the centre of what they become, not at its corner",
                            default=True)
    images: int = extent("images at once", 1)
    zero_point_in: int = activation("zero point of the input")

    def check(self) -> None:
        super().check()
        if self.unit > LARGEST_UNIT or len(pieces_of(self)) > MOST_PIECES:
            raise self.wrong("factors", self.factors, f"factors whose weights add up to "
                             f"{LARGEST_UNIT} at most, in {MOST_PIECES} pieces")

    @property
    def unit(self) -> int:
        """What the weights of each average add up to."""
        rows, columns = (axis_taps(size, factor, centred=self.centred).unit for size, factor
                         in zip((self.height, self.width), self.factors, strict=True))
        return rows * columns

    @property
    def out_size(self) -> tuple[int, int]:
        return self.height * self.factors[0], self.width * self.factors[1]

    @property
    def kernel(self) -> tuple[int, int]:
        """Taps along each axis: one where there is one pixel, or nothing to do."""
        rows, columns = (1 if 1 in (size, factor) else 2 for size, factor
                         in zip((self.height, self.width), self.factors, strict=True))
        return rows, columns

    @property
    def macs(self) -> int:
        rows, columns = self.out_size
        return self.images * self.channels * rows * columns * self.kernel[0] * self.kernel[1]


@dataclass(frozen=True)
class Part:
    """Output rows, or columns, of a phase that average their input with the same weights."""

    phase: int
    first: int                  # within the phase
    count: int
    start: int                  # of the input that they read
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """A part along y and one along x, and the convolution that they are."""

    y: Part
    x: Part
    spec: Depthwise

    @property
    def weights(self) -> Array:
        return np.outer(self.y.weights, self.x.weights).astype(np.int8)


def parts_along(spec: Upsample, axis: int) -> list[Part]:
    """The parts of one axis, phase by phase."""
    size, factor = (spec.height, spec.width)[axis], spec.factors[axis]
    taps, found = axis_taps(size, factor, centred=spec.centred), []
    if spec.kernel[axis] == 1:
        return [Part(phase, 0, size, 0, (taps.unit,)) for phase in range(factor)]
    for phase in range(factor):
        below, lower, upper = (each[phase::factor].tolist()
                               for each in (taps.below, taps.lower, taps.upper))
        first = 0
        for index in range(1, size + 1):
            if index < size and (lower[index], below[index] - index) == (
                    lower[first], below[first] - first):
                continue
            found.append(Part(phase, first, index - first, below[first],
                              (lower[first], upper[first])))
            first = index
    return found


def pieces_of(spec: Upsample) -> list[Piece]:
    """All pieces, with the convolution that each is."""
    return [Piece(y, x, Depthwise(
        height=y.count + spec.kernel[0] - 1, width=x.count + spec.kernel[1] - 1,
        channels_in=spec.channels, channels_out=spec.channels, kernel=spec.kernel, pad=(0, 0, 0, 0),
        images=spec.images, zero_point_in=spec.zero_point_in, zero_point_out=spec.zero_point_out,
        low=spec.low, high=spec.high, rounding=spec.rounding))
        for y, x in product(parts_along(spec, 0), parts_along(spec, 1))]


@dataclass(frozen=True, kw_only=True)
class UpsampleForm(Form):
    """An enlargement as convolutions, one for each piece."""

    spec: Upsample
    pieces: tuple[Piece, ...]
    forms: tuple[DepthwiseForm, ...]        # of the pieces
    source: DepthwiseForm                   # with the whole input
    target: DepthwiseForm                   # with the whole output

    @property
    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """As the loops have them. Weights are those of all pieces, one after the other."""
        (sy, sx), first = self.spec.factors, self.forms[0]
        groups, *rows = first.weights.shape
        images, blocks, _, _, *tile = self.target.output.shape
        return {"data": self.source.data.shape,
                "weights": (len(self.pieces) * groups, *rows),
                "parameters": first.parameters.shape,
                "output": (images, blocks, self.spec.height, sy, self.spec.width, sx, *tile)}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: self.memory_shape(name, shape)
                for name, shape in self.tensor_shapes.items()}

    @property
    def note(self) -> str:
        return f"a depthwise convolution for each of {len(self.pieces)} pieces"

    @property
    def work(self) -> Work:
        """All pieces; bytes as if every one found the input on the chip."""
        spec, parts = self.spec, [form.work for form in self.forms]
        rows, columns = spec.out_size
        written = spec.images * spec.channels * rows * columns
        return Work(macs=spec.macs, products=sum(each.products for each in parts),
                    passes=sum(each.passes for each in parts), written=written,
                    bytes=written + spec.images * spec.channels * spec.height * spec.width)

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("data", (spec.images, spec.channels, spec.height, spec.width)),
                *parameter_operands(spec.channels))

    @property
    def layouts(self) -> dict[str, Layout]:
        return {"data": self.source.layouts["data"], "output": self.target.layouts["output"]}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return self.target.interleaves

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        data = self.layouts["data"].pack(given["data"])
        packed = [form.pack_constants({**given, "weights": np.broadcast_to(
            piece.weights, (self.spec.channels, 1, *piece.weights.shape))})
            for piece, form in zip(self.pieces, self.forms, strict=True)]
        return {"data": data.reshape(self.shapes["data"]),
                "weights": np.concatenate([each["weights"] for each in packed]),
                "parameters": packed[0]["parameters"]}

    def unpack(self, output: Array) -> Array:
        return self.layouts["output"].unpack(output)


def upsample_form(spec: Upsample, config: Config) -> UpsampleForm:
    """The tensors of the layer. Weights of all pieces lie in tiles as those of the largest do."""
    if spec.unit >= 1 << config.wgt_bits - 1:
        raise CompileError(f"upsample: weights add up to {spec.unit}, which {config.wgt_bits} bits "
                           f"do not hold")
    pieces = pieces_of(spec)
    largest = max(pieces, key=lambda piece: piece.spec.macs)
    chunks = form_of(largest.spec, config).chunks

    def whole(height: int, width: int) -> DepthwiseForm:
        return form_of(Depthwise(
            height=height, width=width, channels_in=spec.channels, channels_out=spec.channels,
            kernel=(1, 1), pad=(0, 0, 0, 0), images=spec.images), config)

    return UpsampleForm(
        spec=spec, config=config, pieces=tuple(pieces),
        forms=tuple(form_of(piece.spec, config, chunks=chunks) for piece in pieces),
        source=whole(spec.height, spec.width), target=whole(*spec.out_size))


def compile_pieces(operator: AnyOperator, spec: Upsample, config: Config,
                   options: Options) -> Kernel:
    """A convolution for each piece, with knobs of its own, all in one program."""
    if options.knobs is not None or options.form is not None:
        raise CompileError("upsample: every piece has knobs of its own; none can be given")
    form = upsample_form(spec, config)
    check_sizes(form)
    chosen: dict[Depthwise, Kernel] = {}        # pieces differ in weights, most not in size
    for each in form.forms:
        if each.spec not in chosen:
            chosen[each.spec] = best_kernel(operator.template, [each], options)
    kernels = [chosen[each.spec] for each in form.forms]
    knobs = tuple(each.knobs for each in kernels)

    @cache
    def loops() -> Nest:
        # Loops and buffers are objects, so each piece has a form and a nest of its own.
        return _join_pieces(form, [build_nest(operator.template, each, kernel.knobs)
                                   for each, kernel in zip(form.forms, kernels, strict=True)])

    def emit_program() -> Program:
        from ...accelerator.emission.emit import emit  # most programs are kept from before
        return emit(loops(), config, form.forms[0].intrinsics, hide_latency=options.hide_latency,
                    interleaves=form.interleaves)

    program = cached_program(emit_program, config, compile_pieces, form.spec, knobs,
                             options.hide_latency)
    return Kernel(form, knobs, program, loops)


def _join_pieces(form: UpsampleForm, nests: Sequence[Nest]) -> Nest:
    """The loops of all pieces, on parts of the same tensors."""
    from ...nest.views import View, concatenate
    data, weights, parameters, output = (
        Buffer(name, shape, "int32" if name == "parameters" else "int8")
        for name, shape in form.tensor_shapes.items())
    groups, parts = form.forms[0].weights.shape[0], []
    for number, (piece, nest) in enumerate(zip(form.pieces, nests, strict=True)):
        views = {"data": View(data, offsets={2: piece.y.start, 3: piece.x.start}),
                 "weights": View(weights, offsets={0: number * groups}),
                 "parameters": View(parameters),
                 "output": View(output, {3: piece.y.phase, 5: piece.x.phase},
                                {2: piece.y.first, 4: piece.x.first})}
        parts.append((nest, {buffer: views[buffer.name]
                             for buffer in (*nest.inputs, *nest.outputs)}))
    return concatenate(parts, (data, weights, parameters), (output,))


OPERATOR: AnyOperator = Operator(
    description=Upsample, template=TEMPLATE, compile=compile_pieces,    # the template is of pieces
    forms=lambda spec, config: [upsample_form(spec, config)])
