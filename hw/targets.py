"""FPGA families with a mapping of their own. Results and timing are the same on all."""

from dataclasses import dataclass, replace

from ..base.errors import MicrotronError
from ..isa.config import Config

LANE_MULTIPLIERS = 4        # an ALU lane multiplies 32 × 32 bits: four times 18 × 18


@dataclass(frozen=True)
class Target:
    """An FPGA family. Amaranth passes it to every component as its `platform`.

    `port_bits` is the width of the wider input of a multiplier, and `multipliers` their number in
    the part, or 0 if packing two products into one is always better, because the multiplier has an
    adder. `blocks`: map small memories with registered reads to block RAM, since LUT RAM uses up
    registers too.
    """

    name: str
    port_bits: int
    multipliers: int
    blocks: bool = False

    def packs_pairs(self, config: Config) -> bool:
        """Whether multipliers compute two products each, for two output channels."""
        wanted = config.macs_per_cycle + LANE_MULTIPLIERS * config.alu_lanes
        possible = min(config.block_in, config.block_out) > 1
        room = self.port_bits >= 2 * config.wgt_bits + 2
        return possible and room and wanted > self.multipliers


TARGETS = {
    "xc7": Target("xc7", port_bits=25, multipliers=0),          # DSP48E1
    "ecp5": Target("ecp5", port_bits=18, multipliers=156),      # MULT18X18D of the LFE5U-85F
    "gowin": Target("gowin", port_bits=9, multipliers=96, blocks=True),     # MULT9X9 of the GW2A-18
}


def find_target(name: str, multipliers: int | None = None) -> Target:
    """The target of an FPGA family; `multipliers` overrides their number, for another part."""
    check_target(name)
    found = TARGETS[name]
    if multipliers is None or not found.multipliers:
        return found
    return replace(found, multipliers=multipliers)


def check_target(name: str | None) -> None:
    if name is not None and name not in TARGETS:
        raise MicrotronError(f"target {name[:40]!r} is not one of {', '.join(TARGETS)}")


def small_memory(platform: Target | None) -> dict[str, str | int]:
    """Synthesis attributes of a small memory with registered reads, which never read a word in the
    cycle of its write."""
    if platform is None or not platform.blocks:
        return {}
    return {"ram_style": "block", "no_rw_check": 1}
