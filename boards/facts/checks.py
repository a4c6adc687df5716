"""Whether the facts of a board's file go together, before anything is planned or built.

What only LiteDRAM knows, such as the size of a memory chip, is checked where the system is written
(soc/checked.py).
"""

from __future__ import annotations

from .board import Board
from .clocks import check_clock
from .errors import BoardError
from .in_package_sdram import DEVICE_NAMES
from .pins import check_pins
from .processors import NONE, PROCESSORS

# What a flow's shell can have, and the rates of its clock to the design's.
KINDS = {"ecp5": ("sdr", "ddr3", "none"), "gowin": ("sdr", "none"), "zynq": ("processor",),
         "vivado": ("processor",), "quartus": ("processor",)}
RATES = {("ecp5", "sdr"): ("1:1", "1:2"), ("ecp5", "ddr3"): ("1:2",), ("gowin", "sdr"): ("1:1",)}
INSIDE_BYTES = 8 << 20          # of the memory in the package of a GW2AR-18
MOST_BYTES = 1 << 30            # from 0x4000_0000 on; what lies behind, a processor does not cache


def check_board(board: Board, place: str) -> None:
    """Refuse a board, with the file that describes it, the field and what would be right."""
    kind = board.memory.kind
    if kind not in KINDS[board.flow]:
        raise BoardError(f"{place}: memory: kind is {kind!r}, but with flow {board.flow!r} it must "
                         f"be one of {', '.join(KINDS[board.flow])}")
    if kind in ("sdr", "ddr3"):
        _check_system(board, place)
    _check_bytes(board, place)
    check_clock(board, place)
    check_pins(board, place)


def _check_system(board: Board, place: str) -> None:
    """What is around the accelerator: its processor, and memory that the design itself drives."""
    memory, part = board.memory, board.part.name
    if board.cpu != NONE and board.cpu not in PROCESSORS:
        raise BoardError(f"{place}: cpu is {board.cpu!r}, but a soft one is "
                         f"{', '.join(PROCESSORS)} or {NONE}")
    if memory.kind == "ddr3" and board.cpu == NONE:
        raise BoardError(f"{place}: cpu is {NONE!r}, but ddr3 wants a processor that starts it: "
                         f"{' or '.join(PROCESSORS)}")
    if not memory.chip:
        raise BoardError(f"{place}: memory: chip is missing; LiteDRAM has a name for it")
    rates = RATES[board.flow, memory.kind]
    if memory.rate not in rates:
        raise BoardError(f"{place}: memory: rate is {memory.rate!r}, but for {memory.kind} on "
                         f"{board.flow} it must be {' or '.join(rates)}")
    if board.flow == "gowin" and not part.startswith(tuple(DEVICE_NAMES)):
        raise BoardError(f"{place}: part is {part!r}, but must be as {', '.join(DEVICE_NAMES)}, "
                         "with memory in its package")


def _check_bytes(board: Board, place: str) -> None:
    number, kind = board.memory.bytes, board.memory.kind
    if kind == "none":
        wrong, right = number != 0, "0, since there is no memory"
    elif kind == "processor":
        wrong, right = number == 0, "those that the processor has"
    elif board.flow == "gowin":
        wrong, right = number != INSIDE_BYTES, f"the {INSIDE_BYTES:,} in the package of the FPGA"
    else:
        wrong = number == 0 or number & number - 1 != 0 or number > MOST_BYTES
        right = f"a power of two up to {MOST_BYTES:,}, as chips have"
    if wrong:
        raise BoardError(f"{place}: memory: bytes is {number:,}, but must be {right}")
