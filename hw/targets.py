"""The FPGAs that hardware is arranged for. What it computes, and when, is the same on all."""

from dataclasses import dataclass, replace

from ..base.errors import MicrotronError
from ..isa.config import Config

LANE_MULTIPLIERS = 4        # an ALU lane multiplies 32 × 32 bits: four times 18 × 18


@dataclass(frozen=True)
class Target:
    """Amaranth hands it to every component as its `platform`.

    `port_bits` is the wider input of a multiplier, and `multipliers` how many there are: of the
    part, or none if two products in one multiplier are better than in two anyway, since an adder
    comes with it. `blocks`: small memories whose reads have a register go to block RAM, since a
    LUT RAM takes the places of registers, too.
    """

    name: str
    port_bits: int
    multipliers: int
    blocks: bool = False

    def packs_pairs(self, config: Config) -> bool:
        """Whether a multiplier has to compute two products, for two output channels."""
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
    """The target of a family of FPGAs; `multipliers` of another part than the one above."""
    check_target(name)
    found = TARGETS[name]
    if multipliers is None or not found.multipliers:
        return found
    return replace(found, multipliers=multipliers)


def check_target(name: str | None) -> None:
    if name is not None and name not in TARGETS:
        raise MicrotronError(f"target {name[:40]!r} is not one of {', '.join(TARGETS)}")


def small_memory(platform: Target | None) -> dict[str, str | int]:
    """What synthesis is told about a small memory whose reads have a register and never meet the
    write of a word that they want."""
    if platform is None or not platform.blocks:
        return {}
    return {"ram_style": "block", "no_rw_check": 1}
