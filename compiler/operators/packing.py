"""Tensors as the accelerator wants them: in tiles, with channels filled up to whole blocks.

Shape, type and range of every input are checked here. A number that does not fit would go unnoticed
later and give a wrong result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...base import arrays
from ...base.argument_checks import check_type
from ...base.classes.dataclass import dataclass
from ...isa.arithmetic import SCALE_SHIFT_MASK, quantize_scales
from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, TABLE_ENTRIES
from ..accelerator.emission.assemble_program import TABLE_INPUT
from ..errors import CompileError

Array = arrays.Array
BYTE, HALF = 8, 4           # bits
INT8, INT32 = (-(1 << 7), (1 << 7) - 1), (-(1 << 31), (1 << 31) - 1)
SHIFTS = (0, SCALE_SHIFT_MASK)
PARAMETERS = {"bias": INT32, "multiplier": INT32, "shift": SHIFTS}      # in the order of tiles


@dataclass(frozen=True)
class Operand:
    """A tensor that an operator takes, in the user's layout."""

    name: str
    shape: tuple[int, ...]
    range: tuple[int, int] = INT8

    def check(self, value: npt.ArrayLike) -> Array:
        """The values as an array of integers of this shape; one number stands for all channels."""
        narrow = INT8[0] <= self.range[0] and self.range[1] <= INT8[1]
        array = integers(self.name, value, self.range).astype(np.int8 if narrow else np.int32)
        if self.name in PARAMETERS and array.ndim == 0:
            return np.broadcast_to(array, self.shape)
        if array.shape != self.shape:
            raise CompileError(f"{self.name} has shape {array.shape}, but must have {self.shape}")
        return array


def integers(name: str, value: npt.ArrayLike, limits: tuple[int, int]) -> Array:
    """An array of whole numbers in a range; anything else is refused, nothing is converted."""
    array = _array(name, value)
    if array.dtype.kind not in "iu":
        raise CompileError(f"{name} is of type {array.dtype}, but must be whole numbers from "
                           f"{limits[0]} to {limits[1]}")
    outside = (array < limits[0]) | (array > limits[1])
    if outside.any():
        place = tuple(np.argwhere(outside)[0]) if array.ndim else ()
        shown = f"[{', '.join(map(str, place))}]" if place else ""
        raise CompileError(f"{name}{shown} is {array[place]}, but must be from {limits[0]} to "
                           f"{limits[1]}")
    return array


def _array(name: str, value: npt.ArrayLike) -> Array:
    try:
        return arrays.to_array(value)
    except ValueError:
        raise CompileError(f"{name} has rows of different lengths") from None
    except (BufferError, RuntimeError, TypeError) as error:         # of the library that made it
        raise CompileError(f"{name}: {type(value).__name__} gives no array: "
                           f"{' '.join(str(error).split())}") from None


def parameter_operands(channels: int) -> tuple[Operand, ...]:
    """What turns sums into results: three numbers for each channel."""
    return tuple(Operand(name, (channels,), limits) for name, limits in PARAMETERS.items())


def weight_operand(shape: tuple[int, ...], config: Config, planes: int = 1) -> Operand:
    """Weights, which may have fewer bits than activations, or be sums of several such weights."""
    limit = 1 << config.wgt_bits - 1
    return Operand("weights", shape, (-limit * planes, (limit - 1) * planes))


def weight_planes(weights: Array, planes: int) -> Array:
    """Each weight split into numbers that add up to it, along a new last axis."""
    parts, rest = [], weights.astype(np.int32)
    for left in range(planes, 0, -1):
        parts.append(rest // left)
        rest = rest - parts[-1]
    return np.stack(parts, axis=-1).astype(np.int8)


def check_operands(operands: tuple[Operand, ...], given: Mapping[str, npt.ArrayLike]) -> dict[str,
                                                                                              Array]:
    """All operands of an operator by name. `scale` may stand for multiplier and shift, and there
    need not be a bias."""
    check_type("inputs", given, Mapping, "a mapping from operands' names to their values")
    values = dict(given)
    names = [each.name for each in operands]
    if "multiplier" in names:
        values.setdefault("bias", 0)
        if "scale" in values:
            both = [name for name in ("multiplier", "shift") if name in values]
            if both:
                raise CompileError(f"scale and {both[0]} are given, but one stands for the other")
            values |= _scale_parameters(values.pop("scale"))
    wrong = [name for name in values if name not in names]
    missing = [name for name in names if name not in values]
    if wrong or missing:
        instead = "; scale may stand for multiplier and shift" if "multiplier" in missing else ""
        raise CompileError(
            f"{f'there is no input {wrong[0]!r}' if wrong else f'{missing[0]} is not given'}; "
            f"inputs are {', '.join(names)}{instead}")
    return {each.name: each.check(values[each.name]) for each in operands}


def _scale_parameters(scale: npt.ArrayLike) -> dict[str, Array]:
    """Multipliers and shifts of real scales."""
    real = _array("scale", scale)
    if real.dtype.kind not in "fiu":
        raise CompileError(f"scale is of type {real.dtype}, but must be numbers")
    return dict(zip(("multiplier", "shift"), quantize_scales(real), strict=True))


def pad_axis(array: Array, axis: int, multiple: int) -> Array:
    """An axis filled with zeros up to a multiple."""
    missing = -array.shape[axis] % multiple
    widths = [(0, missing if place == axis else 0) for place in range(array.ndim)]
    return np.pad(array, widths) if missing else array


def pack_activations(tensor: Array, config: Config, block: int) -> Array:
    """(n, channels, y, x) → (n block, channel block, y, x, batch, lane), by count: in a tile,
    groups of lanes follow one another (`Config.place_in_tile`)"""
    tensor = pad_axis(pad_axis(tensor, 0, config.batch), 1, block)
    images, channels, height, width = tensor.shape
    lanes = min(block, config.depthwise_lanes)
    tiles = tensor.reshape(images // config.batch, config.batch, channels // block, block // lanes,
                           lanes, height, width).transpose(0, 2, 5, 6, 3, 1, 4)
    return np.ascontiguousarray(tiles).reshape(*tiles.shape[:4], config.batch, block)


def unpack_activations(tiles: Array, config: Config, images: int, channels: int) -> Array:
    """The inverse, without the filling."""
    far, blocks, height, width, batch, block = tiles.shape
    lanes = min(block, config.depthwise_lanes)
    groups = tiles.reshape(far, blocks, height, width, block // lanes, batch, lanes)
    tensor = groups.transpose(0, 5, 1, 4, 6, 2, 3).reshape(far * batch, blocks * block, height,
                                                           width)
    return np.ascontiguousarray(tensor[:images, :channels])


def pack_weights(weights: Array, config: Config) -> Array:
    """(outputs, inputs, y, x) → (output block, input block, y, x, output lane, input lane), where
    the lanes are bytes of a tile if weights have 4 bits (see `weights_in_dram`)"""
    return weights_in_dram(weight_tiles(weights, config), config)


def weight_tiles(weights: Array, config: Config) -> Array:
    """(outputs, inputs, y, x) → (output block, input block, y, x, output lane, input lane)"""
    weights = weight_operand(weights.shape, config).check(weights)
    weights = pad_axis(pad_axis(weights, 0, config.block_out), 1, config.block_in)
    outputs, inputs, height, width = weights.shape
    tiles = weights.reshape(outputs // config.block_out, config.block_out,
                            inputs // config.block_in, config.block_in, height, width)
    return np.ascontiguousarray(tiles.transpose(0, 2, 4, 5, 1, 3))


def weights_in_dram(tiles: Array, config: Config) -> Array:
    """Tiles, or rows of tiles, of weights (…, row, lane) as programs take them: weights of 8 bits
    as they are, those of 4 bits two to a byte, the first in the low half: (…, byte)."""
    if config.wgt_bits == BYTE:
        return tiles.astype(np.int8)
    pairs = tiles.astype(np.uint8).reshape(*tiles.shape[:-2], -1, 2)
    return pairs[..., 0] & 0xF | pairs[..., 1] << HALF


def pack_parameters(bias: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike,
                    config: Config) -> Array:
    """Three numbers a channel → (block, 3, batch, lane), by count, the same for every image of a
    batch."""
    given = {name: integers(name, value, limits) for (name, limits), value in
             zip(PARAMETERS.items(), (bias, multiplier, shift), strict=True)}
    lengths = {name: each.shape for name, each in given.items()}
    if len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
        raise CompileError(f"bias, multiplier and shift have shapes "
                           f"{', '.join(map(str, lengths.values()))}, but must have one number "
                           f"for each channel")
    rows = np.stack([pad_axis(each.astype(np.int32), 0, config.block_out)
                     for each in given.values()])
    tiles = rows.reshape(PARAMETER_TILES, -1, config.acc_groups, 1, config.depthwise_lanes)
    tiles = np.repeat(tiles.transpose(1, 0, 2, 3, 4), config.batch, axis=3)
    return np.ascontiguousarray(tiles).reshape(-1, PARAMETER_TILES, config.batch,
                                               config.block_out)


def pack_tables(tables: Sequence[Sequence[int]], config: Config) -> dict[str, Array]:
    """Tables as accumulator tiles, four entries to a lane, under the name that programs have for
    them; nothing if there are none."""
    if not tables:
        return {}
    lanes = config.table_tiles * config.batch * config.block_out
    words = np.zeros((len(tables), lanes), "<i4")
    words.view(np.int8)[:, :TABLE_ENTRIES] = np.array(tables, np.int8)
    return {TABLE_INPUT: words.reshape(-1, config.batch, config.block_out)}


def bias_with_zero_point(bias: Array, weights: Array, zero_point: int) -> Array:
    """The bias of sums over (x - zero point) × w, for sums over x × w. Wraps like the sums do."""
    sums = weights.astype(np.int64).sum(axis=tuple(range(1, weights.ndim)))
    corrected: Array = (np.asarray(bias, np.int64) - zero_point * sums).astype(np.int32)
    return corrected
