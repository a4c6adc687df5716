"""What is known while a schedule is lowered, and who makes something of marked loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol

from ...base.classes.dataclass import dataclass
from ..expression.expression import Axis, Constant, Element, Expression
from ..expression.tensor import Tensor
from ..nest.nest import Buffer, Marked, Slide, Statement
from ..nest.perfect_loops import PerfectLoops
from .located import Located
from .regions import Part
from .stage import Stage
from .stage_loops import Frame

Locate = Callable[[Element], Located | None]


class Converter(Protocol):
    """Makes something of marked loops."""

    def convert(self, marked: Marked) -> Statement: ...

    def convert_perfect(self, intrinsic: str, loops: PerfectLoops, *,
                        starts: bool) -> Statement | None:
        """The same for loops around one assignment, which are not built; None if there is
        something wrong with them, and `convert` says what."""

    def convert_stage(self, intrinsic: str, body: Expression, loops: Sequence[Axis],
                      target: Located, locate: Locate) -> Statement | None:
        """The same for loops that compute a body; None if that takes a closer look."""

    def convert_start(self, intrinsic: str, value: Constant, loops: Sequence[Axis],
                      target: Located) -> Statement | None:
        """The same for loops that give sums what they start from."""


@dataclass
class Lowering:
    """What is known while a schedule is lowered."""

    converter: Converter | None = None              # what stands in the place of marked loops
    buffers: dict[Tensor, Buffer] = field(default_factory=dict)
    parts: dict[Tensor, Part] = field(default_factory=dict)     # that buffers hold
    slides: dict[Tensor, Slide] = field(default_factory=dict)
    stages: dict[Tensor, Stage] = field(default_factory=dict)
    bodies: dict[Tensor, Expression] = field(default_factory=dict)
    read: dict[Tensor, set[Tensor]] = field(default_factory=dict)       # by each of these bodies
    frames: dict[Tensor, Frame] = field(default_factory=dict)   # that nobody has taken yet
    inside: dict[tuple[Stage, Axis], list[Stage]] = field(default_factory=dict)
    above: dict[Tensor, Stage] = field(default_factory=dict)    # computed in place of a tensor
