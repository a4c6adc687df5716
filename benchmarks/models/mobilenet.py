"""MobileNetV2, as its paper has it."""

from __future__ import annotations

from pathlib import Path

from .qdq import Tensor, Writer
from .weights import Weights

CALIBRATION_SIZE = 32
CLASSES = 1000
LAST = 1280
BLOCKS = (              # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1))


def mobilenet_v2(path: str | Path, *, size: int = 224, seed: int = 0, images: int = 1) -> None:
    """Write MobileNetV2 for square images of a size, some at once."""
    weights = Weights(seed)
    writer = Writer("mobilenet_v2")
    sample = weights.rng.normal(0, 1, (1, 3, CALIBRATION_SIZE, CALIBRATION_SIZE))
    x = writer.input("image", (images, 3, size, size), sample)
    x = writer.conv(x, *weights.conv(32, 3, 3, sample), stride=2, pad=1, activation="Clip")
    for expansion, channels, blocks, stride in BLOCKS:
        for block in range(blocks):
            x = _block(writer, weights, x, expansion, channels, 1 if block else stride)
    x = writer.conv(x, *weights.conv(LAST, BLOCKS[-1][1], 1, x.sample), activation="Clip")
    x = writer.dense(writer.global_average(x), *weights.dense(CLASSES, LAST))
    writer.output("scores", x, (images, CLASSES))
    writer.save(path)


def mobilenet_v2_pair(path: str | Path, *, size: int = 224, seed: int = 0) -> None:
    """Write the same network for two images at once."""
    mobilenet_v2(path, size=size, seed=seed, images=2)


def _block(writer: Writer, weights: Weights, x: Tensor, expansion: int, channels: int,
           stride: int) -> Tensor:
    """More channels, a depthwise convolution, and fewer channels; and the way around them."""
    inputs = x.sample.shape[1]
    inner = inputs * expansion
    y = x
    if expansion > 1:
        y = writer.conv(y, *weights.conv(inner, inputs, 1, y.sample), activation="Clip")
    y = writer.conv(y, *weights.conv(inner, 1, 3, y.sample), stride=stride, pad=1,
                    groups=inner, activation="Clip")
    y = writer.conv(y, *weights.conv(channels, inner, 1, y.sample))
    return writer.add(x, y) if stride == 1 and inputs == channels else y
