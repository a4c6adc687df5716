"""The driver for Linux on the board: mapped registers, contiguous memory, interrupts."""

import socket
import struct
import sys
from types import ModuleType

import numpy as np
import pytest

from microtron.isa.config import tiny
from microtron.isa.registers import WINDOW_BYTES, identity_of, offset_of
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.link import LinkError
from microtron.runtime.board.linux import (
    LEAST_BYTES,
    MappedRegisters,
    PynqBuffer,
    open_buffer,
    open_linux,
)
from microtron.runtime.devices.device import Address

from ..devices.test_device import plus_seven

PHYSICAL, SIZE = 0x1800_0000, 1 << 16


@pytest.fixture
def files(tmp_path):
    """Files that hold what the kernel would map: registers of an accelerator, and a buffer."""
    registers = bytearray(WINDOW_BYTES)
    for name, value in identity_of(tiny).items():
        struct.pack_into("<I", registers, offset_of(name), value)
    (tmp_path / "registers").write_bytes(registers)
    (tmp_path / "udmabuf0").write_bytes(b"\xAA" * SIZE)
    facts = tmp_path / "sys" / "udmabuf0"
    facts.mkdir(parents=True)
    (facts / "phys_addr").write_text(f"{PHYSICAL:#x}\n")
    (facts / "size").write_text(f"{SIZE}\n")
    return tmp_path


def opened(files):
    return open_linux(str(files / "registers"), files / "udmabuf0", files / "sys")


def word(files, register):
    return struct.unpack_from("<I", (files / "registers").read_bytes(), offset_of(register))[0]


def test_a_program_lies_in_the_buffer_and_the_registers_say_where(files):
    device = BoardDevice(tiny, place="board:pynq_z2@/dev/uio0", link=opened(files), limit=1)
    device.load(plus_seven())
    device.write(Address("input", 3), b"\x55")
    held = (files / "udmabuf0").read_bytes()
    assert held[:32] == plus_seven().code[:1].tobytes()
    assert held[4096:4106] == bytes([1, 2, 3, 0x55, 5, 6, 7, 8, 0, 0])
    assert device.read(Address("input"), 4).tolist() == [1, 2, 3, 0x55]
    with pytest.raises(LinkError, match="it does not run, but the status, 0x0, is without the "
                                        "interrupt that tells of its end"):
        device.run()                    # nothing but a file
    assert word(files, "program_low") == PHYSICAL
    assert word(files, "program_count") == 4
    assert (word(files, "segment0_low"), word(files, "segment0_size")) == (PHYSICAL + 4096, 64)
    assert (word(files, "segment0_access"), word(files, "segment1_access")) == (0, 1)
    assert word(files, "segment7_size") == 0
    assert word(files, "control") == 3


def test_the_memory_is_the_buffer_s_physical_addresses(files):
    link = opened(files)
    assert link.memory == range(PHYSICAL, PHYSICAL + SIZE)
    link.write(PHYSICAL + 5, np.array([1, 2, 3], np.uint8))
    assert link.read(PHYSICAL + 4, 5).tolist() == [0xAA, 1, 2, 3, 0xAA]
    link.close()


@pytest.mark.parametrize("missing", ["sys/udmabuf0/phys_addr", "sys/udmabuf0/size", "registers"])
def test_a_file_that_is_missing_is_named(files, missing):
    (files / missing).unlink()
    with pytest.raises(LinkError, match=f"{missing}: cannot be .*: No such file or directory"):
        opened(files)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("registers", b"short", "registers: its registers cannot be mapped"),
    ("registers", bytes(WINDOW_BYTES), "there is no accelerator: the identity is 0x00000000"),
    ("sys/udmabuf0/size", b"much", "size: it holds no number"),
    ("sys/udmabuf0/size", b"99999999", "udmabuf0: its 99,999,999 bytes cannot be mapped"),
])
def test_a_file_that_is_wrong_is_named(files, name, content, message):
    (files / name).write_bytes(content)
    with pytest.raises(LinkError, match=message):
        BoardDevice(tiny, place="board:pynq_z2@/dev/uio0", link=opened(files))


def test_without_contiguous_memory_it_is_said_how_to_get_some(files):
    with pytest.raises(LinkError, match="load the kernel module u-dma-buf, as in `modprobe"):
        open_buffer(files / "udmabuf7", files / "sys")


class Allocated(np.ndarray):
    physical_address = 0x1680_0000


@pytest.fixture
def pynq(monkeypatch):
    """A PYNQ with some contiguous memory: gives the sizes that it was asked for."""
    asked = []

    def allocate(shape, dtype, cacheable):
        asked.append(shape[0])
        assert not cacheable
        if shape[0] > module.free:
            raise RuntimeError("Failed to allocate Memory!")
        return np.zeros(shape, dtype).view(Allocated)

    module = ModuleType("pynq")
    module.allocate, module.asked, module.__spec__ = allocate, asked, sys.__spec__
    monkeypatch.setitem(sys.modules, "pynq", module)
    return module


def test_pynq_s_own_memory_is_taken_where_there_is_no_other(files, pynq):
    pynq.free = 5 * LEAST_BYTES
    buffer = open_buffer(files / "udmabuf7", files / "sys")
    assert isinstance(buffer, PynqBuffer)
    assert (buffer.address, len(buffer.data)) == (0x1680_0000, 4 * LEAST_BYTES)
    assert pynq.asked == [(64 >> halved) * LEAST_BYTES for halved in range(5)]


def test_a_pynq_that_has_no_memory_left_is_said_to_have_none(files, pynq):
    pynq.free = LEAST_BYTES - 1
    with pytest.raises(LinkError, match="PYNQ has not even 1,048,576 bytes of contiguous memory"):
        open_buffer(files / "udmabuf7", files / "sys")


@pytest.fixture
def interrupts(files):
    """Registers of UIO, and the kernel's end of its file."""
    (files / "registers").rename(files / "uio0")
    registers = MappedRegisters(files / "uio0")
    kernel, driver = socket.socketpair()
    was, registers._file = registers._file, driver.fileno()
    yield registers, kernel, driver
    registers._file = was
    registers.close()
    kernel.close()
    driver.close()


def test_an_interrupt_is_let_through_waited_for_and_taken(interrupts):
    registers, kernel, _ = interrupts
    kernel.send(struct.pack("=I", 17))
    assert registers.wait(60) is True
    assert kernel.recv(4) == struct.pack("=I", 1)
    assert registers.wait(0) is False


def test_a_driver_that_is_unloaded_meanwhile_is_said_to_be_gone(interrupts):
    registers, kernel, _ = interrupts
    kernel.shutdown(socket.SHUT_WR)
    with pytest.raises(LinkError, match="uio0: the interrupt cannot be read: the driver is gone"):
        registers.wait(60)


def test_without_an_interrupt_there_is_none_to_wait_for(interrupts):
    registers, _, driver = interrupts
    driver.shutdown(socket.SHUT_WR)
    assert registers.wait(60) is None
