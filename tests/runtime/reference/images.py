"""Nodes that look at images through windows, and those that resize and sample them."""

from __future__ import annotations

import numpy as np

from .nodes import Draw, Node, node


def window(draw: Draw, axes: int) -> tuple[list[int], list[int], dict]:
    """The sides of an image and of a window that lies inside of it, and attributes."""
    kernel = [draw.number(1, 3) for _ in range(axes)]
    apart = [draw.number(1, 2) for _ in range(axes)]
    pads = [draw.number(0, size - 1) for size in kernel * 2]
    sides = [(size - 1) * step + draw.number(1, 4)
             for size, step in zip(kernel, apart, strict=True)]
    return sides, kernel, {"strides": [draw.number(1, 3) for _ in range(axes)], "pads": pads,
                           "dilations": apart}


@node("Conv")
def convolutions(draw: Draw, op: str) -> Node:
    """The reference multiplies what is between the taps of a window with zeros."""
    sides, kernel, attributes = window(draw, draw.number(1, 2))
    groups, inputs, outputs = draw.number(1, 3), draw.number(1, 3), draw.number(1, 3)
    x = (draw.number(1, 2), groups * inputs, *sides)
    odd = draw.chance()
    weights = draw.term((groups * outputs, inputs, *kernel), odd=odd)
    return Node([draw.term(x, odd=odd), weights,
                 draw.term((groups * outputs,), odd=odd) if draw.chance() else None],
                {**attributes, "group": groups}, rtol=1e-4, atol=1e-5, runtime=True, opset=21)


@node("ConvTranspose")
def transposed_convolutions(draw: Draw, op: str) -> Node:
    """The reference has them for one group alone."""
    sides, kernel, attributes = window(draw, draw.number(1, 2))
    groups, inputs, outputs = draw.number(1, 2), draw.number(1, 3), draw.number(1, 3)
    odd = draw.chance()
    return Node([draw.term((draw.number(1, 2), groups * inputs, *sides), odd=odd),
                 draw.term((groups * inputs, outputs, *kernel), odd=odd),
                 draw.term((groups * outputs,), odd=odd) if draw.chance() else None],
                {**attributes, "group": groups,
                 "output_padding": [draw.number(0, each - 1) for each in attributes["strides"]]},
                rtol=1e-4, atol=1e-5, runtime=True, opset=21)


@node("ConvInteger")
def convolutions_of_bytes(draw: Draw, op: str) -> Node:
    sides, kernel, attributes = window(draw, 2)
    inputs, outputs, kind = draw.number(1, 5), draw.number(1, 5), draw.one("int8", "uint8")
    return Node([draw.whole((1, inputs, *sides), kind),
                 draw.whole((outputs, inputs, *kernel), kind), draw.whole((), kind),
                 None], attributes)


@node("QLinearConv")
def quantized_convolutions(draw: Draw, op: str) -> Node:
    """The reference adds zero points before it rounds."""
    sides, kernel, attributes = window(draw, 2)
    inputs, outputs, kind = draw.number(1, 5), draw.number(1, 5), draw.one("int8", "uint8")
    scales = [np.array(each, np.float32) for each in (0.5, 0.25, 4)]
    return Node([draw.whole((1, inputs, *sides), kind), scales[0], draw.whole((), kind, 0, 20),
                 draw.whole((outputs, inputs, *kernel), "int8"), scales[1], np.array(0, np.int8),
                 scales[2], draw.whole((), kind, 0, 20),
                 draw.whole((outputs,), "int32", -99, 99) if draw.chance() else None], attributes,
                runtime=True, opset=21)


@node("MaxPool AveragePool LpPool")
def pools(draw: Draw, op: str) -> Node:
    sides, kernel, attributes = window(draw, draw.number(1, 2))
    x = (draw.number(1, 2), draw.number(1, 3), *sides)
    attributes["kernel_shape"] = kernel
    if op == "AveragePool":
        attributes["count_include_pad"] = draw.number(0, 1)
    if op == "LpPool":
        attributes["p"] = draw.number(1, 2)
    # The reference leaves out what is no number, and of images with one axis some results.
    image = draw.term(x)
    if op == "MaxPool":                 # of which ONNX Runtime makes the least finite number
        image[np.isnan(image) | np.isneginf(image)] = np.inf
    return Node([image], attributes, runtime=True, opset=21)


@node("GlobalAveragePool GlobalMaxPool")
def whole_images(draw: Draw, op: str) -> Node:
    """With two axes: those with one lose it in the reference."""
    return Node([draw.real(draw.shape(4, 4, least=1))], {}, rtol=1e-4)


@node("GlobalLpPool")
def norms_of_images(draw: Draw, op: str) -> Node:
    """For which there is no reference."""
    return Node([draw.real(draw.shape(3, 4, least=1))], {"p": draw.number(1, 3)}, rtol=1e-4,
                runtime=True, opset=21)


@node("MaxUnpool")
def unpooled(draw: Draw, op: str) -> Node:
    n, c, h, w = draw.shape(4, 4, least=1, most=2)
    first = 4 * w * np.arange(h)[:, None] + 2 * np.arange(w)        # in images of 2h × 2w
    places = first + draw.whole((n, c, h, w), "int64", 0, 1)
    images = (np.arange(n)[:, None] * c + np.arange(c))[:, :, None, None] * 4 * h * w
    return Node([draw.real((n, c, h, w)), places + images],
                {"kernel_shape": [2, 2], "strides": [2, 2]})


@node("LRN")
def local_norms(draw: Draw, op: str) -> Node:
    """Of real numbers: the reference takes other windows, and ONNX Runtime subtracts what leaves
    one, which for an infinite number is none."""
    shape = draw.shape(4, 4, least=1)
    return Node([draw.real(shape, odd=False)], {
        "size": draw.one(1, 3, 5), "alpha": 0.5, "beta": 0.75, "bias": 2.0}, rtol=1e-4,
        runtime=True, opset=21)


@node("Col2Im")
def columns_to_images(draw: Draw, op: str) -> Node:
    sides, kernel, attributes = window(draw, 2)
    counts = [(side + attributes["pads"][axis] + attributes["pads"][axis + 2]
               - attributes["dilations"][axis] * (kernel[axis] - 1) - 1)
              // attributes["strides"][axis] + 1 for axis, side in enumerate(sides)]
    x = (draw.number(1, 2), draw.number(1, 2) * kernel[0] * kernel[1], counts[0] * counts[1])
    return Node([draw.real(x), np.array(sides), np.array(kernel)], attributes)


@node("Resize")
def resized(draw: Draw, op: str) -> Node:
    """The reference takes other places of an image that becomes a single row."""
    shape = (draw.number(1, 2), draw.number(1, 2), draw.one(2, 4), draw.one(2, 4))
    factors = np.array([1, 1, draw.one(0.5, 1, 1.5, 2, 3), draw.one(0.5, 1, 2, 2.5)], np.float32)
    mode = draw.one("nearest", "linear", "cubic")
    attributes = {"mode": mode, "coordinate_transformation_mode": draw.one(
        "half_pixel", "asymmetric", "pytorch_half_pixel")}
    if mode == "nearest":
        attributes["nearest_mode"] = draw.one("floor", "ceil", "round_prefer_floor")
    return Node([draw.real(shape, odd=False), None, factors], attributes, rtol=1e-4, atol=1e-5,
                runtime=True, opset=19)


@node("Upsample")
def enlarged(draw: Draw, op: str) -> Node:
    shape = draw.shape(4, 4, least=1, most=3)
    scales = np.array([1, 1, draw.number(1, 3), draw.number(1, 3)], np.float32)
    return Node([draw.real(shape), scales], {"mode": "nearest"}, opset=9)


@node("GridSample")
def samples(draw: Draw, op: str) -> Node:
    axes = draw.number(1, 2)
    x = draw.real((draw.number(1, 2), draw.number(1, 2), *draw.shape(axes, axes, least=1)),
                  odd=False)
    grid = draw.real((x.shape[0], *draw.shape(axes, axes, least=1, most=3), axes), odd=False,
                     low=-1.5, high=1.5)
    return Node([x, grid], {"mode": draw.one("linear", "nearest"), "padding_mode": draw.one(
        "zeros", "border", "reflection"), "align_corners": 0}, atol=1e-4)


@node("NonMaxSuppression")
def boxes_apart(draw: Draw, op: str) -> Node:
    count = draw.number(1, 6)
    corner = draw.real((1, count, 2), odd=False, low=0, high=4)
    boxes = np.concatenate([corner, corner + draw.real((1, count, 2), odd=False, low=0.5, high=3)],
                           axis=-1)
    scores = draw.rng.permutation(count).reshape(1, 1, count).astype(np.float32) / 8
    return Node([boxes, scores, np.array([draw.number(0, 4)]), np.array([0.4], np.float32),
                 np.array([0.2], np.float32)])
