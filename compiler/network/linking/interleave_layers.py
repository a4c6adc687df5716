"""Two layers at the same time: while one keeps the MAC array busy, the other moves data.

The second layer reads what the first writes, so its instructions stand in the stream as soon as
what they load is stored: a few steps behind, since engines work in order, and a load that waits
would hold up those after it. Each layer has a half of every scratchpad.

    first    L G A S L G A S L G A S L G A S
    second               └ L A S └ L A S …
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....base.errors import ConfigError
from ....isa.config import Config
from ....isa.instructions import SCRATCHPADS, Buffer, Load, Store
from ....isa.stream import Stream, join
from ...errors import CompileError
from ...graph.types import Array
from .dram_places import Place

BEHIND = 2                  # stores of the first layer between one that is awaited and its reader


def halve_scratchpads(config: Config) -> Config:
    """A configuration with half of every scratchpad."""
    sizes = {f"{buffer.name.lower()}_bytes": getattr(config, f"{buffer.name.lower()}_bytes") // 2
             for buffer in SCRATCHPADS}
    try:
        return replace(config, **sizes, acc_banks=max(1, config.acc_banks // 2))
    except ConfigError as error:
        raise CompileError(f"scratchpads are too small to be divided: {error}") from None


def interleave(first: Stream, second: Stream, config: Config, place: Place, size: int) -> Stream:
    """Both streams in one, given where the tensor lies that the first writes and the second
    reads."""
    tile = config.tile_bytes(Buffer.OUT)
    owner = np.full(-(-size // tile), -1, np.int64)         # the last store of each tile
    stores = np.flatnonzero(first["opcode"] == Store.opcode)
    words = first.view(Store.dtype())
    for number, position in enumerate(stores):
        if words["segment"][position] == place.segment:
            touched = _tiles(words[position], place, tile, tile)
            owner[touched[(touched >= 0) & (touched < len(owner))]] = number
    after = _last_store_awaited(second, config, place, owner, tile)
    # After which instruction of the first each of the second stands.
    late = np.minimum(after + BEHIND, len(stores) - 1)
    behind = np.where(after < 0, -1, stores[late]) if len(stores) else np.full(len(second), -1)
    order = np.argsort(np.concatenate([np.arange(len(first)) * 2, behind * 2 + 1]), kind="stable")
    merged: Stream = join([first, second])[order]
    return merged


def _last_store_awaited(second: Stream, config: Config, place: Place, owner: Array,
                        tile: int) -> Array:
    """For each instruction of the second layer, the last store of the first that it, or one
    before it, depends on."""
    words, awaited = second.view(Load.dtype()), np.full(len(second), -1, np.int64)
    for position in np.flatnonzero(second["opcode"] == Load.opcode):
        load = words[position]
        if load["segment"] == place.segment and min(load["shape"]) > 0:
            touched = _tiles(load, place, config.tile_bytes(Buffer(load["buffer"])), tile)
            touched = touched[(touched >= 0) & (touched < len(owner))]
            awaited[position] = owner[touched].max(initial=-1)
    found: Array = np.maximum.accumulate(awaited)
    return found


def _tiles(word: np.void, place: Place, moved: int, tile: int) -> Array:
    """The tiles of a tensor that a transfer touches, whose own tiles have `moved` bytes."""
    planes, rows, columns = (int(each) for each in word["shape"])
    plane_step, row_step = (int(each) for each in word["stride"])
    first = int(word["offset"]) - place.offset
    count = -(-columns * moved // tile)
    starts = (first + np.arange(planes)[:, None, None] * plane_step
              + np.arange(rows)[None, :, None] * row_step + np.arange(count)[None, None, :] * tile)
    tiles: Array = starts.ravel() // tile
    return tiles
