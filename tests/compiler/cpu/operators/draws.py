"""Random shapes, numbers and types of tensors, leaning on corners."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from microtron.compiler.graph.operation import Value
from microtron.compiler.graph.types import Quantization, TensorType

from ....emulated import CHOICE

Array = np.ndarray[Any, Any]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
ALL = (*INTEGERS, *FLOATS, "bool")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1e-7, 5.0)
LONG = (7, 8, 15, 17, 31, 33, 64, 65, 100)

seeds = st.integers(0, 1 << 16)


def shapes(least: int = 0, most: int = 4, smallest: int = 0, largest: int = 5) -> Any:
    """Few numbers; of machine code also many along one axis: whole vectors, and what is left."""
    few = st.lists(st.integers(smallest, largest), min_size=least, max_size=most).map(tuple)
    return few | st.builds(_lengthen, few, st.sampled_from(LONG), seeds) if CHOICE else few


def _lengthen(shape: tuple[int, ...], size: int, seed: int) -> tuple[int, ...]:
    long = seed % max(1, len(shape))
    return tuple(size if axis == long else min(each, 2) for axis, each in enumerate(shape))


def numbers(shape: tuple[int, ...], dtype: str, seed: int, *, special: bool = True,
            scale: float = 3) -> Array:
    """Random numbers. Some of them are at the ends of their type, or special."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        few = rng.integers(-4, 5, shape).clip(low, high).astype(dtype)
        wide = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
        ends = rng.choice(np.array([low, high, 0, 1], dtype), shape)
        return np.select([rng.random(shape) < 0.4, rng.random(shape) < 0.8], [few, wide], ends)
    values = rng.normal(size=shape) * scale
    if special:
        values = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), values)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype)


def value(shape: tuple[int, ...], dtype: str, seed: int, **settings: Any) -> Value:
    return Value(TensorType(shape, dtype), numbers(shape, dtype, seed, **settings))


def quantized(shape: tuple[int, ...], dtype: str, seed: int, scale: float | None = None,
              zero: int | None = None) -> Value:
    """Integers with a scale and a zero point."""
    rng = np.random.default_rng(seed + 1)
    info = np.iinfo(dtype)
    zero = int(rng.integers(max(info.min, -128), min(info.max, 255), endpoint=True)) if (
        zero is None) else zero
    scale = float(np.exp(rng.uniform(-5, 1))) if scale is None else scale
    return Value(TensorType(shape, dtype, Quantization((scale,), (zero,))),
                 numbers(shape, dtype, seed))


def repeated(shape: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """A shape that is repeated to meet another: some axes are 1, some at the front are left out."""
    rng = np.random.default_rng(seed)
    kept = [1 if rng.random() < 0.3 else size for size in shape]
    return tuple(kept[rng.integers(0, len(kept) + 1):] if rng.random() < 0.5 else kept)
