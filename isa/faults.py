"""Why an accelerator stopped before the end of a program. One numbering for every execution."""

from __future__ import annotations

from enum import IntEnum


class Fault(IntEnum):
    """The cause that halts the accelerator; the first one counts."""

    NONE = 0
    ILLEGAL = 1             # a word that is no instruction
    INDEX = 2               # a tile or micro-op outside its scratchpad
    ADDRESS = 3             # DRAM outside the segment's window, or a store to one for reading
    ALIGNMENT = 4           # an offset or stride that is not a multiple of the tile
    READ_ERROR = 5          # the bus answered a read with an error
    WRITE_ERROR = 6         # the bus answered a write with an error
    TOKEN_OVERFLOW = 7      # one token too many for a counter
    NO_END = 8              # the program ran out of instructions without an end, or has none
    RESTARTED = 9           # a start while a program was running
