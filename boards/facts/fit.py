"""Whether a configuration fits a board's part: before anything is built, as far as is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ...base.checked_values import PlainData
from ...hw.targets import LANE_MULTIPLIERS, find_target
from ...isa.config import PRESETS, Config
from ...isa.instructions import SCRATCHPADS, WINDOW_TAPS
from .board import RESOURCES, Board
from .errors import BoardError
from .toml_table import read_toml
from .zynq7000 import check_config

AREAS = Path(__file__).parent / "areas.toml"
SHELL, ETHERNET = "shell", "ethernet"
FAMILIES = {"ecp5": "ecp5", "gowin": "gowin", "zynq": "zynq", "vivado": "xilinx",
            "quartus": "xilinx"}            # whose areas are nearest
# The target that a flow builds the hardware for. Quartus gets it without one, and makes of logic
# what its multipliers do not hold.
TARGET_OF_FLOW = {"ecp5": "ecp5", "gowin": "gowin", "zynq": "xc7", "vivado": "xc7"}
# Multipliers, as parts.toml counts them, in one of 18 × 18 bits. Gowin's are of 9 × 9.
IN_LARGE_ONE = {"gowin": 2}


@cache
def _areas() -> Mapping[str, Mapping[str, PlainData]]:
    return read_toml(AREAS)


def measured_resources(board: Board, config: Config) -> dict[str, float] | None:
    """What a configuration and the shell take, if it is a preset that was measured."""
    areas = _areas().get(FAMILIES[board.flow], {})
    for name, preset in PRESETS.items():
        if preset == config and name in areas:
            shell = shell_resources(board)
            return {kind: areas[name][kind] + shell[kind] for kind in RESOURCES}
    return None


def preset_areas(family: str) -> dict[str, dict[str, float]]:
    """Areas of the presets that were measured for a family, without a shell."""
    return {name: {kind: each[kind] for kind in RESOURCES}
            for name, each in _areas().get(family, {}).items() if name in PRESETS}


def shell_resources(board: Board) -> dict[str, float]:
    """What a bitstream for a board takes beside the accelerator, as far as it was measured."""
    areas = _areas().get(FAMILIES[board.flow], {})
    parts = [areas[each] for each in _surroundings(board) if each in areas]
    return {kind: sum(each[kind] for each in parts) for kind in RESOURCES}


def _surroundings(board: Board) -> tuple[str, ...]:
    """What a bitstream has beside the accelerator."""
    if board.memory.kind == "none":
        return ()
    return (SHELL, ETHERNET) if board.ethernet is not None else (SHELL,)


def count_multipliers(board: Board, config: Config) -> int:
    """Those of the accelerator; zero where nobody can tell. What is around it comes on top."""
    family = TARGET_OF_FLOW.get(board.flow)
    if family is None:
        return 0
    return multipliers_of(config, family, board.part.resources["dsp"],
                          IN_LARGE_ONE.get(board.flow, 1))


def multipliers_of(config: Config, family: str, there: int | None = None, in_lane: int = 1) -> int:
    """Multipliers of the array, two products in each where the target packs them, and of the ALU's
    lanes, each so many times. Sums of three products have their own where those are packed
    (hw/gemm/mac_windows.py)."""
    lanes = in_lane * LANE_MULTIPLIERS * config.alu_lanes
    if not packs_pairs(config, family, there):
        return config.macs_per_cycle + lanes
    windows = WINDOW_TAPS * config.batch * config.depthwise_lanes if config.has_windows else 0
    return config.macs_per_cycle // 2 + windows + lanes


def packs_pairs(config: Config, family: str, multipliers: int | None = None) -> bool:
    """Whether a multiplier computes two products, on a part with so many of them."""
    return find_target(family, multipliers).packs_pairs(config)


def find_shortage(board: Board, config: Config) -> str | None:
    """What there is too little of, in words; None if nothing is known to be."""
    part = board.part
    if board.memory.bytes > 1 << config.address_bits:
        return (f"its addresses have {config.address_bits} bits, but memory "
                f"{board.memory.bytes >> 20:,} MiB")
    known = measured_resources(board, config)
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
    least = count_multipliers(board, config)
    if least > part.resources["dsp"]:
        return (f"its products and lanes take {least:,} {RESOURCES['dsp']}, but {part.device} has "
                f"{part.resources['dsp']:,}")
    return None


def check_fits(board: Board, config: Config) -> None:
    """Refuse what is known not to be possible, whoever asks: a build, a profile or firmware."""
    if board.flow == "zynq":
        check_config(config)
    reason = find_shortage(board, config)
    if reason is not None:
        largest = largest_preset(board)
        raise BoardError(f"{board.name}: the configuration does not fit: {reason}"
                         f"{f'; the largest preset that fits is {largest}' if largest else ''}")


def largest_preset(board: Board) -> str | None:
    """The preset with the most products a cycle that fits, the last of these in their order; only
    those that were measured count."""
    fitting = [name for name, config in PRESETS.items()
               if measured_resources(board, config) is not None
               and find_shortage(board, config) is None]
    order = list(PRESETS)
    return max(fitting, default=None,
               key=lambda name: (PRESETS[name].macs_per_cycle, order.index(name)))
