"""Models of one operator whose shapes, types, scales, constants and settings do not fit each other.

Bytes that are changed at random seldom reach an operator; these always do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .tflite_files import TYPES, Single, Tensor

SIZES = (0, 1, 2, 3, 5, 8)
INTEGERS = (-1, 0, 1, 2, 3, 5, 127, 128, 256, 65536, -2, -128, 2**31 - 1, -2**31)
SCALES = (None, 0.1, 1 / 256, 1e-38, 1e38, 0.0, [0.1, 0.2], [0.1, 0.2, 0.3])


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def wild_model(rng, model):
    """A model with a few things altered."""
    options = {name: wild_option(rng, value) for name, value in model.options.items()}
    inputs = [wild_tensor(rng, each) for each in model.inputs]
    if rng.random() < 0.05:
        inputs.append(Tensor((2,)))
    return Single(model.name, inputs, [wild_tensor(rng, each) for each in model.outputs],
                  model.kind, **options)


def wild_option(rng, value):
    if isinstance(value, bool) or not isinstance(value, int) or rng.random() < 0.85:
        return value
    # Settings that are of a byte come first in value, too.
    return pick(rng, INTEGERS if value > 5 else (-1, 0, 1, 2, 3, 4, 5, 100))


def wild_tensor(rng, tensor):
    if tensor is None:
        return None
    changes = (with_size, with_rank, with_type, with_scale, with_zero, with_number)
    for _ in range(pick(rng, (0, 0, 1, 1, 2))):
        tensor = pick(rng, changes)(rng, tensor)
    return tensor


def shaped(tensor, shape):
    """The tensor in another shape, with its numbers repeated or left out."""
    data = None if tensor.data is None else np.resize(tensor.data, shape)
    return replace(tensor, shape=tuple(shape), data=data)


def with_size(rng, tensor):
    shape = list(tensor.shape)
    if shape:
        shape[int(rng.integers(len(shape)))] = pick(rng, SIZES)
    return shaped(tensor, shape)


def with_rank(rng, tensor):
    shape = list(tensor.shape)
    return shaped(tensor, shape[1:] if rng.random() < 0.5 else [*shape, pick(rng, SIZES)])


def with_type(rng, tensor):
    dtype = pick(rng, [each for each in TYPES if each not in ("string", "int4", "resource")])
    with np.errstate(all="ignore"):
        data = None if tensor.data is None else np.asarray(tensor.data).astype(dtype)
    return replace(tensor, dtype=dtype, data=data)


def with_scale(rng, tensor):
    return replace(tensor, scale=pick(rng, SCALES), axis=int(rng.integers(-1, 5)))


def with_zero(rng, tensor):
    return replace(tensor, zero=pick(rng, INTEGERS))


def with_number(rng, tensor):
    """Another number in a constant that has whole numbers, or no constant any more."""
    if tensor.data is None or tensor.dtype not in ("int32", "int64"):
        return tensor
    if rng.random() < 0.1:
        return replace(tensor, data=None)
    data = np.array(tensor.data)
    if data.size:
        data.reshape(-1)[int(rng.integers(data.size))] = pick(rng, INTEGERS)
    return replace(tensor, data=data)
