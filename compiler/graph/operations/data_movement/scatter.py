"""Numbers written to places that indices name, one after the other. Scales and zero points stay.

Later numbers are written over earlier ones, or joined with what is there: added, multiplied, or the
larger or the less of the two. Numbers are written in the order of the updates, last axis fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Value, normalize_axis, operand
from ...types import Array, GraphError, TensorType
from .indexing import _check_indices, wrap_indices
from .shape import _Moved


class ScatterKind(Enum):
    """What becomes of the number that is there."""

    REPLACE = "replace"
    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"


JOINED: dict[ScatterKind, np.ufunc] = {
    ScatterKind.ADD: np.add, ScatterKind.MUL: np.multiply, ScatterKind.MIN: np.minimum,
    ScatterKind.MAX: np.maximum}


@dataclass(frozen=True, kw_only=True)
class _Scatter(_Moved):
    x: str = operand()
    indices: str = operand()
    updates: str = operand()
    kind: ScatterKind = ScatterKind.REPLACE

    def check_updates(self, x: TensorType, indices: TensorType, updates: TensorType) -> None:
        _check_indices(indices)
        if (updates.dtype, updates.quantization) != (x.dtype, x.quantization):
            raise GraphError(f"updates are {updates}, but must be of the type of {x}")
        if self.kind in (ScatterKind.ADD, ScatterKind.MUL) and (
                x.is_quantized or x.dtype == "bool"):
            raise GraphError(f"the input is {x}, but only plain numbers are added and multiplied")

    def write(self, target: Array, places: tuple[Array, ...], updates: Array) -> None:
        """Write to places of an array, in order."""
        if self.kind == ScatterKind.REPLACE:
            target[places] = updates                # NumPy: the last one stays
        else:
            joined: Callable[..., None] = JOINED[self.kind].at
            joined(target, places, updates)


@dataclass(frozen=True, kw_only=True)
class ScatterElements(_Scatter):
    """Each number of the updates goes to its own place, but along one axis to where an index
    says."""

    axis: int = 0

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        self.check_updates(x, indices, updates)
        axis = normalize_axis(self.axis, len(x.shape))
        if indices.shape != updates.shape or len(indices.shape) != len(x.shape) or any(
                some > size for each, (some, size)
                in enumerate(zip(indices.shape, x.shape, strict=True)) if each != axis):
            raise GraphError(f"indices of shape {indices.shape} and updates of {updates.shape} "
                             f"must be the same, and fit into {x.shape} but for axis {axis}")
        return x

    def compute(self, result: TensorType, x: Value, indices: Value, updates: Value) -> Array:
        axis = self.axis % x.array.ndim
        along = wrap_indices(indices.array, x.array.shape[axis])
        places = tuple(along if each == axis else np.asarray(place)
                       for each, place in enumerate(np.indices(indices.array.shape)))
        found = x.array.copy()
        self.write(found, places, updates.array)
        return found


@dataclass(frozen=True, kw_only=True)
class ScatterNd(_Scatter):
    """Numbers or slices go to places that the last axis of the indices names."""

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        self.check_updates(x, indices, updates)
        depth = indices.shape[-1] if indices.shape else 0
        if not 0 < depth <= len(x.shape) or (
                updates.shape != (*indices.shape[:-1], *x.shape[depth:])):
            raise GraphError(f"indices of shape {indices.shape} and updates of {updates.shape} "
                             f"name no places in {x.shape}")
        return x

    def compute(self, result: TensorType, x: Value, indices: Value, updates: Value) -> Array:
        places = tuple(wrap_indices(indices.array[..., each], x.array.shape[each])
                       for each in range(indices.array.shape[-1]))
        found = x.array.copy()
        self.write(found, places, updates.array)
        return found
