"""Real constants as integers of 8 bits."""

from __future__ import annotations

import numpy as np

from ..graph.types import Array, Quantization


def integer_constant(array: Array, dtype: str, step: float) -> tuple[Array, Quantization] | None:
    """A constant as integers, with the scale that uses their range; None if that is above a step.

        [0.1, −0.3, 0.2]    as int8    [76, −128, 127], each 0.00196 × (q − 25)
    """
    if not array.size or not np.isfinite(array).all():
        return None
    info = np.iinfo(dtype)
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    scale = float(np.float32((high - low) / (info.max - info.min)))
    if scale == 0:                      # nothing but zeros, or next to it
        scale = step
    if not 0 < scale <= step:
        return None
    zero = int(np.clip(np.rint(info.min - low / scale), info.min, info.max))
    stored = np.clip(np.rint(array.astype(np.float64) / scale) + zero, info.min, info.max)
    return stored.astype(dtype), Quantization((scale,), (zero,))
