"""Element-wise operations of an image and one number for each channel, such as the gates of
squeeze-and-excitation:

    y[n, c, y, x] = left[n, c, y, x] × right[n, c]

The arithmetic is that of `elementwise`. The right operand is loaded, and scaled, once for a channel
block; the ALU then reads its tile for every pixel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ...accelerator.selection.intrinsic import Intrinsic
from ...expression.tensor import Tensor
from ...nest.nest import Interleave
from ..description import activation, extent, setting
from ..form import TensorForm, blocks_of
from ..layout import Layout, interleaves, memory_block, tile_images, wide_tiles
from ..packing import Array, Operand, pack_activations, unpack_activations
from ..work import Work
from .elementwise import Elementwise, Operation, combine_operands
from .lanewise import AluDescription, Passes, Scale, Shape, parameters


@dataclass(frozen=True, kw_only=True)
class Broadcast(AluDescription):
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

    @property
    def operand_names(self) -> tuple[str, ...]:
        return "left", "right"

    def operand_shapes(self, config: Config) -> tuple[Shape, ...]:
        blocks = (blocks_of(self.images, config.batch), blocks_of(self.channels, config.block_out))
        tile = (config.batch, config.block_out)
        return (*blocks, self.height, self.width, *tile), (*blocks, 1, 1, *tile)

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
        pixels = spec.height * spec.width
        return Work(macs=0, products=0, passes=passes, written=values * pixels,
                    kept=passes - _tiles(self.output), filled=values * (pixels + 1),
                    bytes=values * (2 * pixels + 1))

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        return (Operand("left", (spec.images, spec.channels, spec.height, spec.width)),
                Operand("right", (spec.images, spec.channels, 1, 1)))

    @property
    def layouts(self) -> dict[str, Layout]:
        spec, config = self.spec, self.config
        block = memory_block(self.config, self.config.block_out)
        image = tile_images(spec.images, spec.channels, spec.height, spec.width, config, block)
        return {"left": image, "output": image,
                "right": tile_images(spec.images, spec.channels, 1, 1, config, block)}

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return interleaves(self.config, read=(), written=("left", "right", "output"))

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        block = memory_block(self.config, self.config.block_out)
        tiles = {name: pack_activations(given[name], self.config, block).reshape(self.shapes[name])
                 for name in ("left", "right")}
        return {**tiles, "parameters": parameters(self.spec, self.config)}

    def unpack(self, output: Array) -> Array:
        tiles = wide_tiles(output, self.config, self.config.block_out)
        return unpack_activations(tiles, self.config, self.spec.images, self.spec.channels)


def _tiles(tensor: Tensor) -> int:
    images, blocks, rows, columns = tensor.shape[:4]
    return images * blocks * rows * columns


def form_of(spec: Broadcast, config: Config) -> BroadcastForm:
    """What is computed."""
    passes = Passes(spec, config)
    function, output = passes.result(combine_operands(spec.pairwise(), passes))
    left, right = passes.operands
    return BroadcastForm(spec=spec, config=config, left=left, right=right,
                         parameters=passes.parameters, function=function, steps=passes.steps,
                         output=output)
