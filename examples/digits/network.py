"""A small convolutional network and its gradients, in NumPy.

    image 8 × 8                                     images are (n, y, x, channel)
      first       convolution 3 × 3, relu           8 × 8 × 32
      second      convolution 3 × 3, stride 2, relu 4 × 4 × 64
      depthwise   convolution 3 × 3, relu           4 × 4 × 64
      pointwise   convolution 1 × 1                 4 × 4 × 64
      + second, relu                                4 × 4 × 64
      average of all pixels                         64
      dense                                         10 scores
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Parameters = dict[str, Array]
SHAPES = {              # (y, x, input, output); a depthwise convolution has one output per input
    "first": (3, 3, 1, 32), "second": (3, 3, 32, 64), "depthwise": (3, 3, 64, 1),
    "pointwise": (1, 1, 64, 64), "dense": (64, 10)}
CLASSES = 10


def initial(rng: np.random.Generator) -> Parameters:
    """Random weights that keep the size of numbers through a layer with ReLU."""
    found: Parameters = {}
    for name, shape in SHAPES.items():
        inputs = np.prod(shape[:2]) if name == "depthwise" else np.prod(shape[:-1])
        channels = shape[2] if name == "depthwise" else shape[-1]
        found[name] = rng.normal(0, np.sqrt(2 / inputs), shape).astype(np.float32)
        found[f"{name}.bias"] = np.zeros(channels, np.float32)
    return found


def taps(x: Array, kernel: int, stride: int) -> list[Array]:
    """What each tap of a window sees of padded images, row by row."""
    pad = kernel // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    size = (x.shape[1] - 1) // stride + 1
    return [padded[:, i:i + size * stride:stride, j:j + size * stride:stride]
            for i in range(kernel) for j in range(kernel)]


def convolution(x: Array, weights: Array, bias: Array, stride: int = 1) -> Array:
    flat = weights.reshape(-1, *weights.shape[2:])
    found: Array = sum(here @ each for here, each in zip(
        taps(x, len(weights), stride), flat, strict=True)) + bias
    return found


def depthwise(x: Array, weights: Array, bias: Array) -> Array:
    flat = weights.reshape(-1, weights.shape[2])
    found: Array = sum(here * each for here, each in zip(taps(x, 3, 1), flat, strict=True)) + bias
    return found


def scatter(parts: list[Array], shape: tuple[int, ...], kernel: int, stride: int) -> Array:
    """The gradient of images from those of what each tap saw: `taps` backwards."""
    pad, size = kernel // 2, parts[0].shape[1]
    total = np.zeros((shape[0], shape[1] + 2 * pad, shape[2] + 2 * pad, shape[3]), np.float32)
    for tap, part in enumerate(parts):
        i, j = divmod(tap, kernel)
        total[:, i:i + size * stride:stride, j:j + size * stride:stride] += part
    return total[:, pad:pad + shape[1], pad:pad + shape[2]]


def forward(parameters: Mapping[str, Array], images: Array) -> dict[str, Array]:
    """Every layer's result, by name; the scores are "dense"."""
    def layer(name: str) -> tuple[Array, Array]:
        return parameters[name], parameters[f"{name}.bias"]

    found = {"image": images}
    found["first"] = np.maximum(convolution(images, *layer("first")), 0)
    found["second"] = np.maximum(convolution(found["first"], *layer("second"), stride=2), 0)
    found["depthwise"] = np.maximum(depthwise(found["second"], *layer("depthwise")), 0)
    found["pointwise"] = convolution(found["depthwise"], *layer("pointwise"))
    found["sum"] = np.maximum(found["second"] + found["pointwise"], 0)
    found["mean"] = found["sum"].mean(axis=(1, 2))
    weights, bias = layer("dense")
    found["dense"] = found["mean"] @ weights + bias
    return found


def gradients(parameters: Mapping[str, Array], images: Array,
              labels: Array) -> tuple[float, Parameters]:
    """The mean cross entropy of a batch, and its gradient."""
    values = forward(parameters, images)
    powers = np.exp(values["dense"] - values["dense"].max(axis=1, keepdims=True))
    likely = powers / powers.sum(axis=1, keepdims=True)
    right = np.eye(CLASSES, dtype=np.float32)[labels]
    loss = -float(np.log((likely * right).sum(axis=1) + 1e-9).mean())
    found: Parameters = {}

    scores = (likely - right) / len(images)
    found["dense"], found["dense.bias"] = values["mean"].T @ scores, scores.sum(axis=0)
    pixels = values["sum"].shape[1] * values["sum"].shape[2]
    total = (values["sum"] > 0) * (scores @ parameters["dense"].T)[:, None, None] / pixels

    deep = _convolution_gradients(parameters, found, "pointwise", values["depthwise"], total)
    deep = deep * (values["depthwise"] > 0)
    flat = parameters["depthwise"].reshape(-1, deep.shape[-1])
    seen = taps(values["second"], 3, 1)
    found["depthwise"] = np.stack([(here * deep).sum(axis=(0, 1, 2)) for here in seen]).reshape(
        parameters["depthwise"].shape)
    found["depthwise.bias"] = deep.sum(axis=(0, 1, 2))
    deep = scatter([deep * each for each in flat], values["second"].shape, 3, 1)

    second = (total + deep) * (values["second"] > 0)            # both ways of the residual block
    first = _convolution_gradients(parameters, found, "second", values["first"], second, 2)
    _convolution_gradients(parameters, found, "first", images, first * (values["first"] > 0))
    return loss, found


def _convolution_gradients(parameters: Mapping[str, Array], found: Parameters, name: str, x: Array,
                           result: Array, stride: int = 1) -> Array:
    """Add the gradients of a convolution's parameters, and return that of its input."""
    weights = parameters[name]
    flat = weights.reshape(-1, *weights.shape[2:])
    rows = result.reshape(-1, result.shape[-1])
    found[name] = np.stack([here.reshape(len(rows), -1).T @ rows for here
                            in taps(x, len(weights), stride)]).reshape(weights.shape)
    found[f"{name}.bias"] = rows.sum(axis=0)
    return scatter([result @ each.T for each in flat], x.shape, len(weights), stride)
