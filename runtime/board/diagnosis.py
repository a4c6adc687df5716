"""Registers and memory of a board, checked over its link: wires, addresses and bytes."""

from __future__ import annotations

import numpy as np

from ...isa.config import PAGE_BYTES, Config
from ...isa.instructions import POSITION_BITS, SEGMENTS
from ...isa.registers import identity_of, offset_of
from .board_device import BoardDevice
from .link import WORD, Link, registers_of

PATTERNS = (0x0000_0000, 0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA)
BLOCK = 1024                # bytes at each end of memory that are written and read as one


def check_registers(device: BoardDevice) -> str | None:
    """What the hardware says of itself, and every register that a driver may set, with patterns.
    Returns what is wrong, in words."""
    with device.connection.turn:
        link, config = device.connection.link, device.connection.config
        expected = identity_of(config)
        for name, value in registers_of(link, expected).items():
            if value != expected[name]:
                return f"register {name} is {value:#x}, but must be {expected[name]:#x}"
        for pattern in PATTERNS:
            if problem := _check_pattern(link, config, pattern):
                return problem
    return None


def _check_pattern(link: Link, config: Config, pattern: int) -> str | None:
    """Set every register to a pattern of its own: which bits and which register can be told."""
    low = min(config.address_bits, 32)
    widths = {"low": low, "high": config.address_bits - low}
    names = {f"program_{part}": width for part, width in widths.items()}
    names["program_count"] = POSITION_BITS
    for number in range(SEGMENTS):
        names |= {f"segment{number}_{part}": width
                  for part, width in {**widths, "size": 32, "access": 1}.items()}
    values = {name: (pattern ^ number) & (1 << width) - 1
              for number, (name, width) in enumerate(names.items())}
    for prefix in ("program", "segment"):
        group = [name for name in names if name.startswith(prefix)]
        link.set_registers(offset_of(group[0]), [values[name] for name in group])
    for name, value in registers_of(link, names).items():
        if value != values[name]:
            return f"register {name} is {value:#x} after {values[name]:#x} was written"
    return None


def check_memory(device: BoardDevice) -> str | None:
    """Wires of data and address of the memory that programs use, and a block at each end. Returns
    what is wrong, in words."""
    connection = device.connection
    with connection.turn:
        link = connection.link
        start = -(-link.memory.start // PAGE_BYTES) * PAGE_BYTES
        space = connection.space(link.memory.stop - start)      # all of it, or it is refused
        return (_check_data_wires(link, space.start)
                or _check_address_wires(link, space.start, space.size)
                or _check_block(link, space.start)
                or _check_block(link, space.start + space.size - BLOCK))


def _check_data_wires(link: Link, address: int) -> str | None:
    """Each bit of a beat alone, and each without the others."""
    ones = np.packbits(np.eye(8 * 8, dtype=np.uint8), axis=1).ravel()
    for data in (ones, ~ones):
        link.write(address, data)
        if problem := _compare(link, address, data):
            return problem
    return None


def _check_address_wires(link: Link, start: int, size: int) -> str | None:
    """A word of its own at each power of two, so that one which comes twice overwrites another."""
    offsets = [0, *(1 << bit for bit in range(2, (size - WORD).bit_length()))]
    words = {offset: np.array([0xA5, index, ~index & 0xFF, 0x5A], np.uint8)
             for index, offset in enumerate(offsets) if offset + WORD <= size}
    for offset, word in words.items():
        link.write(start + offset, word)
    for offset, word in words.items():
        if problem := _compare(link, start + offset, word):
            return f"{problem}; addresses may share a wire"
    return None


def _check_block(link: Link, address: int) -> str | None:
    """Random bytes, and some of them again with odd edges."""
    rng = np.random.default_rng(address)
    data = rng.integers(0, 256, BLOCK, np.uint8)
    link.write(address, data)
    for first, size in ((1, 1), (2, 6), (61, 70), (BLOCK - 3, 3)):
        data[first:first + size] = rng.integers(0, 256, size, np.uint8)
        link.write(address + first, data[first:first + size].copy())
    return _compare(link, address, data)


def _compare(link: Link, address: int, data: np.ndarray) -> str | None:
    found = link.read(address, len(data))
    wrong = np.flatnonzero(found != data)
    if not len(wrong):
        return None
    first = int(wrong[0])
    return (f"memory at {address + first:#x} is {found[first]:#04x}, but {data[first]:#04x} was "
            f"written")
