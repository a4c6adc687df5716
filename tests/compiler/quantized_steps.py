"""The steps of random quantized models: each adds an operator, or a few, to a model."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from .quantized_models import fits


def window(made, sides, most=3):
    """Kernel, strides, dilations and pads of a window that lies inside, and the sides after it."""
    kernel, strides, dilations, before, after, found = [], [], [], [], [], []
    for side in sides:
        pads = [made.between(0, 1), made.between(0, 1)]
        size = made.between(1, min(most, side + sum(pads)))
        dilation = 2 if size > 1 and 2 * size - 1 <= side + sum(pads) and made.chance(0.2) else 1
        pads = [min(each, size - 1) if dilation == 1 else 0 for each in pads]
        stride = made.chosen(1, 1, 2)
        extent = (size - 1) * dilation + 1
        if extent > side + sum(pads):
            size = dilation = extent = 1
            pads = [0, 0]
        kernel.append(size)
        strides.append(stride)
        dilations.append(dilation)
        before.append(pads[0])
        after.append(pads[1])
        found.append((side + sum(pads) - extent) // stride + 1)
    return {"kernel_shape": kernel, "strides": strides, "dilations": dilations,
            "pads": before + after}, tuple(found)


def convolution(made):
    """Plain, in groups or depthwise, in one or two dimensions."""
    x = made.source()
    n, channels, *sides = x.shape
    if len(sides) != made.sides:
        return
    groups = made.chosen(1, 1, channels, *[each for each in (2, 3) if channels % each == 0])
    outputs = groups * made.between(1, 20 if groups == 1 else 2)
    attributes, after = window(made, sides)
    depth = channels // groups
    products = depth * prod(attributes["kernel_shape"])
    weights, scales = made.weights((outputs, depth, *attributes["kernel_shape"]), 0, products)
    bias, rounded = made.bias(x, scales, x.spread)
    shape = (n, outputs, *after)
    if fits(shape):
        name = made.add("Conv", [made.real(x), weights, *bias], group=groups, **attributes)
        made.layer(name, x, shape, 1.2 * x.spread, scales, rounded)


def transpose(made):
    """A transposed convolution whose blocks do not overlap, or do."""
    x = made.source()
    n, channels, *sides = x.shape
    outputs, stride = made.between(1, 6), made.between(1, 2)
    kernel = made.between(stride, 3)
    shape = (n, outputs, *[(side - 1) * stride + kernel for side in sides])
    if len(sides) != made.sides or not fits(shape):
        return
    weights, scales = made.weights((channels, outputs, *[kernel] * made.sides), 1, channels)
    name = made.add("ConvTranspose", [made.real(x), weights], strides=[stride] * made.sides)
    made.layer(name, x, shape, 1.2 * x.spread, scales, False)


def pool(made):
    x = made.source()
    n, channels, *sides = x.shape
    if len(sides) != made.sides:
        return
    attributes, after = window(made, sides)
    kind = made.chosen("MaxPool", "AveragePool")
    if kind == "AveragePool":
        del attributes["dilations"]
        _, after = attributes, tuple(
            (side + low + high - size) // stride + 1 for side, size, stride, low, high in zip(
                sides, attributes["kernel_shape"], attributes["strides"],
                attributes["pads"][:made.sides], attributes["pads"][made.sides:], strict=True))
        attributes["count_include_pad"] = made.between(0, 1)
    name = made.add(kind, [made.real(x)], **attributes)
    made.quantize(name, (n, channels, *after), x.spread, x if made.chance(0.5) else None)


def whole_average(made):
    """The average of whole images, as a pool or as a mean."""
    x = made.source()
    if len(x.shape) != made.sides + 2:
        return
    shape = (*x.shape[:2], *[1] * made.sides)
    name = (made.add("GlobalAveragePool", [made.real(x)]) if made.chance(0.6) else
            made.add("ReduceMean", [made.real(x)], axes=list(range(2, 2 + made.sides))))
    made.quantize(name, shape, max(x.spread / sqrt(prod(x.shape[2:])), x.spread / 5),
                  x if made.chance(0.4) else None)


def resize(made):
    """Nearest, up and down; or bilinear, which draws no number, so that models stay what they were
    before there was any."""
    x = made.source()
    n, channels, *sides = x.shape
    if len(sides) != made.sides:
        return
    scales = [made.chosen(2, 1, 3, 1 / side, 0.5 if side > 1 else 2, 1.5) for side in sides]
    shape = (n, channels, *[int(side * each + 1e-6) for side, each in zip(
        sides, scales, strict=True)])
    if not fits(shape):
        return
    how, nearest = made.chosen(("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))
    size = made.constant(np.int64(shape))
    mode = {"mode": "linear"} if sum(x.shape) % 2 else {"mode": "nearest", "nearest_mode": nearest}
    name = made.add("Resize", [made.real(x), "", "", size], coordinate_transformation_mode=how,
                    **mode)
    made.quantize(name, shape, x.spread, x)


def binary(made):
    """A sum, a difference or a product of two tensors, perhaps one that is repeated."""
    x = made.source()
    others = [each for each in made.images if len(each.shape) == len(x.shape) and all(
        side in (1, whole) for side, whole in zip(each.shape, x.shape, strict=True))]
    other = made.chosen(*others)
    kind = made.chosen("Add", "Add", "Sub", "Mul")
    pair = [made.real(x), made.real(other)]
    spread = (x.spread * other.spread if kind == "Mul" else
              sqrt(x.spread ** 2 + other.spread ** 2))
    name = made.activation(made.add(kind, pair[::made.chosen(1, -1)]))
    made.quantize(name, x.shape, spread)


def real_constant(made):
    """A sum, difference, product or quotient with real numbers: one, one for each channel, or one
    for each element."""
    x = made.source()
    channels = x.shape[1]
    shape = made.chosen((), (channels, *[1] * (len(x.shape) - 2)), x.shape[1:])
    values = made.rng.normal(0, made.chosen(0.1, 1, 2) * x.spread, shape)
    kind = made.chosen("Add", "Add", "Sub", "Mul", "Div")
    spread = x.spread + float(np.abs(values).max())
    if kind in ("Mul", "Div"):
        values = made.rng.uniform(0.4, 1.5, shape)
        spread = 1.5 * x.spread
    pair = [made.real(x), made.constant(np.float32(values))]
    if kind == "Add":
        pair = pair[::made.chosen(1, -1)]
    made.quantize(made.add(kind, pair), x.shape, spread)


def function(made):
    x = made.source()
    kind, spread = made.chosen(("Sigmoid", 0.5), ("Tanh", 0.6), ("HardSwish", x.spread),
                               ("LeakyRelu", x.spread), ("Relu", x.spread), ("Abs", x.spread))
    made.quantize(made.add(kind, [made.real(x)]), x.shape, spread)


def change_of_scale(made):
    x = made.source()
    made.quantize(made.real(x), x.shape, x.spread * made.rng.uniform(0.5, 2))


def join(made):
    """Channels of two tensors, of one scale or two."""
    x = made.source()
    others = [each for each in made.images
              if (each.shape[0], *each.shape[2:]) == (x.shape[0], *x.shape[2:])]
    other = made.chosen(*others)
    shape = (x.shape[0], x.shape[1] + other.shape[1], *x.shape[2:])
    if fits(shape):
        name = made.add("Concat", [made.real(x), made.real(other)], axis=1)
        made.quantize(name, shape, max(x.spread, other.spread), x if made.chance(0.5) else None)


def cut(made):
    """Some channels or pixels."""
    x = made.source()
    axis = made.between(1, len(x.shape) - 1)
    start, step = made.between(0, x.shape[axis] - 1), made.between(1, 2)
    stop = made.between(start + 1, x.shape[axis])
    shape = list(x.shape)
    shape[axis] = -(-(stop - start) // step)
    operands = [made.constant(np.int64([each])) for each in (start, stop, axis, step)]
    made.quantize(made.add("Slice", [made.real(x), *operands]), shape, x.spread,
                  x if made.chance(0.8) else None)


def border(made):
    """A border of zeros, or of another number, around images or of channels."""
    x = made.source()
    pads = [0 if axis % len(x.shape) == 0 else made.chosen(0, 0, 1, 2)
            for axis in range(2 * len(x.shape))]
    shape = [side + pads[axis] + pads[axis + len(x.shape)] for axis, side in enumerate(x.shape)]
    if fits(shape):
        value = made.constant(np.float32(made.chosen(0, 0, 0.37)))
        name = made.add("Pad", [made.real(x), made.constant(np.int64(pads)), value])
        made.quantize(name, shape, x.spread, x if made.chance(0.7) else None)


def product(made):
    """Images in rows times a matrix, with a bias that is added on either side."""
    x = made.source()
    depth, outputs = prod(x.shape[1:]), made.between(1, 20)
    if depth > 200:
        return
    rows = made.add("Reshape", [made.real(x), made.constant(np.int64([x.shape[0], depth]))])
    weights, scales = made.weights((depth, outputs), 1, depth)
    name = made.add("MatMul", [rows, weights])
    bias, rounded = made.bias(x, scales, x.spread)
    if bias:
        name = made.add("Add", [name, *bias][::made.chosen(1, -1)])
    made.layer(name, x, (x.shape[0], outputs), 1.2 * x.spread, scales, rounded)


def attention(made):
    """The product of two computed matrices."""
    x = made.source()
    depth = prod(x.shape[2:])
    rows = made.constant(np.int64([*x.shape[:2], depth]))
    left = made.add("Reshape", [made.real(x), rows])
    right = made.add("Transpose", [left], perm=[0, 2, 1])
    if x.shape[1] <= 20:
        made.quantize(made.add("MatMul", [left, right]), (x.shape[0], x.shape[1], x.shape[1]),
                      x.spread ** 2 * sqrt(depth))


def move(made):
    """Axes in another order."""
    x = made.source()
    order = [0, *(1 + made.rng.permutation(len(x.shape) - 1)).tolist()]
    made.quantize(made.add("Transpose", [made.real(x)], perm=order),
                  [x.shape[axis] for axis in order], x.spread, x if made.chance(0.8) else None)


STEPS = (convolution, convolution, convolution, convolution, transpose, pool, pool, whole_average,
         resize, binary, binary, real_constant, function, change_of_scale, join, cut, border,
         product, attention, move)
