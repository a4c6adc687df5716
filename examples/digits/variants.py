"""Writes two variants of the demo's network: with weights of 4 bits, and for two images at once.

    python examples/digits/variants.py

reads digits.onnx and writes digits_int4.onnx and digits_batch2.onnx beside it; all are in the
repository. One is for accelerators with `wgt_bits` = 4, the other for those with `batch` = 2.

Weights of 4 bits have the scale, one for each channel, with which they come nearest to the weights
of 8 bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
LOW, HIGH = -8, 7
CANDIDATES = np.linspace(0.5, 1.05, 56)     # of a scale, as parts of the one that clips nothing
IMAGES = 2

Array = npt.NDArray[Any]


def main() -> None:
    model = onnx.load(HERE / "digits.onnx")
    save(in_four_bits(model), HERE / "digits_int4.onnx")
    save(for_images(model, IMAGES), HERE / "digits_batch2.onnx")


def save(model: onnx.ModelProto, path: Path) -> None:
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))
    print(f"{path.name}: {path.stat().st_size} bytes")


def in_four_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with INT4 weights, which ONNX has from opset 21 on."""
    copy = _copy(model)
    copy.opset_import[0].version = 21
    arrays = {each.name: numpy_helper.to_array(each) for each in copy.graph.initializer}
    readers = {name: node for node in copy.graph.node for name in node.input}
    for node in list(copy.graph.node):
        if node.op_type != "DequantizeLinear" or node.input[0] not in arrays:
            continue
        stored = arrays[node.input[0]]
        if stored.dtype == np.int8 and stored.ndim > 1:
            scales = _narrow(arrays, *node.input)
            _rescale_bias(arrays, readers[node.output[0]], copy, arrays[node.input[1]], scales)
            arrays[node.input[1]] = scales
    four = {node.input[place] for node in copy.graph.node if node.op_type == "DequantizeLinear"
            and node.input[0] in arrays and arrays[node.input[0]].ndim > 1 for place in (0, 2)}
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(
        helper.make_tensor(name, TensorProto.INT4, each.shape, _pack_nibbles(each), raw=True)
        if name in four else numpy_helper.from_array(each, name) for name, each in arrays.items())
    return copy


def _pack_nibbles(numbers: Array) -> bytes:
    """Two numbers a byte, the first in the low half."""
    flat = numbers.ravel().astype(np.uint8)
    pairs = np.pad(flat, (0, len(flat) % 2)).reshape(-1, 2)
    return (pairs[:, 0] & 0xF | pairs[:, 1] << 4).astype(np.uint8).tobytes()


def _narrow(arrays: dict[str, Array], weights: str, scale: str, zero: str) -> Array:
    """Make weights numbers from −8 to 7. Returns their scales."""
    real = arrays[weights] * _reshape(arrays[scale], arrays[weights].ndim)
    rows = real.reshape(len(real), -1)
    widest = np.abs(rows).max(axis=1) / HIGH
    trials = [_round(rows, widest * part) for part in CANDIDATES]
    errors = [np.square(trial * (widest * part)[:, None] - rows).sum(axis=1)
              for trial, part in zip(trials, CANDIDATES, strict=True)]
    scales: Array = (widest * CANDIDATES[np.argmin(errors, axis=0)]).astype(np.float32)
    arrays[weights] = _round(rows, scales).reshape(real.shape)
    arrays[zero] = np.zeros_like(arrays[zero])
    return scales


def _round(rows: Array, scales: Array) -> Array:
    return np.clip(np.rint(rows / scales[:, None]), LOW, HIGH).astype(np.int8)


def _reshape(scales: Array, axes: int) -> Array:
    return scales.reshape(-1, *(1,) * (axes - 1))


def _rescale_bias(arrays: dict[str, Array], layer: onnx.NodeProto, model: onnx.ModelProto,
                  before: Array, after: Array) -> None:
    """A bias has the scale of the input times that of the weights."""
    bias = next(node for node in model.graph.node if node.output[0] == layer.input[2])
    stored, scale = bias.input[:2]
    real = arrays[stored] * arrays[scale]
    arrays[scale] = (arrays[scale] * (after / before)).astype(np.float32)
    arrays[stored] = np.rint(real / arrays[scale]).astype(np.int32)


def for_images(model: onnx.ModelProto, count: int) -> onnx.ModelProto:
    """The model for several images at once: inputs, outputs and what is between say so."""
    copy = _copy(model)
    for each in (*copy.graph.input, *copy.graph.output):
        each.type.tensor_type.shape.dim[0].dim_value = count
    del copy.graph.value_info[:]
    return copy


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


if __name__ == "__main__":
    main()
