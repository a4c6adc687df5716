"""A program: instructions, the segments of DRAM they use, and names for people and runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

import numpy as np
import numpy.typing as npt

from ..base.argument_checks import check_type
from ..base.checked_values import integer, list_names, quote, show_name
from ..base.classes.dataclass import dataclass
from ..base.errors import IsaError
from .config import Config
from .instructions import ISA, POSITION_BITS, SEGMENTS
from .registers import REGISTER_BYTES
from .stream import Stream

SEGMENT_BYTES_LIMIT = (1 << 8 * REGISTER_BYTES) - 1     # a control register holds a size
DATA_BYTES_LIMIT = 1 << 30      # of all segments, so that an image can be held in memory
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
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise IsaError(f"segment name {quote(self.name)} is not a plain word")
        place, size = f"segment {show_name(self.name)}", integer(self.size)
        if size is None or not 0 < size <= SEGMENT_BYTES_LIMIT:
            raise IsaError(f"{place}: size is {quote(self.size)}, but must be from 1 "
                           f"to {SEGMENT_BYTES_LIMIT} bytes")
        object.__setattr__(self, "size", size)
        if not isinstance(self.access, Access):
            raise IsaError(f"{place}: access is {quote(self.access)}, but must be "
                           f"{' or '.join(str(each) for each in Access)}")
        if self.data is not None and len(self.data) > size:
            raise IsaError(f"{place}: holds {len(self.data)} bytes of data, but its "
                           f"size is {size}")


@dataclass(frozen=True)
class Tensor:
    """A named array inside a segment: how a runtime finds inputs and outputs."""

    name: str
    segment: str
    offset: int
    shape: tuple[int, ...]
    dtype: str = "int8"

    def __post_init__(self) -> None:
        if self.dtype not in TENSOR_TYPES:
            raise IsaError(f"tensor {show_name(self.name)}: type is {quote(self.dtype)}, but must "
                           f"be one of {', '.join(TENSOR_TYPES)}")
        shape = tuple(integer(extent) for extent in self.shape)
        numbers = [("offset", integer(self.offset)), *(("shape", extent) for extent in shape)]
        for name, number in numbers:
            if number is None or number < 0:
                raise IsaError(f"tensor {show_name(self.name)}: {name} is "
                               f"{quote(getattr(self, name))}, but must hold integers that are "
                               f"not negative")
        object.__setattr__(self, "offset", integer(self.offset))
        object.__setattr__(self, "shape", shape)

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
        if not isinstance(self.config, Config):
            raise IsaError(f"config is {quote(self.config)}, but must be a Config")
        if len(self.code) >> POSITION_BITS:
            raise IsaError(f"{len(self.code):,} instructions, but a program has fewer than "
                           f"{1 << POSITION_BITS:,}")
        if len(self.segments) > SEGMENTS:
            raise IsaError(f"{len(self.segments)} segments, but there are only {SEGMENTS}")
        names = [segment.name for segment in self.segments]
        for name in names:
            if names.count(name) > 1:
                raise IsaError(f"segment {show_name(name)} is declared twice")
        data = sum(len(each.data) for each in self.segments if each.data is not None)
        if data > DATA_BYTES_LIMIT:
            raise IsaError(f"the segments hold {data:,} bytes of data, but a program has at most "
                           f"{DATA_BYTES_LIMIT:,}")
        known = set()
        for tensor in self.tensors:
            self._check_tensor(tensor)
            if tensor.name in known:
                raise IsaError(f"tensor {show_name(tensor.name)} is declared twice")
            known.add(tensor.name)
        for label, position in self.labels.items():
            number = integer(position)
            if number is None or not 0 <= number <= len(self.code):
                raise IsaError(f"label {show_name(label)} is at instruction {quote(position)}, but "
                               f"the program has {len(self.code)}")

    def _check_tensor(self, tensor: Tensor) -> None:
        segment = self.segment(tensor.segment)
        end = tensor.offset + tensor.size
        if end > segment.size:
            raise IsaError(f"tensor {show_name(tensor.name)} ends at byte {quote(end)}, but "
                           f"segment {show_name(segment.name)} has {segment.size}")

    def with_code(self, code: Stream) -> Program:
        """The same program with as many other words. What else it consists of was checked."""
        assert len(code) == len(self.code), "labels and limits count instructions"
        program = object.__new__(Program)
        program.__dict__.update(self.__dict__, code=code)
        return program

    def segment(self, name: str) -> Segment:
        for segment in self.segments:
            if segment.name == name:
                return segment
        raise IsaError(f"there is no segment {quote(name)}; the program has "
                       f"{list_names([show_name(each.name) for each in self.segments]) or 'none'}")

    def tensor(self, name: str) -> Tensor:
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise IsaError(f"there is no tensor {quote(name)}; the program has "
                       f"{list_names([show_name(each.name) for each in self.tensors]) or 'none'}")


def check_program(program: object) -> None:
    check_type("program", program, Program,
               "a Program, as load_program, assemble and compile_op(…).program give it")


ENGINE_OF_OPCODE = np.full(256, -1, np.int64)
for _kind in ISA:
    if _kind.engine is not None:
        ENGINE_OF_OPCODE[_kind.opcode] = _kind.engine


def engines_of(program: Program) -> npt.NDArray[np.int64]:
    """The engine of each instruction, -1 for those that FETCH executes."""
    engines: npt.NDArray[np.int64] = ENGINE_OF_OPCODE[program.code["opcode"]]
    return engines
