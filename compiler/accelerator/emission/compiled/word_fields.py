"""Where the fields of a word are. Compiled code is made anew when what it imports has changed, so
this imports nothing of the compiler's."""

from __future__ import annotations

import numpy as np

from .....isa.instructions import Instruction, Load


def offset_of(kind: type[Instruction], name: str) -> int:
    """The byte of a word with which a field begins."""
    return int(kind.dtype().fields[name][1])            # type: ignore[index]


WIDEST = int(np.iinfo(Load.dtype()["pad"].base).max)    # border on one side
