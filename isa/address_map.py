"""Where code and segments of a program are in memory, and whether addresses reach them all."""

from __future__ import annotations

from ..base.errors import ExecutionError
from .config import PAGE_BYTES
from .instructions import INSTRUCTION_BYTES
from .program import Program

GUARD_BYTES = 1 << 16       # between windows, where nothing answers: strays are noticed


def place_windows(program: Program) -> list[int]:
    """The addresses of the code and of each segment: page-aligned, with gaps in between. Raises
    ExecutionError if they do not fit: the verifier and every device refuse the same programs.

    If addresses have more than 32 bits, memory is in their upper half, so that the high halves of
    addresses are never all zero.
    """
    bits = program.config.address_bits
    limit = 1 << bits
    address = PAGE_BYTES if bits <= 32 else limit >> 1
    bases = []
    for name, size in (("the code", len(program.code) * INSTRUCTION_BYTES),
                       *((f"segment {each.name}", each.size) for each in program.segments)):
        if address + size > limit:
            raise ExecutionError(f"{name} does not fit: it would end at {address + size:#x}, but "
                                 f"addresses have {bits} bits")
        bases.append(address)
        address += -(-(size + GUARD_BYTES) // PAGE_BYTES) * PAGE_BYTES
    return bases
