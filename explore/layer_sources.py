"""Where layers come from: networks, lists in JSON, and distributions.

A list is a JSON array of descriptions, `[{"operator": "conv2d", "height": 14, …}, …]`; a network
gives the layers that it has on the accelerator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..base.text_file import read_text
from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.convolution.conv2d import Conv2d
from ..compiler.operators.dense.dense import Dense
from ..compiler.operators.depthwise.depthwise import Depthwise
from ..compiler.operators.description import Description
from ..compiler.operators.elementwise.elementwise import Elementwise, Operation
from ..compiler.operators.pool.pool import Kind, Pool
from ..isa.config import Config
from .points import PointError, parse_layer
from .sampling import pick, unit_points

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Row = npt.NDArray[np.float64]

MOST_LAYERS = 100_000
IMAGES = (4, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56)
CHANNELS = (3, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512)
FEATURES = (*CHANNELS[1:], 640, 768, 1000, 1024)
ROWS = (1, 1, 1, 4, 8, 16, 32, 49, 64, 128)
KERNELS = (1, 1, 1, 3, 3, 3, 5)
MOST_MACS = 64 << 20        # of a layer from distributions: larger ones only repeat their steps


def can_schedule(layer: Description) -> bool:
    """Whether an operator takes a form and knobs, and is not made of several parts."""
    return operator_of(layer).compile is None


def read_layers(path: Path) -> list[Description]:
    """The layers of a list, as often as it has them."""
    try:
        given = json.loads(read_text(path))
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise MicrotronError(f"{path}: not JSON: {error}") from None
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_LAYERS:
        raise MicrotronError(f"{path}: {quote(given)} must be an array of 1 to {MOST_LAYERS} "
                             f"descriptions of layers")
    try:
        found = [parse_layer(each, f"layer {number}") for number, each in enumerate(given)]
    except PointError as error:
        raise MicrotronError(f"{path}: {error}") from None
    for layer in found:
        if not can_schedule(layer):
            raise MicrotronError(f"{path}: {layer.operator} has no schedule of its own to choose: "
                                 f"leave it out")
    return found


def layers_of_network(path: Path, config: Config) -> list[Description]:
    """The different layers of a network on the accelerator, in order, those left out that have no
    schedules to choose from."""
    from .. import __version__
    from ..compiler.network.network import AcceleratorStep
    from ..runtime.models.compilation import ModelOptions, compile_to_network

    network = compile_to_network(path, config, ModelOptions(), version=__version__)
    return distinct(layer.spec for step in network.steps if isinstance(step, AcceleratorStep)
                    for layer in step.layers if can_schedule(layer.spec))


def distinct(layers: Iterable[Description]) -> list[Description]:
    """Every layer once."""
    return list(dict.fromkeys(layers))


def sample_layers(count: int, seed: int, design: str = "sobol") -> list[Description]:
    """Different layers whose kinds and sizes are those of common networks."""
    found: dict[Description, None] = {}
    for row in unit_points(design, 1 + COORDINATES, count, seed):
        layer = pick(KINDS, float(row[0]))(row[1:])
        if layer is not None:
            found[layer] = None
        if len(found) == count:
            break
    return list(found)


def _convolution(row: Row) -> Description | None:
    size, kernel = pick(IMAGES, row[0]), pick(KERNELS, row[1])
    stride = 2 if row[2] > 0.75 else 1
    channels_in, channels_out = pick(CHANNELS, row[3]), pick(FEATURES[:-4], row[4])
    width = size if row[5] < 0.8 else max(1, size // 2)
    macs = size * width * kernel * kernel * channels_in * channels_out // stride ** 2
    return None if macs > MOST_MACS or size < kernel else Conv2d(
        height=size, width=width, channels_in=channels_in, channels_out=channels_out,
        kernel=(kernel,) * 2, stride=(stride,) * 2, pad=(kernel // 2,) * 4)


def _depthwise(row: Row) -> Description | None:
    size, kernel = pick(IMAGES, row[0]), 3 if row[1] < 0.8 else 5
    channels, stride = pick(FEATURES[:-4], row[3]), 2 if row[2] > 0.6 else 1
    return None if size < kernel else Depthwise(
        height=size, width=size, channels_in=channels, channels_out=channels,
        kernel=(kernel,) * 2, stride=(stride,) * 2, pad=(kernel // 2,) * 4)


def _dense(row: Row) -> Description | None:
    return Dense(rows=pick(ROWS, row[0]), inputs=pick(FEATURES, row[3]),
                 outputs=pick(FEATURES, row[4]))


def _pool(row: Row) -> Description | None:
    size, kernel = pick(IMAGES, row[0]), 2 if row[1] < 0.5 else 3
    return Pool(height=size, width=size, channels=pick(FEATURES[:-4], row[3]),
                kernel=(kernel,) * 2, stride=(1 if row[2] < 0.2 else 2,) * 2,
                pad=(kernel // 2 if row[4] < 0.5 else 0,) * 4,
                kind=Kind.MAX if row[5] < 0.7 else Kind.AVERAGE)


def _elementwise(row: Row) -> Description | None:
    size = pick(IMAGES, row[0])
    return Elementwise(operation=Operation.ADD if row[1] < 0.7 else Operation.MUL,
                       height=size, width=size, channels=pick(FEATURES[:-4], row[3]))


COORDINATES = 6             # that each kind has
KINDS: tuple[Callable[[Row], Description | None], ...] = (
    *(_convolution,) * 5, *(_depthwise,) * 2, *(_dense,) * 2, _pool, _elementwise)
