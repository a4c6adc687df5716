"""Whether a configuration fits a board's part: before anything is built, as far as is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..isa.config import PRESETS, Config
from ..isa.instructions import SCRATCHPADS
from .board import RESOURCES, Board
from .facts import BoardError, read_toml

AREAS = Path(__file__).parent / "areas.toml"
SHELL = "shell"
FAMILIES = {"ecp5": "ecp5", "gowin": "gowin", "zynq": "zynq", "vivado": "xilinx",
            "quartus": "xilinx"}            # whose areas are nearest


@cache
def _areas() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return read_toml(AREAS)


def needed(board: Board, config: Config) -> dict[str, float] | None:
    """What a configuration and the shell take, if it is a preset that was measured."""
    areas = _areas().get(FAMILIES[board.flow], {})
    for name, preset in PRESETS.items():
        if preset == config and name in areas:
            return {kind: areas[name][kind] + areas[SHELL][kind] for kind in RESOURCES}
    return None


def shortage(board: Board, config: Config) -> str | None:
    """What there is too little of, in words; None if nothing is known to be."""
    part = board.part
    if board.memory.bytes > 1 << config.address_bits:
        return (f"its addresses have {config.address_bits} bits, but memory "
                f"{board.memory.bytes >> 20:,} MiB")
    known = needed(board, config)
    if known is not None:
        for kind, number in known.items():
            if number > part.resources[kind]:
                return (f"it takes {number:,g} {RESOURCES[kind]}, but {part.device} has "
                        f"{part.resources[kind]:,}")
    bits = 8 * sum(getattr(config, f"{buffer.name.lower()}_bytes") for buffer in SCRATCHPADS)
    there = part.resources["bram"] * part.bram_bits
    if bits > there:
        return (f"its scratchpads hold {bits // 1024:,} Kibit, but the {RESOURCES['bram']} of "
                f"{part.device} hold {there // 1024:,}")
    return None


def check_fits(board: Board, config: Config) -> None:
    reason = shortage(board, config)
    if reason is not None:
        largest = largest_preset(board)
        raise BoardError(f"{board.name}: the configuration does not fit: {reason}"
                         f"{f'; the largest preset that fits is {largest}' if largest else ''}")


def largest_preset(board: Board) -> str | None:
    """The preset with the most multipliers that fits; only those that were measured count."""
    fitting = [name for name, config in PRESETS.items()
               if needed(board, config) is not None and shortage(board, config) is None]
    return max(fitting, key=lambda name: PRESETS[name].macs_per_cycle, default=None)
