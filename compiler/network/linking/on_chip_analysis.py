"""What a layer's program would need to find its input on the chip, or to leave its result there.

A program loads a whole tensor into inp, inside its border, and multiplies it; GEMM reads tiles of
out as well (`Config.out_readers`). If the layer before leaves its results in out just as this one
would have loaded them, nothing need be stored or loaded. Both are seen in the encoded instructions,
whatever operator they are of:

    first   … requantize → out, store ┐            … requantize → out ┐
                                    DRAM     →                        │
    second  load → inp, window inp …  ┘              fill the border, window out …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    Opcode,
    Requantize,
    RequantizeFlags,
    Store,
)
from ....isa.program import Program
from ....isa.stream import Stream, encode, positions_of
from ...graph.types import Array
from .micro_ops import flags_of, micro_ops_of, sequences, source_unit
from .retarget_alu import iteration_tiles

KINDS: dict[int, type[Alu | AluI | Requantize]] = {
    Opcode.ALU: Alu, Opcode.ALUI: AluI, Opcode.REQUANTIZE: Requantize}
REMEMBERED = 256            # programs


@dataclass(frozen=True)
class Box:
    """Tiles in three loops."""

    first: int
    loops: tuple[int, int, int]
    strides: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Input:
    """How a program wants to find a tensor on the chip: the place of each of its tiles, counted
    from the first, and a border. Tiles are those of out."""

    places: Array
    tiles: int
    border: tuple[Box, ...]
    fill: int
    inp: int                            # the tile of inp that is its first

    def fill_border(self, first: int) -> Stream:
        """Instructions that fill the border, where the tensor begins at a tile of out."""
        return encode([AluI(op=AluOp.MOVE, dst=first + box.first, loops=box.loops,
                            dst_stride=box.strides, target=Buffer.OUT, immediate=self.fill)
                       for box in self.border])


@dataclass(frozen=True, eq=False)
class Result:
    """How a program leaves its result: which tile of the tensor each iteration of an instruction of
    the ALU makes, the stores that are no more needed, and how much of out is used for the rest."""

    made: dict[int, Array]
    stores: Array
    rest: int


@lru_cache(REMEMBERED)
def input_of(program: Program, name: str) -> Input | None:
    """The input of a name as the program loads it; None if it is not loaded once and whole, or not
    only multiplied."""
    config, segment = program.config, segment_of(program, name)
    tile = config.tile_bytes(Buffer.INP)
    _, loads = positions_of(program.code, Load)
    mine = loads[loads["segment"] == segment]
    if not config.gemm_out_tiles or not len(mine) or (mine["buffer"] != Buffer.INP).any() or (
            (loads["segment"] != segment) & (loads["buffer"] == Buffer.INP)).any():
        return None
    places = np.full(program.segments[segment].size // tile, -1, np.int64)
    taken = np.zeros(max(config.tiles(Buffer.INP), config.gemm_out_tiles), bool)
    border: list[Box] = []
    for load in mine:
        whole, inside, sources = _load_mapping(load, tile)
        if not inside.size or whole.max() >= len(taken) or sources.max() >= len(places) or (
                (places[sources] >= 0).any() or taken[whole].any()):
            return None                                 # a part is loaded again, or overwritten
        places[sources], taken[whole] = inside, True
        border += _border(load)
    fills = set(mine["pad_value"][mine["pad"].any(axis=1)].tolist())
    if (places < 0).any() or len(fills) > 1:
        return None
    first, last = (int(np.flatnonzero(taken)[each]) for each in (0, -1))
    found = Input(places - first, last + 1 - first,
                  tuple(Box(box.first - first, box.loops, box.strides) for box in border),
                  fills.pop() if fills else 0, first)
    return _to_narrower_tiles(found, config.inp_groups) if config.inp_groups > 1 else (
        _to_wider_tiles(found, config.acc_groups))


def _to_narrower_tiles(found: Input, groups: int) -> Input:
    """The same in tiles of out, of which an activation tile has several."""
    places = (found.places[:, None] * groups + np.arange(groups)).ravel()
    border = tuple(Box(box.first * groups, (*box.loops[:2], box.loops[2] * groups),
                       (box.strides[0] * groups, box.strides[1] * groups, 1))
                   for box in found.border)
    return replace(found, places=places, tiles=found.tiles * groups, border=border)


def _to_wider_tiles(found: Input, groups: int) -> Input | None:
    """The same in tiles of out, which have several activation tiles each; None if these are not
    side by side."""
    places = found.places.reshape(-1, groups)
    numbers = [number for box in found.border
               for number in (box.first, box.loops[2], *box.strides[:2])]
    if (places % groups != np.arange(groups)).any() or (np.ptp(places // groups, axis=1)).any() or (
            any(number % groups for number in numbers)):
        return None
    border = tuple(Box(box.first // groups, (*box.loops[:2], box.loops[2] // groups),
                       (box.strides[0] // groups, box.strides[1] // groups, 1))
                   for box in found.border)
    return replace(found, places=places[:, 0] // groups, tiles=-(-found.tiles // groups),
                   border=border)


def _load_mapping(load: np.void, tile: int) -> tuple[Array, Array, Array]:
    """Tiles of the scratchpad that a load fills, border included, those inside, and the tiles of
    the tensor that they are."""
    planes, rows, columns = load["shape"].tolist()
    top, bottom, left, right = load["pad"].tolist()
    first, pitch, width = int(load["sram"]), int(load["sram_pitch"]), left + columns + right
    whole = iteration_tiles(first, (planes, top + rows + bottom, width), (pitch, width, 1))
    steps = *load["stride"].tolist(), tile
    sources = iteration_tiles(int(load["offset"]), (planes, rows, columns), steps) // tile
    return whole, whole[:, top:top + rows, left:left + columns], sources


def _border(load: np.void) -> Iterator[Box]:
    """What a load fills above, below, and on both sides."""
    planes, rows, columns = load["shape"].tolist()
    top, bottom, left, right = load["pad"].tolist()
    first, pitch, width = int(load["sram"]), int(load["sram_pitch"]), left + columns + right
    inside = first + top * width
    for begin, height, breadth in ((first, top, width), (inside + rows * width, bottom, width),
                                   (inside, rows, left), (inside + left + columns, rows, right)):
        if height * breadth:
            yield Box(begin, (planes, height, breadth), (pitch, width, 1))


def is_multiplied(program: Program, name: str) -> bool:
    """Whether a program loads an input of a name for GEMM alone."""
    _, loads = positions_of(program.code, Load)
    mine = loads["buffer"][loads["segment"] == segment_of(program, name)]
    return len(mine) > 0 and bool((mine == Buffer.INP).all())


@lru_cache(REMEMBERED)
def result_of(program: Program, name: str) -> Result | None:
    """The result of a name as the program makes it; None if what it stores is not made by the ALU
    for that alone."""
    config, segment, code = program.config, segment_of(program, name), program.code
    tile = config.tile_bytes(Buffer.OUT)
    maker = np.full((config.tiles(Buffer.OUT), 2), -1, np.int64)        # instruction, iteration
    written: dict[int, Array] = {}
    made: dict[int, Array] = {}
    stores: list[int] = []
    words = code.view(Store.dtype())
    for position, opcode in enumerate(code["opcode"].tolist()):
        if opcode in KINDS:
            tiles = _out_tiles_written(code, position, KINDS[opcode])
            if tiles is not None:
                written[position] = tiles
                maker[tiles, 0], maker[tiles, 1] = position, np.arange(len(tiles))
        elif opcode == Opcode.STORE and words["segment"][position] == segment:
            source, target = _store_mapping(words[position], tile)
            makers, iterations = maker[source].T
            if words["buffer"][position] != Buffer.OUT or (makers < 0).any():
                return None
            for each in sorted(set(makers.tolist())):
                here = made.setdefault(each, np.full(len(written[each]), -1, np.int64))
                here[iterations[makers == each]] = target[makers == each]
            stores.append(position)
    if not made or any((each < 0).any() for each in made.values()) or (
            _read_by_gemm(program, [written[each] for each in made])):
        return None
    return Result(made, np.array(stores), max((int(tiles.max()) + 1 for position, tiles
                                               in written.items() if position not in made),
                                              default=0))


def _store_mapping(store: np.void, tile: int) -> tuple[Array, Array]:
    """Tiles of the scratchpad that a store takes, and the tiles of the tensor that they are."""
    shape = tuple(int(each) for each in store["shape"])
    source = iteration_tiles(int(store["sram"]), shape, (*store["sram_pitch"], 1))
    target = iteration_tiles(int(store["offset"]), shape, (*store["stride"], tile)) // tile
    return source.ravel(), target.ravel()


@lru_cache(REMEMBERED)
def leaves_late(program: Program, name: str) -> bool:
    """Whether a program has read all of its input from inp before it makes anything of a result."""
    made = result_of(program, name)
    reads = [position for position in sequences(program)
             if not flags_of(program)[position] & GemmFlags.OUT]
    return made is not None and max(reads, default=-1) < min(made.made)


def segment_of(program: Program, name: str) -> int:
    return next(number for number, each in enumerate(program.segments) if each.name == name)


def _out_tiles_written(code: Stream, position: int,
                       kind: type[Alu | AluI | Requantize]) -> Array | None:
    """Tiles of out that an instruction writes, in order; None if it writes none."""
    word = code.view(kind.dtype())[position]
    to_out = (not int(word["flags"]) & RequantizeFlags.ACC if kind is Requantize
              else word["target"] == Buffer.OUT)
    return iteration_tiles(int(word["dst"]), word["loops"],
                           word["dst_stride"]).ravel() if to_out else None


def _read_by_gemm(program: Program, written: list[Array]) -> bool:
    """Whether a gemm may read some tiles of out: those between the first and the last that it
    reads."""
    mine = np.zeros(program.config.tiles(Buffer.OUT), bool)
    for each in written:
        mine[each] = True
    sources = micro_ops_of(program)["src"].astype(np.int64)
    for position, used in sequences(program).items():
        if flags_of(program)[position] & GemmFlags.OUT:
            word = program.code.view(Gemm.dtype())[position]    # a window has the same places
            steps = iteration_tiles(0, np.minimum(word["loops"], 2), [
                (int(count) - 1) * int(stride)
                for count, stride in zip(word["loops"], word["src_stride"], strict=True)])
            first, last = sources[used].min() + steps.min(), sources[used].max() + steps.max()
            tiles = source_unit(program.config, flags_of(program)[position])
            if mine[int(first * tiles):int(last * tiles) + max(1, int(tiles))].any():
                return True
    return False
