"""A connection to a board, shared by all devices that run programs there: one memory, one turn."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable

from ...base.errors import ConfigError, ExecutionError
from ...isa.config import PAGE_BYTES, Config
from ...isa.instructions import ISA_VERSION
from ...isa.registers import IDENTITY, read_config_fields
from .link import Link, LinkError, registers_of

CONFIG = tuple(f"config_{field.name}" for field in dataclasses.fields(Config))


class Space:
    """Bytes of the board's memory that one program has, until nobody refers to it."""

    def __init__(self, start: int, size: int):
        self.start, self.size = start, size


class Connection:
    """A link, what is at its other end, and who has which part of the memory there."""

    def __init__(self, link: Link):
        self.link = link
        self.turn = threading.RLock()
        self._spaces: weakref.WeakSet[Space] = weakref.WeakSet()
        self.config = self._identify()
        weakref.finalize(self, link.close)      # until here it is the caller's

    def space(self, size: int) -> Space:
        """The first gap that is large enough, from a page on."""
        memory = self.link.memory
        start = -(-memory.start // PAGE_BYTES) * PAGE_BYTES
        for taken in sorted(self._spaces, key=lambda space: space.start):
            if start + size <= taken.start:
                break
            start = -(-(taken.start + taken.size) // PAGE_BYTES) * PAGE_BYTES
        if start + size > memory.stop:
            free = len(memory) - sum(space.size for space in self._spaces)
            raise ExecutionError(f"{self.link.address}: the program needs {size:,} bytes in one "
                                 f"piece, but of the board's {len(memory):,} there are "
                                 f"{max(free, 0):,} free")
        found = Space(start, size)
        self._spaces.add(found)
        return found

    def _identify(self) -> Config:
        """Ask the hardware what it is, before it is trusted with anything."""
        where = self.link.address
        told = registers_of(self.link, ("identity", "isa_version"))
        if (identity := told["identity"]) != IDENTITY:
            raise LinkError(f"{where}: there is no accelerator: the identity is {identity:#010x}, "
                            f"but must be {IDENTITY:#010x}; is its bitstream loaded?")
        if (version := told["isa_version"]) != ISA_VERSION:
            raise LinkError(f"{where}: the accelerator has version {version} of the instruction "
                            f"set, but this kit has {ISA_VERSION}; build the bitstream anew")
        try:
            return Config(**read_config_fields(registers_of(self.link, CONFIG).__getitem__))
        except ConfigError as error:
            raise LinkError(f"{where}: the accelerator does not describe itself: {error}") from None


_open: weakref.WeakValueDictionary[str, Connection] = weakref.WeakValueDictionary()
_opening = threading.Lock()


def connect(address: str, open_link: Callable[[], Link]) -> Connection:
    """The connection to an address, made if nobody has one that still counts."""
    with _opening:
        found = _open.get(address)
        if found is None or not found.link.is_sound:
            link = open_link()
            try:
                found = Connection(link)
            except BaseException:
                link.close()
                raise
            _open[address] = found
        return found
