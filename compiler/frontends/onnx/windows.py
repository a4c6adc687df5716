"""Convolutions and pools. Those of one dimension become those of two, with images of one row."""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.operations.reduction import Reduce, ReduceKind
from ...graph.operations.shape import Pad, Reshape, Transpose
from ...graph.operations.window import Conv, Pair, Pool, PoolKind, Sides, TransposedConv
from ...graph.types import Array, GraphError, Quantization
from .call import Call
from .parameters import rearranged
from .table import operator

PLACE = "auto_pad dilations group kernel_shape pads strides"
AUTO_PAD = "NOTSET SAME_UPPER SAME_LOWER VALID"


@dataclass(frozen=True)
class Place:
    """Where a window lies."""

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
    return tensor if len(shape) == 4 else call.reshaped(tensor, (*shape[:2], 1, shape[2]))


def pair(call: Call, name: str, dimensions: int, default: int = 1) -> Pair:
    """An attribute with a number for each dimension."""
    found = call.list(name) or (default,) * dimensions
    if len(found) != dimensions or min(found) < 1:
        raise GraphError(f"{name} is {found}, but must be {dimensions} numbers of 1 or more")
    return (found[0], found[1]) if dimensions == 2 else (1, found[0])


def ends(call: Call, dimensions: int) -> Sides:
    """The attribute pads: top, bottom, left, right."""
    found = call.list("pads") or (0,) * (2 * dimensions)
    if len(found) != 2 * dimensions or min(found) < 0:
        raise GraphError(f"pads are {found}, but must be {2 * dimensions} numbers that are not "
                         f"negative")
    if dimensions == 1:
        return 0, 0, found[0], found[1]
    return found[0], found[2], found[1], found[3]


def place_of(call: Call, tensor: str, dimensions: int, kernel: Pair) -> Place:
    """Where the window of a node lies in an image."""
    stride, dilation = pair(call, "strides", dimensions), pair(call, "dilations", dimensions)
    if call.attributes.get("kernel_shape") and pair(call, "kernel_shape", dimensions) != kernel:
        raise GraphError(f"kernel_shape is {call.list('kernel_shape')}, but the weights have "
                         f"{kernel}")
    mode = call.text("auto_pad", "NOTSET", AUTO_PAD)
    if mode == "NOTSET":
        return Place(kernel, stride, dilation, ends(call, dimensions))
    sides: list[int] = []
    for size, taps, step, apart in zip(call.type_of(tensor).shape[2:], kernel, stride, dilation,
                                       strict=True):
        whole = max((-(-size // step) - 1) * step + (taps - 1) * apart + 1 - size, 0)
        whole = 0 if mode == "VALID" else whole
        sides += [whole // 2, -(-whole // 2)] if mode != "SAME_LOWER" else [
            -(-whole // 2), whole // 2]
    return Place(kernel, stride, dilation, (sides[0], sides[1], sides[2], sides[3]))


def give_images(call: Call, operation: Conv | TransposedConv | Pool, dimensions: int, *,
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
    return rearranged(call, tensor, lambda array: array.reshape(wide), {0: 0, 1: 1, 2: 3},
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
    convolve(call, call.plain(0), call.plain(1), call.plain(2) if call.has(2) else None)


@operator("ConvTranspose", f"{PLACE} output_padding output_shape")
def transposed_convolution(call: Call) -> None:
    x = call.plain(0)
    dimensions = len(call.type_of(x).shape) - 2
    images, groups = as_images(call, x), call.integer("group", 1)
    weights = kernel_of(call, call.plain(1), dimensions)
    inputs, outputs, *taps = call.type_of(weights).shape
    if groups < 1 or inputs % groups:
        raise GraphError(f"{inputs} channels do not fall into {groups} groups")

    def by_output(array: Array) -> Array:
        parts = array.reshape(groups, inputs // groups, outputs, *taps).swapaxes(1, 2)
        return parts.reshape(groups * outputs, inputs // groups, *taps)

    if groups > 1 and call.reader.builder.array(weights) is None:
        raise GraphError("weights in groups must be constant")
    weights = rearranged(call, weights, by_output, {0: 1, 1: 0, 2: 2, 3: 3},
                         Transpose(x=weights, order=(1, 0, 2, 3)))
    place = place_of(call, images, dimensions, (taps[0], taps[1]))
    more = call.list("output_padding") or (0,) * dimensions
    if len(more) != dimensions or min(more) < 0:
        raise GraphError(f"output_padding is {more}, but must be {dimensions} numbers that are not "
                         f"negative")
    padding = (more[0], more[1]) if dimensions == 2 else (0, more[0])
    operation = TransposedConv(
        x=images, weights=weights, bias=call.plain(2) if call.has(2) else None,
        stride=place.stride, dilation=place.dilation, groups=groups, channel_axis=1,
        pad=_cut_off(call, images, place, padding, dimensions), output_padding=padding)
    give_images(call, operation, dimensions)


def _cut_off(call: Call, images: str, place: Place, padding: Pair, dimensions: int) -> Sides:
    """What a transposed convolution cuts off: pads, or whatever gives the size that is wanted."""
    mode, wanted = call.text("auto_pad", "NOTSET", AUTO_PAD), call.list("output_shape")
    if wanted is None and mode in ("NOTSET", "VALID"):
        return place.pad
    sizes = call.type_of(images).shape[2:]
    if wanted is None:
        wanted = tuple(size * step for size, step in zip(sizes, place.stride, strict=True))
    elif len(wanted) != dimensions:
        raise GraphError(f"output_shape is {wanted}, but must be {dimensions} numbers")
    elif dimensions == 1:
        wanted = (1, *wanted)
    sides: list[int] = []
    for size, step, taps, apart, more, after in zip(
            sizes, place.stride, place.kernel, place.dilation, padding, wanted, strict=True):
        whole = step * (size - 1) + more + (taps - 1) * apart + 1 - after
        if whole < 0:
            raise GraphError(f"output_shape is {wanted}, which is more than there is")
        upper = mode == "SAME_UPPER"
        sides += [whole // 2, -(-whole // 2)] if upper else [-(-whole // 2), whole // 2]
    return sides[0], sides[1], sides[2], sides[3]


@operator("MaxPool", "auto_pad ceil_mode dilations kernel_shape pads storage_order strides")
def max_pool(call: Call) -> None:
    call.one_result()
    pool(call, call.tensor(0), PoolKind.MAX)


@operator("AveragePool", "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides")
def average_pool(call: Call) -> None:
    pool(call, call.plain(0), PoolKind.AVERAGE, include_pad=call.flag("count_include_pad"))


def pool(call: Call, x: str, kind: PoolKind, *, include_pad: bool = False) -> None:
    """A pool of images."""
    dimensions = len(call.type_of(x).shape) - 2
    images = as_images(call, x)
    if "kernel_shape" not in call.attributes:
        raise GraphError("kernel_shape is missing")
    place = place_of(call, images, dimensions, pair(call, "kernel_shape", dimensions))
    pad, more = place.pad, (0, 0)
    if call.flag("ceil_mode"):
        more = overhang(call, images, place)
    if include_pad and any(more):       # what hangs over does not count, but what was padded does
        images = call.add(Pad(x=images, before=(0, 0, pad[0], pad[2]),
                              after=(0, 0, pad[1], pad[3])))
        pad, include_pad = (0, 0, 0, 0), False
    operation = Pool(x=images, kind=kind, kernel=place.kernel, stride=place.stride,
                     dilation=place.dilation, channel_axis=1, count_include_pad=include_pad,
                     pad=(pad[0], pad[1] + more[0], pad[2], pad[3] + more[1]))
    give_images(call, operation, dimensions, quantization=call.type_of(images).quantization)


def overhang(call: Call, images: str, place: Place) -> Pair:
    """By how much the last windows hang over when sizes are rounded up. A window that would begin
    in the padding after the image is left out."""
    found = []
    for size, taps, step, apart, before, after in zip(
            call.type_of(images).shape[2:], place.kernel, place.stride, place.dilation,
            place.pad[::2], place.pad[1::2], strict=True):
        rest = size + before + after - (taps - 1) * apart - 1
        count = -(-rest // step)
        if count * step >= size + before:
            count -= 1
        found.append(max(count * step - rest, 0))
    return found[0], found[1]


@operator("GlobalAveragePool GlobalMaxPool")
def global_pool(call: Call) -> None:
    average = call.node.op_type == "GlobalAveragePool"
    x = call.plain(0) if average else call.tensor(0)
    shape = call.type_of(x).shape
    if len(shape) not in (3, 4):
        kind = ReduceKind.MEAN if average else ReduceKind.MAX
        call.give(Reduce(kind=kind, x=call.plain(0), axes=tuple(range(2, len(shape))), keep=True))
        return
    images = as_images(call, x)
    sides = call.type_of(images).shape[2:]
    operation = Pool(x=images, kind=PoolKind.AVERAGE if average else PoolKind.MAX,
                     kernel=(sides[0], sides[1]), channel_axis=1)
    give_images(call, operation, len(shape) - 2, quantization=call.type_of(images).quantization)
