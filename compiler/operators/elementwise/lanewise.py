"""Operators that work lane by lane: each element of the result follows from the elements of the
operands at the same place.

Tensors are rows of tiles, (tile, batch, lane): any packed activation, whatever its dimensions, as
long as all operands are packed alike. So a network can run such an operator in whatever layout its
neighbours have. `elementwise.py` is one of them; docs/recipes.md adds another from outside. Between
a host and a host, an operator takes tensors as runs of numbers: no lane is left empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, AluOp
from ...accelerator.selection.intrinsic import (
    Intrinsic,
    Requantization,
    element_wise,
    immediate,
    requantize,
    scale_function,
)
from ...expression.expression import Expression, Function, binary, maximum, minimum
from ...expression.tensor import Tensor, compute, placeholder
from ..description import Epilogue, extent
from ..form import TensorForm, blocks_of, requantize_sum
from ..layout import Layout, Stage, tile_images
from ..packing import Array, Operand, pack_activations, pack_parameters, unpack_activations
from ..work import Work

Shape = tuple[int, ...]
Place = tuple[Expression, ...]      # of an element
Scale = tuple[int, int, int]        # bias, multiplier and shift of a requantization
SYMBOLS = {AluOp.ADD: "+", AluOp.SUB: "-", AluOp.MUL: "*", AluOp.SHL: "<<"}


@dataclass(frozen=True, kw_only=True)
class AluDescription(Epilogue):
    """What descriptions of operators have in common that the ALU computes in passes."""

    @property
    def operand_names(self) -> tuple[str, ...]:
        raise NotImplementedError

    def operand_shapes(self, config: Config) -> tuple[Shape, ...]:
        """Of the operands in tiles, whose last two dimensions are batch and lane. Dimensions of
        one index are repeated to meet those of the first operand."""
        raise NotImplementedError

    def scales(self) -> list[Scale]:
        """Of every requantization, in the order of its passes. The last makes the result."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Lanewise(AluDescription):
    """What descriptions of lane-wise operators have in common."""

    channels: int = extent("channels")
    height: int = extent("rows", 1)
    width: int = extent("columns", 1)
    images: int = extent("images at once", 1)

    def operand_shapes(self, config: Config) -> tuple[Shape, ...]:
        shape = (self.tiles(config), config.batch, config.block_out)
        return (shape,) * len(self.operand_names)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the operands, as a user gives them."""
        return self.images, self.channels, self.height, self.width

    def flat_tiles(self, config: Config) -> int:
        """Tiles of each operand if all numbers follow one another."""
        return blocks_of(prod(self.shape), config.batch * config.block_out)

    def tiles(self, config: Config) -> int:
        """Tiles of each operand."""
        return (blocks_of(self.images, config.batch) * blocks_of(self.channels, config.block_out)
                * self.height * self.width)


@dataclass(frozen=True, kw_only=True)
class LanewiseForm(TensorForm):
    """An operator in tensors: `wide` are the operands in the accumulator, `steps` what the ALU
    computes on the way, in order, each with its intrinsic."""

    spec: Lanewise
    placeholders: tuple[Tensor, ...]
    wide: tuple[Tensor, ...]
    parameters: Tensor
    steps: dict[Tensor, Intrinsic] = field(default_factory=dict)
    flat: bool = False          # tensors are runs of numbers, whatever their channels

    @property
    def note(self) -> str:
        return "numbers follow one another, whatever their channels" if self.flat else ""

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, *self.steps.values()]

    @property
    def work(self) -> Work:
        tiles, values = self.output.shape[0], prod(self.spec.shape)
        return Work(macs=0, products=0, bytes=(len(self.placeholders) + 1) * values,
                    written=values, passes=tiles * (len(self.steps) + 1),
                    kept=tiles * len(self.steps), filled=len(self.placeholders) * values)

    @property
    def operands(self) -> tuple[Operand, ...]:
        return tuple(Operand(name, self.spec.shape) for name in self.spec.operand_names)

    @property
    def layouts(self) -> dict[str, Layout]:
        """Any layout will do, as long as all tensors have the same."""
        spec, config = self.spec, self.config
        layout = tile_images(*spec.shape, config, config.block_out)
        if self.flat:
            layout = _run_of_tiles(spec.shape, self.output.shape)
        return {name: layout for name in (*spec.operand_names, "output")}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        def tiles(name: str) -> Array:
            if self.flat:
                return self.layouts[name].pack(given[name])
            return pack_activations(given[name], self.config, self.config.block_out)

        return {**{name: tiles(name).reshape(self.output.shape)
                   for name in self.spec.operand_names},
                "parameters": parameters(self.spec, self.config)}

    def unpack(self, output: Array) -> Array:
        spec, config = self.spec, self.config
        if self.flat:
            return self.layouts["output"].unpack(output)
        shape = (blocks_of(spec.images, config.batch), blocks_of(spec.channels, config.block_out),
                 spec.height, spec.width, *output.shape[-2:])
        return unpack_activations(output.reshape(shape), config, spec.images, spec.channels)


def _run_of_tiles(source: Shape, tiles: Shape) -> Layout:
    """All numbers of a tensor one after the other, in tiles."""
    _, rows, lanes = tiles
    plain = Stage(source, source, tuple((axis, 1) for axis in range(len(source))),
                  (0,) * len(source))
    return Layout((plain, Stage((prod(source),), tiles, ((0, rows * lanes), (0, lanes), (0, 1)),
                                (0,))))


def parameters(spec: AluDescription, config: Config) -> Array:
    """What the program takes as `parameters`: a set for each scale, the same in all lanes."""
    lanes = np.ones(config.block_out, np.int64)
    return np.concatenate([pack_parameters(bias * lanes, multiplier * lanes, shift * lanes, config)
                           for bias, multiplier, shift in spec.scales()])


class Passes:
    """Writes down a form, one pass of the ALU after the other.

        passes = Passes(spec, config)
        form = passes.form(passes.combine(AluOp.ADD, *passes.operands))
    """

    def __init__(self, spec: AluDescription, config: Config, *, flat: bool = False):
        self.spec, self.config, self._flat = spec, config, flat
        shapes = spec.operand_shapes(config)
        if flat:
            assert isinstance(spec, Lanewise), "others have numbers for some channels alone"
            shapes = tuple((spec.flat_tiles(config), *shape[1:]) for shape in shapes)
        self._given = tuple(placeholder(name, shape, "int8") for name, shape in zip(
            spec.operand_names, shapes, strict=True))
        self.operands = tuple(_each(f"{tensor.name}.wide", lambda element: element.cast("int32"),
                                    tensor) for tensor in self._given)      # in 32 bits
        self._sets = len(spec.scales())
        self.parameters = placeholder(
            "parameters", (self._sets, PARAMETER_TILES, config.batch, config.block_out), "int32")
        self._scaling = scale_function(spec.rounding)       # one function, for one intrinsic
        self.steps: dict[Tensor, Intrinsic] = {}
        self._used = 0

    def scale(self, value: Tensor) -> Tensor:
        """Multiplied by the next of the description's scales, still in 32 bits."""
        result = self._scale(f"{value.name}.scaled", self._scaling, value)
        self.steps[result] = requantize(self.config, self._scaling)
        return result

    def combine(self, op: AluOp, left: Tensor, right: Tensor) -> Tensor:
        """An operation of two tensors; the right one may be repeated to meet the left one."""
        result = _each(f"{left.name}.{op.name.lower()}.{right.name}",
                       lambda one, other: _operation(op, one, other), left, right)
        self.steps[result] = element_wise(self.config, op)
        return result

    def with_constant(self, op: AluOp, value: Tensor, constant: int) -> Tensor:
        """An operation of a tensor and a constant."""
        result = _each(f"{value.name}.{op.name.lower()}",
                       lambda element: _operation(op, element, constant), value)
        self.steps[result] = immediate(self.config, op, constant)
        return result

    def result(self, value: Tensor) -> tuple[Requantization, Tensor]:
        """The output that is this value, requantized by a function with the last of the scales."""
        function = self.spec.requantization()
        output = self._scale("output", function, value)
        assert self._used == self._sets, "every scale of the description is used once"
        return function, output

    def form(self, value: Tensor) -> LanewiseForm:
        """The form of a lane-wise operator whose result is this value."""
        assert isinstance(self.spec, Lanewise), "others have forms of their own"
        function, output = self.result(value)
        return LanewiseForm(spec=self.spec, config=self.config, placeholders=self._given,
                            wide=self.operands, parameters=self.parameters, function=function,
                            steps=self.steps, output=output, flat=self._flat)

    def _scale(self, name: str, function: Function, value: Tensor) -> Tensor:
        number, self._used = self._used, self._used + 1
        return _compute(name, value.shape, lambda at: requantize_sum(
            function, value[at], self.parameters, (number,), at[-2:]))


def _each(name: str, function: Callable[..., Expression], *sources: Tensor) -> Tensor:
    """A function applied element by element to tensors that meet the shape of the first."""
    shape = sources[0].shape

    def element(at: Place) -> Expression:
        return function(*(source[tuple(
            index if own == extent else 0
            for index, own, extent in zip(at, source.shape, shape, strict=True))]
            for source in sources))

    return _compute(name, shape, element)


def _compute(name: str, shape: Shape, element: Callable[[Place], Expression]) -> Tensor:
    """A tensor in rows of tiles, or in images of tiles."""
    if len(shape) == len(("tile", "batch", "lane")):
        return compute(name, shape, lambda t, b, j: element((t, b, j)))
    return compute(name, shape, lambda n, c, y, x, b, j: element((n, c, y, x, b, j)))


def _operation(op: AluOp, left: Expression, right: Expression | int) -> Expression:
    """What an operation of the ALU computes."""
    if op in (AluOp.MIN, AluOp.MAX):
        return (minimum if op == AluOp.MIN else maximum)(left, right)
    return binary(SYMBOLS[op], left, right)
