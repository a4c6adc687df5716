"""The content of a segment as assembly text gives it, piece by piece and always forward."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...base.checked_values import show_name
from ...base.classes.dataclass import dataclass
from ...base.errors import AssemblyError
from ..instructions import MicroOp
from ..program import Segment
from ..stream import encode_micro_ops

GENERATED_LIMIT = 1 << 26       # bytes that a text may describe without writing each of them


@dataclass
class Generated:
    """Counts the bytes of gaps and repetitions, in all segments of a text: a short text must not
    become a large program."""

    count: int = 0

    def add(self, count: int, segment: Segment) -> None:
        self.count += count
        if self.count > GENERATED_LIMIT:
            raise AssemblyError(f"gaps and repetitions up to here, in segment "
                                f"{show_name(segment.name)}, make {self.count:,} bytes of data, "
                                f"but a text may make at most {GENERATED_LIMIT:,}")


class SegmentText:
    """Pieces of a segment in ascending order; what lies between them is zero.

    Pieces become one array at the end, so that a long run of zeros costs nothing until then.
    """

    def __init__(self, segment: Segment, generated: Generated) -> None:
        self.segment, self.generated = segment, generated
        self.end = 0
        self.pieces: list[tuple[int, bytes, int]] = []      # offset, pattern, repetitions
        self.micro_ops: list[MicroOp] = []
        self.places: list[int] = []                         # the offset of each micro-op

    def move(self, offset: int) -> None:
        if offset < self.end:
            raise AssemblyError(f"offset {offset:#x} of segment {show_name(self.segment.name)} is "
                                f"taken: its data goes on at {self.end:#x}")
        self._check(offset)
        self.generated.add(offset - self.end, self.segment)
        self.end = offset

    def add(self, pattern: bytes, count: int = 1) -> None:
        if count < 1:
            raise AssemblyError(f"{count} repetitions are not possible; write 1 or more")
        self._check(self.end + len(pattern) * count)
        self.generated.add(len(pattern) * (count - 1), self.segment)
        self.pieces.append((self.end, pattern, count))
        self.end += len(pattern) * count

    def add_micro_op(self, micro_op: MicroOp) -> None:
        self._check(self.end + MicroOp.size)
        self.micro_ops.append(micro_op)
        self.places.append(self.end)
        self.end += MicroOp.size

    def _check(self, end: int) -> None:
        if end > self.segment.size:
            raise AssemblyError(f"the data of segment {show_name(self.segment.name)} reaches byte "
                                f"{end}, but its size is {self.segment.size}")

    def data(self) -> npt.NDArray[np.uint8]:
        data = np.zeros(self.end, np.uint8)
        for offset, pattern, count in self.pieces:
            if any(pattern):
                rows = data[offset:offset + len(pattern) * count].reshape(count, len(pattern))
                rows[:] = np.frombuffer(pattern, np.uint8)
        words = encode_micro_ops(self.micro_ops).view(np.uint8)
        starts = np.array(self.places, np.intp)
        data[starts[:, None] + np.arange(MicroOp.size)] = words.reshape(-1, MicroOp.size)
        return data
