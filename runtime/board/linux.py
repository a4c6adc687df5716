"""Linux on the board itself: registers through UIO or /dev/mem, memory in a contiguous buffer.

The buffer is a `u-dma-buf` (/dev/udmabuf0, a kernel module), or what PYNQ's `allocate` gives where
that is installed. Ports of the fabric to memory see no caches, so the buffer is mapped without.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import struct
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...isa.registers import WINDOW_BYTES
from ..devices.device import Bytes
from .link import WORD, LinkError, poll

REGISTERS = 0x4000_0000         # in /dev/mem: where the shell of a Zynq-7000 puts them
UDMABUF = Path("/dev/udmabuf0")
SYSFS = Path("/sys/class/u-dma-buf")
PYNQ_BYTES = 64 << 20           # that are asked for; half and half again if there is not so much
LEAST_BYTES = 1 << 20


class Buffer(Protocol):
    """Memory that both sides see: where it is on the bus, and its bytes."""

    address: int
    data: Bytes


class Registers(Protocol):
    """The window of registers, word by word, and the interrupt that goes with it."""

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...

    def wait(self, seconds: float) -> bool | None:
        """Until the interrupt is raised; None if there is none to wait for."""

    def close(self) -> None: ...


class LinuxLink:
    """The accelerator of the board that this program runs on."""

    def __init__(self, address: str, registers: Registers, buffer: Buffer):
        self.address, self.is_sound = address, True
        self.registers, self.buffer = registers, buffer
        self.memory = range(buffer.address, buffer.address + len(buffer.data))

    def read_registers(self, offset: int, count: int) -> list[int]:
        return [self.registers.read(offset + WORD * number) for number in range(count)]

    def set_registers(self, offset: int, values: list[int]) -> None:
        for number, value in enumerate(values):
            self.registers.write(offset + WORD * number, value)

    def write_register(self, offset: int, value: int) -> None:
        self.registers.write(offset, value)

    def read(self, address: int, size: int) -> Bytes:
        start = address - self.memory.start
        return self.buffer.data[start:start + size].copy()

    def write(self, address: int, data: Bytes) -> None:
        start = address - self.memory.start
        self.buffer.data[start:start + len(data)] = data

    def wait(self, seconds: float) -> bool:
        raised = self.registers.wait(seconds)
        return poll(self, seconds) if raised is None else raised

    def close(self) -> None:
        self.registers.close()


def open_linux(address: str, buffer: Path = UDMABUF, sysfs: Path = SYSFS) -> LinuxLink:
    """The link through a device file: /dev/uio0, or /dev/mem."""
    return LinuxLink(address, MappedRegisters(Path(address)), open_buffer(buffer, sysfs))


class MappedRegisters:
    """Registers that the kernel maps into this process."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_SYNC | os.O_CLOEXEC)
        except OSError as error:
            raise LinkError(f"{path}: cannot be opened: {error.strerror}; is the bitstream loaded, "
                            "with its device tree overlay?") from None
        except ValueError as error:             # a zero byte in its name
            raise LinkError(f"{path}: cannot be opened: {error}") from None
        start = REGISTERS if path == Path("/dev/mem") else 0
        try:
            self._map = mmap.mmap(self._file, WINDOW_BYTES, offset=start)
        except (OSError, ValueError) as error:
            os.close(self._file)
            raise LinkError(f"{path}: its registers cannot be mapped: {error}") from None
        # One load or store of 32 bits each: a register must not be read byte by byte.
        self._words: npt.NDArray[np.uint32] = np.frombuffer(self._map, "<u4")

    def read(self, offset: int) -> int:
        return int(self._words[offset // 4])

    def write(self, offset: int, value: int) -> None:
        self._words[offset // 4] = value

    def wait(self, seconds: float) -> bool | None:
        """UIO: writing 1 lets the interrupt through, also one that is there already; it can be read
        once it came. Other files have none."""
        if not self.path.name.startswith("uio"):
            return None
        try:
            os.write(self._file, struct.pack("=I", 1))
        except OSError:
            return None                     # registered without an interrupt
        came, _, _ = select.select([self._file], [], [], seconds)
        if not came:
            return False
        if len(os.read(self._file, 4)) != 4:
            raise LinkError(f"{self.path}: the interrupt cannot be read: the driver is gone")
        return True

    def close(self) -> None:
        del self._words
        with contextlib.suppress(BufferError):
            self._map.close()
        os.close(self._file)


class MappedBuffer:
    """A u-dma-buf."""

    def __init__(self, path: Path, sysfs: Path):
        facts = sysfs / path.name
        self.address, size = (_number(facts / name) for name in ("phys_addr", "size"))
        try:
            file = os.open(path, os.O_RDWR | os.O_SYNC | os.O_CLOEXEC)     # without caches
        except OSError as error:
            raise LinkError(f"{path}: cannot be opened: {error.strerror}") from None
        try:
            self._map = mmap.mmap(file, size)
        except (OSError, ValueError) as error:
            raise LinkError(f"{path}: its {size:,} bytes cannot be mapped: {error}") from None
        finally:
            os.close(file)
        self.data: Bytes = np.frombuffer(self._map, np.uint8)


class PynqBuffer:
    """What PYNQ allocates, without caches."""

    def __init__(self) -> None:
        pynq: Any = import_module("pynq")
        size, allocated = PYNQ_BYTES, None
        while allocated is None:
            try:
                allocated = pynq.allocate(shape=(size,), dtype="u1", cacheable=False)
            except (RuntimeError, MemoryError):
                size //= 2
                if size < LEAST_BYTES:
                    raise LinkError(f"PYNQ has not even {LEAST_BYTES:,} bytes of contiguous "
                                    "memory left; restart the board's software") from None
        self.data: Bytes = allocated
        self.address = int(allocated.physical_address)


def open_buffer(path: Path, sysfs: Path) -> Buffer:
    if path.exists():
        return MappedBuffer(path, sysfs)
    if find_spec("pynq") is not None:
        return PynqBuffer()
    raise LinkError(f"{path}: there is no contiguous memory: load the kernel module u-dma-buf, as "
                    "in `modprobe u-dma-buf udmabuf0=67108864`, or install PYNQ")


def _number(path: Path) -> int:
    try:
        return int(path.read_text().strip(), 0)
    except OSError as error:
        raise LinkError(f"{path}: cannot be read: {error.strerror}; is u-dma-buf loaded?") from None
    except ValueError:
        raise LinkError(f"{path}: it holds no number") from None
