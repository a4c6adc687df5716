"""What convolutions and pooling have in common: a window that slides over images."""

from __future__ import annotations

from ...base.classes.dataclass import dataclass
from ..errors import CompileError
from .cost_model import Column
from .description import Epilogue, activation, border, extent


@dataclass(frozen=True, kw_only=True)
class Windowed(Epilogue):
    """The part of a description that says how large the window is and how it moves."""

    height: int = extent("rows of the input")
    width: int = extent("columns of the input")
    kernel: tuple[int, int] = extent("rows and columns of the kernel")
    stride: tuple[int, int] = extent("rows and columns from one window to the next", (1, 1))
    dilation: tuple[int, int] = extent("rows and columns from one tap to the next", (1, 1))
    pad: tuple[int, int, int, int] = border(
        "rows and columns around the input: top, bottom, left, right", (0, 0, 0, 0))
    images: int = extent("images at once", 1)
    zero_point_in: int = activation("zero point of the input, which is also what is padded")

    def check(self) -> None:
        super().check()
        if min(self.out_height, self.out_width) < 1:
            raise CompileError(f"{self.operator}: the kernel reaches over {self.reach(0)} × "
                               f"{self.reach(1)}, more than the padded input, which is "
                               f"{self.padded[0]} × {self.padded[1]}")

    def reach(self, axis: int) -> int:
        """How many rows (axis 0) or columns (axis 1) a window spans, dilation included."""
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    @property
    def padded(self) -> tuple[int, int]:
        top, bottom, left, right = self.pad
        return self.height + top + bottom, self.width + left + right

    @property
    def out_height(self) -> int:
        return (self.padded[0] - self.reach(0)) // self.stride[0] + 1

    @property
    def out_width(self) -> int:
        return (self.padded[1] - self.reach(1)) // self.stride[1] + 1

    def border(self, axis: int) -> int:
        """Rows or columns that windows see around the input."""
        before, size = self.pad[2 * axis], (self.height, self.width)[axis]
        seen = (self.out_shape[axis] - 1) * self.stride[axis] + self.reach(axis)
        return max(0, before) + max(0, seen - before - size)

    def loaded(self, axis: int, parts: Column, *, reach: Column | None = None,
               stride: int | None = None) -> Column:
        """Rows or columns of the input that one of so many equal parts of the output loads, in the
        mean: the border is filled in. Parts of a kernel reach less far, and columns that no window
        sees may be left out."""
        stride = self.stride[axis] if stride is None else stride
        reach = self.reach(axis) if reach is None else reach
        own = self.out_shape[axis] * stride - self.border(axis) * reach / self.reach(axis)
        return own / parts + reach - stride

    @property
    def out_shape(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        return self.out_height, self.out_width
