"""What users say about the inputs of a model file: shapes of those that it leaves open, and values
that take the place of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import prod

import numpy as np

from ...base.checked_values import integer, list_names, near_misses, quote, show_name
from ...base.classes.dataclass import dataclass
from ..graph.types import Array, GraphError, Shape

MOST_VALUES = 4096              # numbers of an input that is fixed
Sizes = Sequence[int | None]    # a shape in which None is open


@dataclass(frozen=True)
class GivenInputs:
    """Shapes and values by the names of inputs."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)  # numbers, lists or arrays

    def check_names(self, inputs: Iterable[str]) -> None:
        """Refuse what is said about inputs that there are not."""
        known = list(inputs)
        for name in (*self.shapes, *self.values):
            if name not in known:
                raise GraphError(f"there is no input {show_name(name)}{near_misses(name, known)}; "
                                 f"inputs are {list_names([show_name(each) for each in known])}")


def check_shape(name: str, shape: Shape, declared: Sizes) -> None:
    """Refuse a shape that differs from what the file fixes."""
    if len(shape) != len(declared):
        raise GraphError(f"the shape {quote(tuple(shape))} for {show_name(name)} has {len(shape)} "
                         f"axes, but must have {len(declared)}")
    for given, size in zip(shape, declared, strict=True):
        extent = integer(given)
        if extent is None or extent < 0 or size not in (None, extent):
            raise GraphError(f"the shape {quote(tuple(shape))} for {show_name(name)} does not fit "
                             f"{sizes_text(declared)}")


def sizes_text(sizes: Sizes) -> str:
    """A shape for a message; what is open is a question mark."""
    return ",".join("?" if size is None else str(size) for size in sizes) or "a single number"


def value_array(name: str, value: object, declared: Sizes | None, dtype: str) -> Array:
    """The constant that takes an input's place. One number, or a flat list, takes the shape that
    the file declares; None declares nothing."""
    array = number_array(name, value)
    return _as_type(name, array, dtype).reshape(_shape_for(name, array, declared))


def number_array(name: str, value: object) -> Array:
    """A value as a small array of numbers."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):             # lists of several lengths
        array = np.empty(0)
    if array.dtype.kind not in "biuf" or not 0 < array.size <= MOST_VALUES:
        raise GraphError(f"the value of {show_name(name)} is {quote(value)}, but must be a number "
                         f"or a list of at most {MOST_VALUES}")
    return array


def _as_type(name: str, array: Array, dtype: str) -> Array:
    """The same numbers in an input's type, if it holds them."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        fits = array.dtype.kind in "iuf"
    elif kind == "b":
        fits = array.dtype.kind == "b" or (array.dtype.kind in "iu" and bool(
            np.isin(array, (0, 1)).all()))
    else:
        bounds = np.iinfo(dtype)
        fits = array.dtype.kind in "iu" and int(array.min()) >= bounds.min and (
            int(array.max()) <= bounds.max)
    with np.errstate(over="ignore"):
        found = array.astype(dtype) if fits else array
    if not fits or not np.isfinite(found).all():
        raise GraphError(f"the value of {show_name(name)} is {quote(array.ravel().tolist()[:4])}, "
                         f"but the input is {dtype}")
    return found


def _shape_for(name: str, array: Array, declared: Sizes | None) -> Shape:
    """The shape of a value in its input's place. One open size follows from the others."""
    if declared is None:
        return array.shape
    if array.ndim == len(declared) and all(
            size in (None, extent) for size, extent in zip(declared, array.shape, strict=True)):
        return array.shape
    rest = prod(size for size in declared if size is not None)
    opened = list(declared).count(None)
    sizes = [(array.size // max(rest, 1) if opened == 1 else 1) if size is None else size
             for size in declared]
    if array.ndim > 1 or prod(sizes) != array.size:
        raise GraphError(f"the value of {show_name(name)} has {array.size} numbers in shape "
                         f"{array.shape}, but the input has the shape {sizes_text(declared)}")
    return tuple(sizes)
