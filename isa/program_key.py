"""What caches of results know a program by."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from .instructions import INSTRUCTION_BYTES
from .program import Program


def program_parts(program: Program) -> list[bytes]:
    """All that running a program depends on. Data is part of it, since micro-ops are data."""
    parts = [repr(program.config).encode(), program.code.view(f"V{INSTRUCTION_BYTES}").tobytes()]
    for segment in program.segments:
        parts += [repr((segment.name, segment.size, segment.access)).encode(),
                  b"" if segment.data is None else np.ascontiguousarray(segment.data).tobytes()]
    return parts


def program_digest(program: Program) -> str:
    """Two programs of the same digest are the same program."""
    digest = sha256()
    for part in program_parts(program):
        digest.update(f"{len(part)} ".encode())
        digest.update(part)
    return digest.hexdigest()
