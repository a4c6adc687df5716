"""Operations that pick, repeat and rearrange numbers. Scales and zero points stay."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, broadcast, normalize_axis, operand
from ...types import Array, GraphError, TensorType
from .shape import _Moved, moved_type


def _check_indices(type_: TensorType) -> None:
    if type_.dtype not in ("int32", "int64") or type_.is_quantized:
        raise GraphError(f"the indices are {type_}, but must be int32 or int64")


def wrap_indices(indices: Array, size: int) -> Array:
    """Indices counted from the front, of an axis that must have them."""
    if indices.size and not (-size <= indices.min() and indices.max() < size):
        wrong = indices.min() if indices.min() < -size else indices.max()
        raise GraphError(f"an index is {wrong}, but the axis has {size}")
    return np.where(indices < 0, indices + size, indices)


@dataclass(frozen=True, kw_only=True)
class Gather(_Moved):
    """Slices along an axis, by index. The first `batch` axes of both operands are the same; each
    batch has its own indices."""

    x: str = operand()
    indices: str = operand()
    axis: int = 0
    batch: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        _check_indices(indices)
        axis = normalize_axis(self.axis, len(x.shape))
        if not 0 <= self.batch <= min(axis, len(indices.shape)) or (
                x.shape[:self.batch] != indices.shape[:self.batch]):
            raise GraphError(f"{self.batch} axes of {x.shape} and of indices {indices.shape} must "
                             f"be the same, before axis {axis}")
        return moved_type(x, (*x.shape[:axis], *indices.shape[self.batch:], *x.shape[axis + 1:]))

    def compute(self, result: TensorType, x: Value, indices: Value) -> Array:
        axis = self.axis % x.array.ndim
        places = wrap_indices(indices.array, x.array.shape[axis])
        if not self.batch:
            return np.take(x.array, places, axis=axis)
        found = np.empty(result.shape, x.array.dtype)
        for each in np.ndindex(*x.array.shape[:self.batch]):
            found[each] = np.take(x.array[each], places[each], axis=axis - self.batch)
        return found


@dataclass(frozen=True, kw_only=True)
class GatherNd(_Moved):
    """Numbers or slices at places that the last axis of the indices names."""

    x: str = operand()
    indices: str = operand()
    batch: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        _check_indices(indices)
        depth = indices.shape[-1] if indices.shape else 0
        if not (0 <= self.batch < len(indices.shape) and depth > 0
                and self.batch + depth <= len(x.shape)
                and x.shape[:self.batch] == indices.shape[:self.batch]):
            raise GraphError(f"indices of shape {indices.shape} after {self.batch} common axes "
                             f"name no places in {x.shape}")
        return moved_type(x, (*indices.shape[:-1], *x.shape[self.batch + depth:]))

    def compute(self, result: TensorType, x: Value, indices: Value) -> Array:
        common = np.indices(indices.array.shape[:-1])[:self.batch]
        places = [wrap_indices(indices.array[..., each], x.array.shape[self.batch + each])
                  for each in range(indices.array.shape[-1])]
        return np.asarray(x.array[(*common, *places)])


@dataclass(frozen=True, kw_only=True)
class GatherElements(_Moved):
    """For each index a number from the same place, but along one axis from where the index says."""

    x: str = operand()
    indices: str = operand()
    axis: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        _check_indices(indices)
        axis = normalize_axis(self.axis, len(x.shape))
        if len(indices.shape) != len(x.shape) or any(
                some > size for each, (some, size)
                in enumerate(zip(indices.shape, x.shape, strict=True)) if each != axis):
            raise GraphError(f"indices of shape {indices.shape} do not fit into {x.shape} but for "
                             f"axis {axis}")
        return moved_type(x, indices.shape)

    def compute(self, result: TensorType, x: Value, indices: Value) -> Array:
        axis = self.axis % x.array.ndim
        places = wrap_indices(indices.array, x.array.shape[axis])
        part = tuple(slice(None) if each == axis else slice(size)
                     for each, size in enumerate(places.shape))
        return np.take_along_axis(x.array[part], places, axis)


@dataclass(frozen=True, kw_only=True)
class Tile(_Moved):
    """A tensor several times along each axis."""

    x: str = operand()
    repeats: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        if len(self.repeats) != len(x.shape) or min(self.repeats, default=0) < 0:
            raise GraphError(f"repeats are {self.repeats}, but must be a number that is not "
                             f"negative for each of {len(x.shape)} axes")
        return moved_type(x, tuple(size * each for size, each in zip(x.shape, self.repeats,
                                                                     strict=True)))

    def compute(self, result: TensorType, x: Value) -> Array:
        return np.tile(x.array, self.repeats)


@dataclass(frozen=True, kw_only=True)
class Expand(_Moved):
    """A tensor repeated to meet a shape."""

    x: str = operand()
    shape: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        return moved_type(x, broadcast(x.shape, self.shape))

    def compute(self, result: TensorType, x: Value) -> Array:
        return np.broadcast_to(x.array, result.shape)


@dataclass(frozen=True, kw_only=True)
class OneHot(Operation):
    """A new axis with one value at the place that an index names, and another everywhere else.
    Indices that name no place give the other everywhere; negative ones count from the end if
    `wrap`. Results are of any type."""

    indices: str = operand()
    depth: int
    axis: int = -1
    on: float = 1
    off: float = 0
    wrap: bool = False

    def infer(self, indices: TensorType) -> TensorType:
        _check_indices(indices)
        axis = normalize_axis(self.axis, len(indices.shape) + 1)
        if self.depth < 0:
            raise GraphError(f"depth is {self.depth}, but must not be negative")
        return TensorType((*indices.shape[:axis], self.depth, *indices.shape[axis:]), "float32")

    def check(self, result: TensorType, *types: TensorType) -> None:
        if result.shape != self.infer(*types).shape:
            raise GraphError(f"the result has shape {result.shape}, but must have "
                             f"{self.infer(*types).shape}")

    def compute(self, result: TensorType, indices: Value) -> Array:
        places = indices.array
        if self.wrap:
            places = np.where(places < 0, places + self.depth, places)
        axis = self.axis % len(result.shape)
        here = np.arange(self.depth).reshape([-1 if each == axis else 1
                                              for each in range(len(result.shape))])
        return np.where(np.expand_dims(places, axis) == here, self.on, self.off)
