"""Spectra as products with matrices of sines and cosines. Lengths, steps and axes must be known."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.indexing import Gather
from ....graph.operations.data_movement.shape import Transpose
from ....graph.operations.layers.matmul import MatMul
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.types import Array, GraphError
from ..call import Call
from ..operator_table import operator
from .data_movement import build_slice

AXIS_IS_OPERAND = 20            # from this opset on; before, it is an attribute


def waves(call: Call, rows: int, count: int, *, parts: int, dtype: str) -> str:
    """The matrix from so many samples, of one or two parts, to frequencies of two parts."""
    inverse, onesided = call.flag("inverse"), call.flag("onesided", call.node.op_type == "STFT")
    if inverse and onesided:
        raise GraphError("an inverse transform of half a spectrum is not supported")
    if onesided and parts == 2:
        raise GraphError("onesided is set, but the samples have imaginary parts")
    frequencies = count // 2 + 1 if onesided else count
    size = rows * parts * frequencies * 2
    if size > call.reader.budget:
        raise GraphError(f"a spectrum of {rows} samples and {frequencies} frequencies takes a "
                         f"matrix of {size} numbers, which is too large")
    call.reader.budget -= size
    angles = np.outer(np.arange(rows), np.arange(frequencies)) % count * (2 * np.pi / count)
    cosine, sine = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    found: Array = np.stack([cosine, sine], -1)[:, None]        # of real parts
    if parts == 2:
        found = np.concatenate([found, np.stack([-sine, cosine], -1)[:, None]], 1)
    whole = found.reshape(rows * parts, frequencies * 2) / (count if inverse else 1)
    return call.constant(whole.astype(dtype))


def _parts(shape: tuple[int, ...]) -> int:
    if len(shape) < 2 or shape[-1] not in (1, 2):
        raise GraphError(f"samples have shape {shape}, but the last axis must have 1 or 2 parts")
    return shape[-1]


def _length(call: Call, number: int, what: str, least: int = 1) -> int:
    found = call.integers(number, what)
    if len(found) != 1 or found[0] < least:
        raise GraphError(f"{what} is {found}, but must be a number from {least} on")
    return found[0]


def _axis(call: Call) -> int:
    if call.opset < AXIS_IS_OPERAND:
        return call.integer("axis", 1)
    return int(call.number(2, "the axis")) if call.has(2) else -2


@operator("DFT", "axis inverse onesided", since=17)
def transform(call: Call) -> None:
    """Along one axis, which is moved to the end. Samples are cut off or zeros are added."""
    x, shape = call.plain_operand(0), call.type(0).shape
    parts = _parts(shape)
    axis = normalize_axis(_axis(call), len(shape))
    if axis == len(shape) - 1:
        raise GraphError(f"axis is {axis}, which has the parts of each sample")
    count = _length(call, 1, "dft_length") if call.has(1) else shape[axis]
    rows = min(count, shape[axis])
    if not rows:
        raise GraphError("there are no samples")
    if rows < shape[axis]:
        x = call.add(build_slice(x, shape, {axis: (0, rows, 1)}))
    order = (*(each for each in range(len(shape) - 1) if each != axis), axis, len(shape) - 1)
    others = tuple(shape[each] for each in order[:-2])
    x = call.add(Transpose(x=x, order=order))
    x = call.reshape(x, (prod(others), rows * parts))
    matrix = waves(call, rows, count, parts=parts, dtype=call.type_of(x).dtype)
    found = call.add(MatMul(left=x, right=matrix))
    frequencies = call.type_of(found).shape[-1] // 2
    found = call.reshape(found, (*others, frequencies, 2))
    back = tuple(order.index(each) for each in range(len(shape)))
    call.give(Transpose(x=found, order=back))


@operator("STFT", "onesided", since=17)
def transform_of_frames(call: Call) -> None:
    """Frames of a signal, each as long as the window, and the spectrum of each."""
    x, shape = call.plain_operand(0), call.type(0).shape
    if len(shape) == 2:
        x, shape = call.reshape(x, (*shape, 1)), (*shape, 1)
    parts = _parts(shape)
    if len(shape) != 3 or not (call.has(2) or call.has(3)):
        raise GraphError(f"signals have shape {shape}, but must have 3 axes, and a window or a "
                         f"frame_length")
    length = _length(call, 3, "frame_length") if call.has(3) else call.type(2).shape[0]
    step = _length(call, 1, "frame_step")
    frames = (shape[1] - length) // step + 1
    if call.has(2) and call.type(2).shape != (length,):
        raise GraphError(f"the window has shape {call.type(2).shape}, but frames have {length}")
    if frames < 1 or frames * length > call.reader.budget:
        raise GraphError(f"a signal of {shape[1]} samples has {max(frames, 0)} frames of {length}, "
                         f"but must have a few")
    call.reader.budget -= frames * length
    places = np.arange(frames)[:, None] * step + np.arange(length)
    found = call.add(Gather(x=x, indices=call.constant(places), axis=1))
    if call.has(2):
        window = call.reshape(call.plain_operand(2), (length, 1))
        found = call.add(Binary(kind=BinaryKind.MUL, left=found, right=window))
    found = call.reshape(found, (shape[0], frames, length * parts))
    matrix = waves(call, length, length, parts=parts, dtype=call.type_of(x).dtype)
    spectra = call.add(MatMul(left=found, right=matrix))
    frequencies = call.type_of(spectra).shape[-1] // 2
    call.give_reshaped(spectra, (shape[0], frames, frequencies, 2))
