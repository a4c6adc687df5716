"""Whether a memory chip is what a board's file says of it: inside the process that has LiteDRAM."""

from ...facts.board import Board
from ...facts.errors import BoardError
from ...facts.in_package_sdram import INSIDE
from . import litedram_chip

KINDS = {"SDR": "sdr", "DDR3": "ddr3"}          # LiteDRAM's names, and those in boards' files


def check_chip(board: Board) -> None:
    """Refuse a chip of another kind or size, or with more wires than the board has pins for it."""
    memory, place = board.memory, f"{board.name}.toml"
    chip = litedram_chip.find_chip(board)
    kind = KINDS.get(chip.memtype, chip.memtype)
    if kind != memory.kind:
        raise BoardError(f"{place}: memory: kind is {memory.kind!r}, but chip is {memory.chip!r}, "
                         f"which is {kind}")
    shape, bits = chip.geom_settings, litedram_chip.data_bits(board)
    there = bits // 8 << shape.bankbits + shape.rowbits + shape.colbits
    if memory.bytes != there:
        raise BoardError(f"{place}: memory: bytes is {memory.bytes:,}, but {memory.chip} with "
                         f"{bits} wires of data has {there:,}")
    for name, wanted in (("a", shape.addressbits), ("ba", shape.bankbits)):
        found = _wires(board, name)
        if found < wanted:
            raise BoardError(f"{place}: pins: {name} of the memory has {found} places, but "
                             f"{memory.chip} has {wanted} such wires")


def _wires(board: Board, name: str) -> int:
    for group in ("sdram", "ddram"):
        if group in board.pins:
            return len(board.pins[group][name].places)
    return INSIDE[name][1]
