"""A network's image as the host sees it: what goes in and out, read from its own tables.

The file may be anybody's: what its tables refer to is looked for before it is believed.
"""

from __future__ import annotations

import struct
from functools import cached_property

import numpy as np

from ...base.arrays import Dtype
from ...base.classes.dataclass import dataclass
from ...base.errors import ImageError, MicrotronError
from ...compiler.graph.types import Quantization, TensorType

MAGIC = 0x4D49544D              # "MTIM"
VERSION = 2                     # of the header, and of what the monitor offers
HEADER = struct.Struct("<8I")   # struct image: boards/firmware/source/services.h
NETWORK = struct.Struct("<12I") # struct microtron_network: runtime/aot/microtron_network.h
STAGE_BYTES = 12
TENSOR = struct.Struct("<6Idi4x")


@dataclass(frozen=True)
class Place:
    """A tensor in the board's memory."""

    name: str
    type: TensorType
    address: int

    @property
    def dtype(self) -> Dtype:
        return np.dtype(self.type.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def bytes(self) -> int:
        return self.type.size * self.dtype.itemsize


@dataclass(frozen=True)
class NetworkImage:
    """The content of an image file, linked at `base`."""

    content: bytes
    base: int

    def __post_init__(self) -> None:
        if len(self.content) < HEADER.size or self._header[0] != MAGIC:
            raise ImageError("not an image of a network for a board; `microtron firmware` makes "
                             "them")
        if self._header[1] != VERSION or self._header[2] != len(self.content):
            raise ImageError(f"an image of version {self._header[1]}, {self._header[2]:,} bytes; "
                             f"this is version {VERSION}, and {len(self.content):,} are there")
        # All of it now: a damaged file is refused before a board is asked.
        self._check(self.stage_address(0), STAGE_BYTES * self.stages)
        _ = self.name, self.inputs, self.outputs, self.initials

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory, with what lies behind the file."""
        return self._header[3]

    @property
    def name(self) -> str:
        return self._text(self._network[0])

    @property
    def stages(self) -> int:
        return self._network[8]

    @cached_property
    def inputs(self) -> dict[str, Place]:
        return self._tensors(self._network[3], self._network[4])

    @cached_property
    def outputs(self) -> dict[str, Place]:
        return self._tensors(self._network[5], self._network[6])

    @cached_property
    def states(self) -> dict[str, Place]:
        """What is kept from one inference to the next."""
        return self._tensors(self._network[9], self._network[11])

    @cached_property
    def initials(self) -> dict[str, bytes]:
        """What states hold before the first inference."""
        addresses = self._numbers(self._network[10], self._network[11])
        return {name: self._bytes(address, place.bytes) for (name, place), address
                in zip(self.states.items(), addresses, strict=True)}

    def stage(self, number: int) -> str:
        """What a stage is called."""
        return self._text(self._numbers(self.stage_address(number), 1)[0])

    def stage_address(self, number: int) -> int:
        """Where a stage's line of the table is: its name, its function, its program."""
        return self._network[7] + STAGE_BYTES * number

    @cached_property
    def _header(self) -> tuple[int, ...]:
        return HEADER.unpack_from(self.content)

    @cached_property
    def _network(self) -> tuple[int, ...]:
        return NETWORK.unpack_from(self.content, self._check(self._header[6], NETWORK.size))

    def _tensors(self, address: int, count: int) -> dict[str, Place]:
        start = self._check(address, TENSOR.size * count)
        places = [self._tensor(start + TENSOR.size * number) for number in range(count)]
        return {each.name: each for each in places}

    def _tensor(self, start: int) -> Place:
        name, dtype, offset, _, rank, shape, scale, zero = TENSOR.unpack_from(self.content, start)
        try:
            type_ = TensorType(self._numbers(shape, rank), self._text(dtype),
                               Quantization((scale,), (zero,)) if scale else None)
        except ImageError:
            raise
        except MicrotronError as error:
            raise ImageError(f"a damaged image: tensor {self._text(name)}: {error}") from None
        place = Place(self._text(name), type_, self._header[7] + offset)
        if not self.base <= place.address <= self.base + self.memory_bytes - place.bytes:
            raise ImageError(f"a damaged image: tensor {place.name} lies at {place.address:#x}, "
                             f"outside of the {self.memory_bytes:,} bytes of memory from "
                             f"{self.base:#x} on")
        return place

    def _bytes(self, address: int, size: int) -> bytes:
        start = self._check(address, size)
        return self.content[start:start + size]

    def _numbers(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}I", self.content, self._check(address, 4 * count))

    def _text(self, address: int) -> str:
        start = self._check(address, 1)
        end = self.content.find(0, start)
        try:
            return self.content[start:end if end >= 0 else None].decode()
        except UnicodeDecodeError:
            raise ImageError(f"a damaged image: the name at {address:#x} is no text") from None

    def _check(self, address: int, size: int) -> int:
        """Where an address is in the file, if so many bytes are there."""
        start = address - self.base
        if not 0 <= start <= len(self.content) - size:
            raise ImageError(f"a damaged image, or one for another system: a table refers to "
                             f"{size:,} bytes at {address:#x}, but the file has those from "
                             f"{self.base:#x} to {self.base + len(self.content):#x}")
        return start
