"""ResNet-18 and ResNet-50, as torchvision has them: strides in the 3 × 3 convolutions."""

from __future__ import annotations

from pathlib import Path

from .qdq import Tensor, Writer
from .weights import Weights

CALIBRATION_SIZE = 32
CLASSES = 1000
WIDTHS = (64, 128, 256, 512)


def resnet18(path: str | Path, *, size: int = 224, seed: int = 0) -> None:
    """Write ResNet-18 for square images of a size."""
    _resnet("resnet18", path, (2, 2, 2, 2), 1, size, seed)


def resnet50(path: str | Path, *, size: int = 224, seed: int = 0) -> None:
    """Write ResNet-50 for square images of a size."""
    _resnet("resnet50", path, (3, 4, 6, 3), 4, size, seed)


def _resnet(name: str, path: str | Path, depths: tuple[int, ...], expansion: int, size: int,
            seed: int) -> None:
    weights = Weights(seed)
    writer = Writer(name)
    sample = weights.rng.normal(0, 1, (1, 3, CALIBRATION_SIZE, CALIBRATION_SIZE))
    x = writer.input("image", (1, 3, size, size), sample)
    x = writer.conv(x, *weights.conv(64, 3, 7), stride=2, pad=3, activation="Relu")
    x = writer.max_pool(x, 3, 2, 1)
    for stage, (width, depth) in enumerate(zip(WIDTHS, depths, strict=True)):
        for block in range(depth):
            stride = 2 if stage and not block else 1
            x = _block(writer, weights, x, width, expansion, stride)
    channels = WIDTHS[-1] * expansion
    x = writer.dense(writer.global_average(x), *weights.dense(CLASSES, channels))
    writer.output("scores", x, (1, CLASSES))
    writer.save(path)


def _block(writer: Writer, weights: Weights, x: Tensor, width: int, expansion: int,
           stride: int) -> Tensor:
    """Two 3 × 3 convolutions or, with an expansion, a bottleneck; and the way around them."""
    inputs, outputs = x.sample.shape[1], width * expansion
    if expansion == 1:
        y = writer.conv(x, *weights.conv(width, inputs, 3), stride=stride, pad=1,
                        activation="Relu")
        y = writer.conv(y, *weights.conv(width, width, 3), pad=1)
    else:
        y = writer.conv(x, *weights.conv(width, inputs, 1), activation="Relu")
        y = writer.conv(y, *weights.conv(width, width, 3), stride=stride, pad=1,
                        activation="Relu")
        y = writer.conv(y, *weights.conv(outputs, width, 1))
    if stride > 1 or inputs != outputs:
        x = writer.conv(x, *weights.conv(outputs, inputs, 1), stride=stride)
    return writer.add(y, x, activation="Relu")
