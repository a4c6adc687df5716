"""What convolutions and pooling have in common: a window that slides over images."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CompileError
from .epilogue import Epilogue


@dataclass(frozen=True, kw_only=True)
class Windowed(Epilogue):
    """The part of an operator's description that says where its window lies. `pad` is top, bottom,
    left, right."""

    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    images: int = 1
    zero_point_in: int = 0

    def check(self, operator: str, *counts: str) -> None:
        """Refuse what has no output. `counts` are fields that count something."""
        for name in ("height", "width", *counts, "images"):
            if getattr(self, name) < 1:
                raise CompileError(f"{operator}: {name} is {getattr(self, name)}, but must be at "
                                   f"least 1")
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or min(self.pad) < 0:
            raise CompileError(f"{operator}: kernel, stride and dilation must be at least 1, pad "
                               f"at least 0")
        if min(self.out_height, self.out_width) < 1:
            raise CompileError(f"{operator}: the kernel reaches over {self.reach(0)} × "
                               f"{self.reach(1)}, more than the padded input")

    def reach(self, axis: int) -> int:
        """Rows (0) or columns (1) from the first to the last that a window touches."""
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

    @property
    def out_shape(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        return self.out_height, self.out_width
