"""Where the pixels of a convolution's windows are."""

from __future__ import annotations

from ....base.classes.dataclass import dataclass
from ...expression.expression import Expression


@dataclass(frozen=True)
class Window:
    """Where the pixels of a window are, and in which axis channels lie."""

    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    channel_axis: int
    turned: bool = False        # the last tap meets the first pixel

    def pixel(self, row: Expression, column: Expression, a: Expression,
              b: Expression) -> tuple[Expression, Expression]:
        """The pixel that a tap of a window meets."""
        return (row * self.stride[0] + a * self.dilation[0],
                column * self.stride[1] + b * self.dilation[1])

    @property
    def axes(self) -> tuple[int, int, int, int]:
        """Where images, rows, columns and channels are."""
        return (0, 2, 3, 1) if self.channel_axis == 1 else (0, 1, 2, 3)
