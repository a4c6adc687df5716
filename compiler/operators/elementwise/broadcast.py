"""Element-wise operations of an image and one number for each channel, such as the gates of
squeeze-and-excitation:

    y[n, c, y, x] = left[n, c, y, x] × right[n, c]

The arithmetic is that of `elementwise`. The right operand is loaded, and scaled, once for a channel
block; the ALU then reads its tile for every pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, AluOp
from ...accelerator.selection.intrinsic import (
    Intrinsic,
    element_wise,
    immediate,
    requantize,
    scale_function,
)
from ...expression.expression import Expression, Function
from ...expression.tensor import Tensor, compute, placeholder
from ...nest.nest import Interleave
from ..description import Epilogue, activation, extent, setting
from ..form import TensorForm, blocks_of, requantize_sum
from ..layout import Layout, interleaves, memory_block, tile_images, wide_tiles
from ..packing import Array, Operand, pack_activations, unpack_activations
from ..work import Work
from .elementwise import COMBINED, HEADROOM, Elementwise, Operation
from .lanewise import Scale, operation_of, pack_scales


@dataclass(frozen=True, kw_only=True)
class Broadcast(Epilogue):
    """An element-wise operation whose right operand is repeated for every pixel."""

    operator: ClassVar[str] = "broadcast"

    operation: Operation = setting("add, sub, mul, min or max")
    channels: int = extent("channels")
    height: int = extent("rows", 1)
    width: int = extent("columns", 1)
    images: int = extent("images at once", 1)
    scale_left: float = setting("scale of the left operand", 1.0)
    scale_right: float = setting("scale of the right operand", 1.0)
    scale_out: float = setting("scale of the result", 1.0)
    zero_point_left: int = activation("zero point of the left operand")
    zero_point_right: int = activation("zero point of the right operand")

    def check(self) -> None:
        super().check()
        if self.operation == Operation.RESCALE:
            raise self.wrong("operation", self.operation, "one of two operands")
        self.pairwise()

    def pairwise(self) -> Elementwise:
        """The same operation of two numbers."""
        return Elementwise(
            operation=self.operation, channels=1, rounding=self.rounding,
            scale_left=self.scale_left, scale_right=self.scale_right, scale_out=self.scale_out,
            zero_point_left=self.zero_point_left, zero_point_right=self.zero_point_right,
            zero_point_out=self.zero_point_out, low=self.low, high=self.high)

    def scales(self) -> list[Scale]:
        return self.pairwise().scales()


@dataclass(frozen=True, kw_only=True)
class BroadcastForm(TensorForm):
    """The operation in tensors (n, channel block, y, x, batch, lane): operands in the accumulator,
    and what the ALU computes on the way, each with its intrinsic."""

    spec: Broadcast
    left: Tensor
    right: Tensor
    parameters: Tensor
    steps: dict[Tensor, Intrinsic] = field(default_factory=dict)

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, *self.steps.values()]

    def steps_of(self, shape: tuple[int, ...]) -> list[Tensor]:
        """The steps that give tensors of a shape."""
        return [step for step in self.steps if step.shape == shape]

    @property
    def work(self) -> Work:
        spec = self.spec
        values = spec.images * spec.channels
        passes = sum(_tiles(step) for step in (*self.steps, self.output))
        return Work(macs=0, products=0, passes=passes,
                    bytes=values * (2 * spec.height * spec.width + 1))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("left", (spec.images, spec.channels, spec.height, spec.width)),
                Operand("right", (spec.images, spec.channels, 1, 1)))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, batch = self.spec, self.config.batch
        block = memory_block(self.config, self.config.block_out)
        image = tile_images(spec.images, spec.channels, spec.height, spec.width, batch, block)
        return {"left": image, "output": image,
                "right": tile_images(spec.images, spec.channels, 1, 1, batch, block)}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return interleaves(self.config, read=(), written=("left", "right", "output"))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        block = memory_block(self.config, self.config.block_out)
        tiles = {name: pack_activations(given[name], self.config, block).reshape(self.shapes[name])
                 for name in ("left", "right")}
        return {**tiles, "parameters": pack_scales(self.spec.scales(), self.config)}

    def unpack(self, output: Array) -> Array:
        return unpack_activations(wide_tiles(output, self.config, self.config.block_out),
                                  self.spec.images, self.spec.channels)


def _tiles(tensor: Tensor) -> int:
    images, blocks, rows, columns = tensor.shape[:4]
    return images * blocks * rows * columns


def form_of(spec: Broadcast, config: Config) -> BroadcastForm:
    """What is computed."""
    return _Steps(spec, config).form()


class _Steps:
    """Writes down a form, one pass of the ALU after the other."""

    def __init__(self, spec: Broadcast, config: Config):
        self.spec, self.config = spec, config
        blocks = (blocks_of(spec.images, config.batch), blocks_of(spec.channels, config.block_out))
        tile = (config.batch, config.block_out)
        shapes = ((*blocks, spec.height, spec.width, *tile), (*blocks, 1, 1, *tile))
        self.given = [placeholder(name, shape, "int8") for name, shape
                      in zip(("left", "right"), shapes, strict=True)]
        self.parameters = placeholder(
            "parameters", (len(spec.scales()), PARAMETER_TILES, *tile), "int32")
        self.scaling = scale_function(spec.rounding)
        self.steps: dict[Tensor, Intrinsic] = {}
        self.used = 0

    def form(self) -> BroadcastForm:
        wide = [_each(f"{tensor.name}.wide", tensor, lambda element: element.cast("int32"))
                for tensor in self.given]
        if self.spec.operation in (Operation.ADD, Operation.SUB):
            sides = [self._term(each, shifted=term.shifted)
                     for each, term in zip(wide, self.spec.pairwise().terms(), strict=True)]
        elif self.spec.operation == Operation.MUL:
            zeros = self.spec.zero_point_left, self.spec.zero_point_right
            sides = [self._with_constant(AluOp.SUB, each, zero) if zero else each
                     for each, zero in zip(wide, zeros, strict=True)]
        else:
            sides = wide
        value = self._combine(COMBINED[self.spec.operation], *sides)
        function = self.spec.requantization()
        output = self._scale("output", function, value)
        return BroadcastForm(spec=self.spec, config=self.config, left=wide[0], right=wide[1],
                             parameters=self.parameters, function=function, steps=self.steps,
                             output=output)

    def _term(self, value: Tensor, *, shifted: bool) -> Tensor:
        """An operand of a sum, scaled."""
        if shifted:
            value = self._with_constant(AluOp.SHL, value, HEADROOM)
        result = self._scale(f"{value.name}.scaled", self.scaling, value)
        self.steps[result] = requantize(self.config, self.scaling)
        return result

    def _combine(self, op: AluOp, left: Tensor, right: Tensor) -> Tensor:
        def element(n: Expression, c: Expression, y: Expression, x: Expression, b: Expression,
                    j: Expression) -> Expression:
            return operation_of(op, left[n, c, y, x, b, j], right[n, c, 0, 0, b, j])

        result = compute(f"{left.name}.{op.name.lower()}", left.shape, element)
        self.steps[result] = element_wise(self.config, op)
        return result

    def _with_constant(self, op: AluOp, value: Tensor, constant: int) -> Tensor:
        result = _each(f"{value.name}.{op.name.lower()}", value,
                       lambda element: operation_of(op, element, constant))
        self.steps[result] = immediate(self.config, op, constant)
        return result

    def _scale(self, name: str, function: Function, value: Tensor) -> Tensor:
        number, self.used = self.used, self.used + 1
        return compute(name, value.shape, lambda n, c, y, x, b, j: requantize_sum(
            function, value[n, c, y, x, b, j], self.parameters, (number,), (b, j)))


def _each(name: str, source: Tensor, function: Callable[[Expression], Expression]) -> Tensor:
    """A function applied to each element of a tensor."""
    return compute(name, source.shape, lambda n, c, y, x, b, j: function(source[n, c, y, x, b, j]))
