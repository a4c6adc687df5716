"""Convolutions. Those of one dimension become those of two, with images of one row."""

from __future__ import annotations

from dataclasses import replace

from ......base.classes.dataclass import dataclass
from .....graph.operation import Operation
from .....graph.operations.data_movement.shape import Reshape, Transpose
from .....graph.operations.layers.window import Conv, Pair, Sides, TransposedConv
from .....graph.types import Array, GraphError, Quantization, Shape
from ...call import Call
from ...operator_table import operator
from ..weights import rearrange

PLACE = "auto_pad dilations group kernel_shape pads strides"
AUTO_PAD = "NOTSET SAME_UPPER SAME_LOWER VALID"


@dataclass(frozen=True)
class Side:
    """How a window lies along one dimension of an image."""

    size: int               # of the image
    taps: int
    stride: int = 1
    dilation: int = 1
    before: int = 0         # pixels of the border
    after: int = 0

    @property
    def reach(self) -> int:
        """Pixels from the first tap to the last."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def overhang(self) -> int:
        """By how much the last window hangs over when the number of windows is rounded up. A window
        that would begin in the border after the image is left out."""
        rest = self.size + self.before + self.after - self.reach
        count = -(-rest // self.stride)
        if count * self.stride >= self.size + self.before:
            count -= 1
        return max(count * self.stride - rest, 0)


@dataclass(frozen=True)
class Place:
    """Where a window lies in an image of two dimensions."""

    kernel: Pair
    stride: Pair
    dilation: Pair
    pad: Sides


def as_images(call: Call, tensor: str) -> str:
    """Images of two dimensions."""
    shape = call.type_of(tensor).shape
    if len(shape) not in (3, 4):
        raise GraphError(f"the input has shape {shape}, but images of one or two dimensions have "
                         f"3 or 4 axes")
    return tensor if len(shape) == 4 else call.reshape(tensor, (*shape[:2], 1, shape[2]))


def sides_of(call: Call, sizes: Shape, taps: Shape) -> list[Side]:
    """How the window of a node lies along each dimension of an image."""
    count = len(sizes)
    strides, dilations = _each(call, "strides", count), _each(call, "dilations", count)
    mode = call.text("auto_pad", "NOTSET", AUTO_PAD)
    pads = call.list("pads") or (0,) * (2 * count)
    if len(pads) != 2 * count or min(pads) < 0:
        raise GraphError(f"pads are {pads}, but must be {2 * count} numbers that are not negative")
    found = []
    for number, size in enumerate(sizes):
        side = Side(size, taps[number], strides[number], dilations[number])
        before, after = pads[number], pads[number + count]
        if mode != "NOTSET":
            whole = max((-(-size // side.stride) - 1) * side.stride + side.reach - size, 0)
            whole = 0 if mode == "VALID" else whole
            before = -(-whole // 2) if mode == "SAME_LOWER" else whole // 2
            after = whole - before
        found.append(replace(side, before=before, after=after))
    return found


def kernel_shape(call: Call, dimensions: int) -> Shape:
    """The attribute, which must be there."""
    if "kernel_shape" not in call.attributes:
        raise GraphError("kernel_shape is missing")
    return _each(call, "kernel_shape", dimensions)


def _each(call: Call, name: str, dimensions: int) -> Shape:
    """An attribute with a number for each dimension."""
    found = call.list(name) or (1,) * dimensions
    if len(found) != dimensions or min(found) < 1:
        raise GraphError(f"{name} is {found}, but must be {dimensions} numbers of 1 or more")
    return found


def place(rows: Side, columns: Side) -> Place:
    """A window of two dimensions."""
    return Place((rows.taps, columns.taps), (rows.stride, columns.stride),
                 (rows.dilation, columns.dilation),
                 (rows.before, rows.after, columns.before, columns.after))


def place_of(call: Call, tensor: str, dimensions: int, kernel: Pair) -> Place:
    """Where the window of a node lies in an image of two dimensions, of which the first may have
    been added."""
    taps = kernel[2 - dimensions:]
    if call.attributes.get("kernel_shape") and kernel_shape(call, dimensions) != taps:
        raise GraphError(f"kernel_shape is {call.list('kernel_shape')}, but the weights have "
                         f"{taps}")
    sides = sides_of(call, call.type_of(tensor).shape[4 - dimensions:], taps)
    return place(sides[0] if dimensions == 2 else Side(1, 1), sides[-1])


def give_images(call: Call, operation: Operation, dimensions: int, *,
                dtype: str | None = None, quantization: Quantization | None = None) -> None:
    """A result of two dimensions, or of one as the input has."""
    if dimensions == 2:
        call.give(operation, dtype=dtype, quantization=quantization)
        return
    found = call.add(operation, dtype=dtype, quantization=quantization)
    shape = call.type_of(found).shape
    call.give_reshaped(found, (*shape[:2], shape[3]))


def kernel_of(call: Call, tensor: str, dimensions: int) -> str:
    """Weights of two dimensions."""
    shape = call.type_of(tensor).shape
    if len(shape) != dimensions + 2:
        raise GraphError(f"weights have shape {shape}, but must have {dimensions + 2} axes")
    if dimensions == 2:
        return tensor
    wide = (*shape[:2], 1, shape[2])
    return rearrange(call, tensor, lambda array: array.reshape(wide), {0: 0, 1: 1, 2: 3},
                     Reshape(x=tensor, shape=wide))


def convolve(call: Call, x: str, weights: str, bias: str | None, *,
             scaled: dict[str, object] | None = None, dtype: str | None = None,
             quantization: Quantization | None = None) -> None:
    """A convolution, of real numbers or of integers."""
    dimensions = len(call.type_of(x).shape) - 2
    images = as_images(call, x)
    weights = kernel_of(call, weights, dimensions)
    taps = call.type_of(weights).shape[2:]
    place = place_of(call, images, dimensions, (taps[0], taps[1]))
    operation = Conv(x=images, weights=weights, bias=bias, stride=place.stride,
                     dilation=place.dilation, pad=place.pad, groups=call.integer("group", 1),
                     channel_axis=1, **scaled or {})     # type: ignore[arg-type]
    give_images(call, operation, dimensions, dtype=dtype, quantization=quantization)


@operator("Conv", PLACE)
def convolution(call: Call) -> None:
    convolve(call, call.plain_operand(0), call.plain_operand(1),
             call.plain_operand(2) if call.has(2) else None)


@operator("ConvTranspose", f"{PLACE} output_padding output_shape")
def transposed_convolution(call: Call) -> None:
    x = call.plain_operand(0)
    dimensions = len(call.type_of(x).shape) - 2
    images, groups = as_images(call, x), call.integer("group", 1)
    weights = kernel_of(call, call.plain_operand(1), dimensions)
    inputs, outputs, *taps = call.type_of(weights).shape
    if groups < 1 or inputs % groups:
        raise GraphError(f"{inputs} channels do not fall into {groups} groups")

    def by_output(array: Array) -> Array:
        parts = array.reshape(groups, inputs // groups, outputs, *taps).swapaxes(1, 2)
        return parts.reshape(groups * outputs, inputs // groups, *taps)

    if groups > 1 and call.reader.builder.array(weights) is None:
        parts = call.reshape(weights, (groups, inputs // groups, outputs, *taps))
        parts = call.move(Transpose(x=parts, order=(0, 2, 1, 3, 4)), parts)
        weights = call.reshape(parts, (groups * outputs, inputs // groups, *taps))
    else:
        weights = rearrange(call, weights, by_output, {0: 1, 1: 0, 2: 2, 3: 3},
                            Transpose(x=weights, order=(1, 0, 2, 3)))
    place = place_of(call, images, dimensions, (taps[0], taps[1]))
    more = call.list("output_padding") or (0,) * dimensions
    if len(more) != dimensions or min(more) < 0:
        raise GraphError(f"output_padding is {more}, but must be {dimensions} numbers that are not "
                         f"negative")
    pad, padding = _cropping(call, images, place, (more[0], more[1]) if dimensions == 2 else (
        0, more[0]), dimensions)
    operation = TransposedConv(
        x=images, weights=weights, bias=call.plain_operand(2) if call.has(2) else None,
        stride=place.stride, dilation=place.dilation, groups=groups, channel_axis=1, pad=pad,
        output_padding=padding)
    give_images(call, operation, dimensions)


def _cropping(call: Call, images: str, place: Place, padding: Pair,
              dimensions: int) -> tuple[Sides, Pair]:
    """What a transposed convolution cuts off and adds: pads, or whatever gives the size that is
    wanted."""
    mode, wanted = call.text("auto_pad", "NOTSET", AUTO_PAD), call.list("output_shape")
    if wanted is None and mode in ("NOTSET", "VALID"):
        return place.pad, padding
    sizes = call.type_of(images).shape[2:]
    if wanted is None:
        wanted = tuple(size * step for size, step in zip(sizes, place.stride, strict=True))
    elif len(wanted) != dimensions:
        raise GraphError(f"output_shape is {wanted}, but must be {dimensions} numbers")
    elif dimensions == 1:
        wanted = (1, *wanted)
    sides: list[int] = []
    added: list[int] = []
    for size, step, taps, apart, more, after in zip(
            sizes, place.stride, place.kernel, place.dilation, padding, wanted, strict=True):
        whole = step * (size - 1) + more + (taps - 1) * apart + 1 - after
        added.append(more + max(-whole, 0))
        whole = max(whole, 0)
        upper = mode == "SAME_UPPER"
        sides += [whole // 2, -(-whole // 2)] if upper else [-(-whole // 2), whole // 2]
    return (sides[0], sides[1], sides[2], sides[3]), (added[0], added[1])
