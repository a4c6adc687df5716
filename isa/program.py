"""A program: instructions, the segments of DRAM they use, and names for people and runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from .config import Config
from .errors import IsaError
from .instructions import ISA, SEGMENTS
from .stream import Stream

SEGMENT_BYTES_LIMIT = 1 << 32       # offsets have 32 bits
TENSOR_TYPES = ("int8", "uint8", "int16", "int32")


class Access(Enum):
    """What the accelerator may do with a segment. The host may always read and write it."""

    READ = "read"
    WRITE = "write"         # read and write


@dataclass(frozen=True, eq=False)
class Segment:
    """A window into DRAM, bounds-checked by the hardware. `data` is its content at the start."""

    name: str
    size: int
    access: Access = Access.READ
    data: npt.NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise IsaError(f"segment name {self.name!r} is not a plain word")
        if not 0 < self.size <= SEGMENT_BYTES_LIMIT:
            raise IsaError(f"segment {self.name}: size is {self.size}, but must be from 1 to "
                           f"{SEGMENT_BYTES_LIMIT} bytes")
        if self.data is not None and len(self.data) > self.size:
            raise IsaError(f"segment {self.name}: holds {len(self.data)} bytes of data, but its "
                           f"size is {self.size}")


@dataclass(frozen=True)
class Tensor:
    """A named array inside a segment: how a runtime finds inputs and outputs."""

    name: str
    segment: str
    offset: int
    shape: tuple[int, ...]
    dtype: str = "int8"

    @property
    def size(self) -> int:
        """Bytes."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class Program:
    """Everything a device needs to run, and nothing about any one device."""

    config: Config
    code: Stream
    segments: tuple[Segment, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)     # name → instruction
    provenance: Mapping[str, str] = field(default_factory=dict) # where it came from, in words

    def __post_init__(self) -> None:
        if len(self.segments) > SEGMENTS:
            raise IsaError(f"{len(self.segments)} segments, but there are only {SEGMENTS}")
        names = [segment.name for segment in self.segments]
        for name in names:
            if names.count(name) > 1:
                raise IsaError(f"segment {name} is declared twice")
        known = set()
        for tensor in self.tensors:
            self._check_tensor(tensor)
            if tensor.name in known:
                raise IsaError(f"tensor {tensor.name} is declared twice")
            known.add(tensor.name)
        for label, position in self.labels.items():
            if not 0 <= position <= len(self.code):
                raise IsaError(f"label {label} is at instruction {position}, but the program has "
                               f"{len(self.code)}")

    def _check_tensor(self, tensor: Tensor) -> None:
        segment = self.segment(tensor.segment)
        if tensor.dtype not in TENSOR_TYPES:
            raise IsaError(f"tensor {tensor.name}: type is {tensor.dtype!r}, but must be one of "
                           f"{', '.join(TENSOR_TYPES)}")
        if tensor.offset < 0 or any(extent < 0 for extent in tensor.shape):
            raise IsaError(f"tensor {tensor.name}: offset and shape must not be negative")
        if tensor.offset + tensor.size > segment.size:
            raise IsaError(f"tensor {tensor.name} ends at byte {tensor.offset + tensor.size}, but "
                           f"segment {segment.name} has {segment.size}")

    def segment(self, name: str) -> Segment:
        for segment in self.segments:
            if segment.name == name:
                return segment
        raise IsaError(f"there is no segment {name!r}; the program has "
                       f"{', '.join(each.name for each in self.segments) or 'none'}")

    def tensor(self, name: str) -> Tensor:
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise IsaError(f"there is no tensor {name!r}; the program has "
                       f"{', '.join(each.name for each in self.tensors) or 'none'}")


def engines_of(program: Program) -> npt.NDArray[np.int64]:
    """The engine of each instruction, -1 for those that FETCH executes."""
    table = np.full(256, -1, np.int64)
    for kind in ISA:
        table[kind.opcode] = -1 if kind.engine is None else kind.engine
    engines: npt.NDArray[np.int64] = table[program.code["opcode"]]
    return engines
