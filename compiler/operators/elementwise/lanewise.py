"""Operators that work lane by lane: each element of the result follows from the elements of the
operands at the same place.

Tensors are rows of tiles, (tile, batch, lane): any packed activation, whatever its dimensions, as
long as all operands are packed alike. So a network can run such an operator in whatever layout its
neighbours have. `elementwise.py` is one of them; docs/recipes.md adds another from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, AluOp
from ...accelerator.selection.intrinsic import (
    Intrinsic,
    element_wise,
    immediate,
    requantize,
    scale_function,
)
from ...expression.expression import Expression, Function, binary, maximum, minimum
from ...expression.tensor import Tensor, compute, placeholder
from ..description import Epilogue, extent
from ..form import TensorForm, blocks_of, requantize_sum
from ..layout import Layout, tile_images
from ..packing import Array, Operand, pack_activations, pack_parameters, unpack_activations
from ..work import Work

Scale = tuple[int, int, int]        # bias, multiplier and shift of a requantization
SYMBOLS = {AluOp.ADD: "+", AluOp.SUB: "-", AluOp.MUL: "*", AluOp.SHL: "<<"}


@dataclass(frozen=True, kw_only=True)
class Lanewise(Epilogue):
    """What descriptions of such operators have in common."""

    channels: int = extent("channels")
    height: int = extent("rows", 1)
    width: int = extent("columns", 1)
    images: int = extent("images at once", 1)

    @property
    def operand_names(self) -> tuple[str, ...]:
        raise NotImplementedError

    def scales(self) -> list[Scale]:
        """Of every requantization, in the order of its passes. The last makes the result."""
        raise NotImplementedError

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

    @property
    def intrinsics(self) -> list[Intrinsic]:
        return [*super().intrinsics, *self.steps.values()]

    @property
    def work(self) -> Work:
        spec, tiles = self.spec, self.output.shape[0]
        values = spec.images * spec.channels * spec.height * spec.width
        return Work(macs=0, products=0, bytes=(len(self.placeholders) + 1) * values,
                    passes=tiles * (len(self.steps) + 1))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        shape = (spec.images, spec.channels, spec.height, spec.width)
        return tuple(Operand(name, shape) for name in spec.operand_names)

    @property
    def layouts(self) -> dict[str, Layout]:
        """Any layout will do, as long as all tensors have the same."""
        spec, config = self.spec, self.config
        layout = tile_images(spec.images, spec.channels, spec.height, spec.width, config.batch,
                             config.block_out)
        return {name: layout for name in (*spec.operand_names, "output")}

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        tiles = {name: pack_activations(given[name], self.config, self.config.block_out)
                 for name in self.spec.operand_names}
        return {**{name: each.reshape(self.output.shape) for name, each in tiles.items()},
                "parameters": parameters(self.spec, self.config)}

    def unpack(self, output: Array) -> Array:
        spec, config = self.spec, self.config
        shape = (blocks_of(spec.images, config.batch), blocks_of(spec.channels, config.block_out),
                 spec.height, spec.width, *output.shape[-2:])
        return unpack_activations(output.reshape(shape), spec.images, spec.channels)


def parameters(spec: Lanewise, config: Config) -> Array:
    """What the program takes as `parameters`: a set for each scale, the same in all lanes."""
    return pack_scales(spec.scales(), config)


def pack_scales(scales: Sequence[Scale], config: Config) -> Array:
    """Parameters that are the same in all lanes, a set for each scale."""
    lanes = np.ones(config.block_out, np.int64)
    return np.concatenate([pack_parameters(bias * lanes, multiplier * lanes, shift * lanes, config)
                           for bias, multiplier, shift in scales])


class Passes:
    """Writes down a form, one pass of the ALU after the other.

        passes = Passes(spec, config)
        form = passes.form(passes.combine(AluOp.ADD, *passes.operands))
    """

    def __init__(self, spec: Lanewise, config: Config):
        self.spec, self.config = spec, config
        shape = (spec.tiles(config), config.batch, config.block_out)
        self._given = tuple(placeholder(name, shape, "int8") for name in spec.operand_names)
        self.operands = tuple(_each(f"{tensor.name}.wide", lambda element: element.cast("int32"),
                                    tensor) for tensor in self._given)      # in 32 bits
        self._sets = len(spec.scales())
        self._parameters = placeholder(
            "parameters", (self._sets, PARAMETER_TILES, *shape[1:]), "int32")
        self._scaling = scale_function(spec.rounding)       # one function, for one intrinsic
        self._steps: dict[Tensor, Intrinsic] = {}
        self._used = 0

    def scale(self, value: Tensor) -> Tensor:
        """Multiplied by the next of the description's scales, still in 32 bits."""
        result = self._scale(f"{value.name}.scaled", self._scaling, value)
        self._steps[result] = requantize(self.config, self._scaling)
        return result

    def combine(self, op: AluOp, left: Tensor, right: Tensor) -> Tensor:
        """An operation of two tensors."""
        result = _each(f"{left.name}.{op.name.lower()}.{right.name}",
                       lambda one, other: operation_of(op, one, other), left, right)
        self._steps[result] = element_wise(self.config, op)
        return result

    def with_constant(self, op: AluOp, value: Tensor, constant: int) -> Tensor:
        """An operation of a tensor and a constant."""
        result = _each(f"{value.name}.{op.name.lower()}",
                       lambda element: operation_of(op, element, constant), value)
        self._steps[result] = immediate(self.config, op, constant)
        return result

    def form(self, value: Tensor) -> LanewiseForm:
        """The form whose result is this value, requantized with the last of the scales."""
        function = self.spec.requantization()
        output = self._scale("output", function, value)
        assert self._used == self._sets, "every scale of the description is used once"
        return LanewiseForm(spec=self.spec, config=self.config, placeholders=self._given,
                            wide=self.operands, parameters=self._parameters, function=function,
                            steps=self._steps, output=output)

    def _scale(self, name: str, function: Function, value: Tensor) -> Tensor:
        number, self._used = self._used, self._used + 1
        return compute(name, value.shape, lambda t, b, j: requantize_sum(
            function, value[t, b, j], self._parameters, (number,), (b, j)))


def _each(name: str, function: Callable[..., Expression], *sources: Tensor) -> Tensor:
    """A function applied element by element to tensors of the same shape."""
    return compute(name, sources[0].shape, lambda t, b, j: function(
        *(source[t, b, j] for source in sources)))


def operation_of(op: AluOp, left: Expression, right: Expression | int) -> Expression:
    """What an operation of the ALU computes."""
    if op in (AluOp.MIN, AluOp.MAX):
        return (minimum if op == AluOp.MIN else maximum)(left, right)
    return binary(SYMBOLS[op], left, right)
