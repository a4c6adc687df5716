"""What a tensor is: its shape, the type of its numbers, and which real numbers they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, prod

import numpy as np

from ...base import arrays
from ...base.checked_values import integer, quote
from ...base.classes.dataclass import dataclass
from ..errors import CompileError

Array = arrays.Array
Shape = tuple[int, ...]
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
          "float32", "float64", "bool")
LARGEST = 1 << 31               # elements of a tensor: memory has its limits
MOST_AXES = 8


class GraphError(CompileError):
    """A graph that makes no sense, or a network that cannot be read into one."""


@dataclass(frozen=True)
class Quantization:
    """real = scale × (stored − zero point), with one pair for all, or one for each index of an
    axis."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...] = (0,)
    axis: int | None = None     # None: one scale and one zero point for the whole tensor

    def __post_init__(self) -> None:
        scales, zeros = tuple(map(float, self.scales)), tuple(map(int, self.zero_points))
        if len(zeros) == 1 < len(scales):
            zeros *= len(scales)
        object.__setattr__(self, "scales", scales)
        object.__setattr__(self, "zero_points", zeros)
        if not scales or not all(isfinite(scale) and scale > 0 for scale in scales):
            raise GraphError(f"scales are {quote(scales)}, but must be positive numbers")
        if len(zeros) != len(scales):
            raise GraphError(f"there are {len(scales)} scales and {len(zeros)} zero points, but "
                             f"each scale has one")
        if self.axis is None and len(scales) != 1:
            raise GraphError(f"there are {len(scales)} scales, but no axis that they belong to")

    @property
    def scale(self) -> float:
        """The scale of the whole tensor."""
        return self.scales[self._single()]

    @property
    def zero_point(self) -> int:
        """The zero point of the whole tensor."""
        return self.zero_points[self._single()]

    def _single(self) -> int:
        """The place of the only scale."""
        if len(self.scales) != 1:
            raise GraphError(f"there are {len(self.scales)} scales along axis {self.axis}, but "
                             f"this tensor must have a single one")
        return 0

    def along(self, values: Sequence[float], axes: int) -> Array:
        """Scales or zero points in a shape in which they meet the indices of their axis."""
        if self.axis is None:
            return np.asarray(values[0])
        return np.asarray(values).reshape([-1 if each == self.axis % axes else 1
                                           for each in range(axes)])

    def __str__(self) -> str:
        if len(self.scales) > 1:
            return f"{len(self.scales)} scales along {self.axis}"
        return f"{self.scales[0]:.6g} × (q − {self.zero_points[0]})" if self.zero_points[0] else (
            f"{self.scales[0]:.6g} × q")


@dataclass(frozen=True)
class TensorType:
    """What is known of a tensor before there are numbers in it."""

    shape: Shape
    dtype: str
    quantization: Quantization | None = None

    def __post_init__(self) -> None:
        shape = tuple(integer(extent) for extent in self.shape)
        if len(shape) > MOST_AXES or any(each is None or each < 0 for each in shape):
            raise GraphError(f"shape is {quote(self.shape)}, but must be at most {MOST_AXES} whole "
                             f"numbers that are not negative")
        object.__setattr__(self, "shape", shape)
        if self.dtype not in DTYPES:
            raise GraphError(f"type is {quote(self.dtype)}, but must be one of "
                             f"{', '.join(DTYPES)}")
        if self.size > LARGEST:
            raise GraphError(f"a tensor of {self.size} elements has more than {LARGEST}")
        self._check_quantization()

    def _check_quantization(self) -> None:
        quantization = self.quantization
        if quantization is None:
            return
        if not self.is_integer:
            raise GraphError(f"a tensor of {self.dtype} has scales, but only integers stand for "
                             f"other numbers")
        low, high = self.range
        for zero in quantization.zero_points:
            if not low <= zero <= high:
                raise GraphError(f"a zero point is {zero}, but {self.dtype} holds {low} to {high}")
        if quantization.axis is not None:
            if not -len(self.shape) <= quantization.axis < len(self.shape):
                raise GraphError(f"scales belong to axis {quantization.axis}, but there are "
                                 f"{len(self.shape)}")
            if len(quantization.scales) not in (1, self.shape[quantization.axis]):
                raise GraphError(f"there are {len(quantization.scales)} scales for axis "
                                 f"{quantization.axis}, which has "
                                 f"{self.shape[quantization.axis]} indices")

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def is_integer(self) -> bool:
        return "int" in self.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")

    @property
    def is_quantized(self) -> bool:
        """Whether its integers stand for other numbers."""
        return self.quantization is not None

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest integer that it holds."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def require_quantization(self) -> Quantization:
        """The quantization of a tensor that must have one."""
        if self.quantization is None:
            raise GraphError(f"a tensor of {self} has no scale, but one is needed")
        return self.quantization

    def plain(self) -> TensorType:
        """Without scales."""
        return replace(self, quantization=None)

    def __str__(self) -> str:
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return f"{text} {self.quantization}" if self.quantization else text
