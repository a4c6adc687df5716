"""What the area of a configuration is made of: counts that LUTs, registers, multipliers and blocks
of RAM grow with. They follow from the configuration alone."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2

from ...boards.facts.fit import multipliers_of, packs_pairs
from ...isa.config import Config
from ...isa.instructions import SCRATCHPADS, TABLE_WORDS, TABLES, Buffer

# Bits that a word of a block has, whole bytes alone since parts of a word are written, and words of
# a block; an ECP5's has 16 Kibit, and the same of Xilinx 7 is half of what counts as a block.
BLOCKS = [(32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384)]
BLOCK_SIZE = {"ecp5": 1.0, "xc7": 0.5}
# What Yosys thinks a block and a LUT RAM of 4 bits × 16 words cost, where it chooses between them
# on ECP5. On Xilinx 7, memories of up to 64 words are in LUT RAMs of 3 bits × 64 words, whose four
# LUTs are this part of what a LUT RAM of ECP5 takes with all around it, in LUTs of Xilinx 7.
BLOCK_COST, LUT_RAM_COST = 128, 4
SHALLOW, LUT_RAM_PART = 64, 0.56
KINDS = ("lut", "register", "dsp", "bram")


def area_features(config: Config, family: str,
                  multipliers: int | None = None) -> dict[str, dict[str, float]]:
    """For each kind of resource, the counts that it grows with; on a part with so many
    multipliers, if this is not the family's largest."""
    logic = _logic(config, family, multipliers)
    return {"lut": logic, "register": logic,
            "dsp": {"multipliers": multipliers_of(config, family, multipliers)},
            "bram": {"blocks": _blocks(config, family)}}


def _logic(config: Config, family: str, multipliers: int | None) -> dict[str, float]:
    vector, rows = config.batch * config.block_out, config.batch * config.block_in
    lanes, banks, macs = config.alu_lanes, config.acc_banks, config.macs_per_cycle
    packs = packs_pairs(config, family, multipliers)
    shared = config.out_readers == 2
    return {
        "once": 1, "lanes": lanes, "vector": vector, "rows": rows,
        "weights": config.block_in * config.block_out, "products": macs,
        "packed products": macs if packs else 0, "sums": vector * log2(2 * config.block_in),
        "banked lanes": vector * log2(banks),
        "chosen lanes": vector * (banks > 1), "banks": banks,
        "folded lanes": vector * (config.vector_cycles > 1), "bus": config.bus_bytes,
        "bus by lanes": max(config.bus_bytes, vector),
        "queue": ceil(config.queue_depth / 16), "reads": config.reads_in_flight,
        "writes": config.writes_in_flight, "shared rows": rows * shared, "shared": shared,
        "windows": config.has_windows, "window lanes":
            config.has_windows * config.batch * config.depthwise_lanes,
        "tables": bool(config.tables), "table lanes": lanes if config.tables else 0,
        "groups": vector * (config.acc_groups > 1) + rows * (config.inp_groups > 1),
        "indices": sum(log2(config.tiles(buffer)) for buffer in SCRATCHPADS),
        "choice of blocks": sum(width * (ceil(depth / 2048) - 1)
                                for width, depth in _memories(config)),
        "lut rams": sum(_lut_rams(*each, family) for each in _memories(config)
                        if _is_in_luts(*each, family)),
        "counters": 1 - config.cycles_only, "addresses": config.address_bits / 32}


def _blocks(config: Config, family: str) -> float:
    """Blocks of RAM that memories take, but for those that are in LUTs."""
    return BLOCK_SIZE[family] * sum(_fewest_blocks(*each) for each in _memories(config)
                                    if not _is_in_luts(*each, family))


def _fewest_blocks(width: int, depth: int) -> int:
    """Blocks of the shape of which a memory takes fewest."""
    return min(ceil(width / bits) * ceil(depth / words) for bits, words in BLOCKS)


def _lut_rams(width: int, depth: int, family: str) -> float:
    """LUT RAMs of a memory, in those of ECP5."""
    if family == "xc7":
        return LUT_RAM_PART * ceil(width / 3) * ceil(depth / SHALLOW)
    return ceil(width / 4) * ceil(depth / 16)


def _is_in_luts(width: int, depth: int, family: str) -> bool:
    """Whether LUT RAM is cheaper: memories of few words."""
    if family == "xc7":
        return depth <= SHALLOW
    return LUT_RAM_COST * _lut_rams(width, depth, family) < (
        BLOCK_COST * _fewest_blocks(width, depth))


def _memories(config: Config) -> Iterator[tuple[int, int]]:
    """Width and depth of each memory that is in blocks: as hw/scratchpad.py,
    hw/accumulator.py and hw/alu/alu_tables.py have them."""
    shared = config.out_readers == 2
    for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.OUT):
        tile = 8 * config.tile_bytes(buffer)
        word = max(tile, config.bus_bits)
        if buffer is Buffer.OUT and shared:
            word = max(word, 8 * config.tile_bytes(Buffer.INP))
        depth = max(2, config.tiles(buffer) * tile // word)
        for _ in range(2 if buffer is Buffer.OUT and shared else 1):        # a copy per reader
            yield word, depth
    for _ in range(config.acc_banks):
        yield 8 * config.tile_bytes(Buffer.ACC), config.acc_bank_tiles
    if config.tables:
        for _ in range(config.batch * config.block_out):
            yield config.acc_bits, TABLES * TABLE_WORDS
