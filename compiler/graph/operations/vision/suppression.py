"""Non-max suppression: the best of boxes that overlap."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, operand
from ...types import Array, GraphError, TensorType

MOST_BOXES = 1 << 16        # in a list: each that is kept is compared with all others


@dataclass(frozen=True, kw_only=True)
class NonMaxSuppression(Operation):
    """Of boxes (batch, box, 4) with scores (batch, class, box), for each class the best ones that
    do not overlap a better one of the class by more than a share, `overlap`; at most `count` for
    each class, with scores above `least`. Of equal scores, the first box is better.

    How many there are depends on the numbers, so there is room for as many as there may be: the
    result is (row, 3), int64, with batch, class and box in each row, and rows of −1 after the last.
    Boxes are two corners (y, x, y, x), or (x, y, width, height) around a centre if `centred`.
    """

    boxes: str = operand()
    scores: str = operand()
    count: int
    overlap: float = 0
    least: float | None = None          # None: any score
    centred: bool = False

    def infer(self, boxes: TensorType, scores: TensorType) -> TensorType:
        if len(boxes.shape) != 3 or len(scores.shape) != 3 or boxes.shape[2] != 4 or (
                boxes.shape[:2] != scores.shape[::2]) or not (boxes.is_float and scores.is_float):
            raise GraphError(f"boxes are {boxes} and scores {scores}, but must be real numbers of "
                             f"shapes (batch, box, 4) and (batch, class, box)")
        batch, classes, number = scores.shape
        if number > MOST_BOXES or self.count < 0:
            raise GraphError(f"{self.count} of {number} boxes are wanted, but they must not be "
                             f"negative nor more than {MOST_BOXES}")
        return TensorType((batch * classes * min(self.count, number), 3), "int64")

    def compute(self, result: TensorType, boxes: Value, scores: Value) -> Array:
        found = np.full(result.shape, -1, np.int64)
        row = 0
        if not result.size:
            return found
        for image, label in np.ndindex(*scores.array.shape[:2]):
            for box in self.select_boxes(corners(boxes.array[image], self.centred),
                                         scores.array[image, label]):
                found[row] = image, label, box
                row += 1
        return found

    def select_boxes(self, boxes: Array, scores: Array) -> list[int]:
        """The boxes of one class that are kept, best first."""
        order = np.argsort(-scores, kind="stable")
        if self.least is not None:
            order = order[scores[order] > self.least]
        kept: list[int] = []
        while order.size and len(kept) < self.count:
            first, order = order[0], order[1:]
            kept.append(int(first))
            order = order[~(intersection_over_union(boxes[first], boxes[order]) > self.overlap)]
        return kept


def corners(boxes: Array, centred: bool) -> Array:
    """Boxes (box, 4) as their least and their largest corner."""
    values = boxes.astype(np.float64)
    if centred:
        half = values[:, 2:] / 2
        values = np.concatenate([values[:, :2] - half, values[:, :2] + half], axis=1)
    low, high = np.minimum(values[:, :2], values[:, 2:]), np.maximum(values[:, :2], values[:, 2:])
    return np.concatenate([low, high], axis=1)


def intersection_over_union(box: Array, boxes: Array) -> Array:
    """What share of the area of two boxes together both have; nothing, if either is empty."""
    sides = np.maximum(np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2]), 0)
    both = sides.prod(axis=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    area = (box[2:] - box[:2]).prod()
    either = areas + area - both
    found: Array = np.where((areas > 0) & (area > 0) & (either > 0), both / either, 0)
    return found
