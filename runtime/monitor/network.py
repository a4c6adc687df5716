"""A network's image seen from the host: what goes in and out, read from its own tables."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.errors import ExecutionError, ImageError
from ...isa.faults import Fault
from ...isa.registers import register_map
from .client import Monitor
from .protocol import Outcome, Status

Arrays = dict[str, npt.NDArray[Any]]

MAGIC = 0x4D49544D              # "MTIM"
VERSION = 1                     # of the header, and of what the monitor offers
HEADER = struct.Struct("<8I")   # struct image: boards/firmware/source/services.h
NETWORK = struct.Struct("<9I")  # struct microtron_network: runtime/ahead/microtron_network.h
STAGE_BYTES = 12
TENSOR = struct.Struct("<6Idi4x")


@dataclass(frozen=True)
class Place:
    """A tensor in the board's memory."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    address: int


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

    @property
    def needed(self) -> int:
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
        return NETWORK.unpack_from(self.content, self._header[6] - self.base)

    def _tensors(self, address: int, count: int) -> dict[str, Place]:
        found = {}
        for number in range(count):
            name, dtype, offset, _, rank, shape, _, _ = TENSOR.unpack_from(
                self.content, address - self.base + TENSOR.size * number)
            found[self._text(name)] = Place(
                self._text(name), np.dtype(self._text(dtype)), self._numbers(shape, rank),
                self._header[7] + offset)
        return found

    def _numbers(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}I", self.content, address - self.base)

    def _text(self, address: int) -> str:
        start = address - self.base
        return self.content[start:self.content.index(0, start)].decode()


class BoardNetwork:
    """A network in a board's memory."""

    def __init__(self, monitor: Monitor, content: bytes):
        hello = monitor.hello()
        self.monitor, self.clock_hz = monitor, hello.clock_hz
        self.image = NetworkImage(content, hello.memory)
        monitor.load(content, self.image.needed, hello.memory)

    def run(self, inputs: Mapping[str, npt.NDArray[Any]], *, timeout: int,
            patience: int) -> tuple[Arrays, Outcome]:
        """One inference; `timeout` and `patience` are those of `Monitor.run`."""
        for name, place in self.image.inputs.items():
            array = np.ascontiguousarray(inputs[name], place.dtype)
            if array.shape != place.shape:
                raise ExecutionError(f"input {name}: shape is {array.shape}, but must be "
                                     f"{place.shape}")
            self.monitor.write(place.address, array.tobytes())
        outcome = self.monitor.run(timeout, patience)
        if outcome.status is not Status.DONE:
            raise ExecutionError(self.explain(outcome))
        return {name: self._read(place) for name, place in self.image.outputs.items()}, outcome

    def _read(self, place: Place) -> npt.NDArray[Any]:
        size = int(np.prod(place.shape)) * place.dtype.itemsize
        data = self.monitor.read(place.address, size)
        return np.frombuffer(data, place.dtype).reshape(place.shape)

    def explain(self, outcome: Outcome) -> str:
        """Why a run did not end well."""
        return f"{self.image.name}: {reason(outcome, self._stage(outcome.stage))}"

    def _stage(self, number: int) -> str:
        return f"stage {number} ({self.image.stage(number)})" if number < self.image.stages else ""


def reason(outcome: Outcome, stage: str) -> str:
    """The status of a run in words."""
    first, second, third, _ = outcome.details
    match outcome.status:
        case Status.NOT_AN_ACCELERATOR | Status.WRONG_CONFIGURATION:
            names = {each.offset: each.name for each in register_map()}
            return (f"the accelerator's register {names.get(first, hex(first))} is {second:#x}, "
                    f"but the network needs {third:#x}: another bitstream")
        case Status.FAULT:
            return (f"{stage}: the accelerator stopped at instruction {second}: "
                    f"{Fault(first).name.lower()}")
        case Status.HUNG:
            return f"{stage}: the accelerator did not end in time, and was reset"
        case Status.DEAD:
            return f"{stage}: the accelerator did not end in time, and cannot be reset"
        case Status.TRAP:
            return f"the processor met trap {first} at {second:#x}, with {third:#x}"
        case Status.KERNEL:
            return f"{stage}: kernel {first} met an index outside its axis"
        case Status.BAD_IMAGE:
            return "the image in memory is damaged; load it again"
        case _:
            return outcome.status.name.lower().replace("_", " ")
