"""One stream from many: layers that were compiled alone, joined without a stop between them.

Instructions keep their order; only places change. Tensors find theirs in the segments of the whole
program, micro-ops are joined, and scratchpads are shared: neighbours stand at opposite ends, so
that what the next layer needs first is loaded while this one still computes. Tokens are derived
anew for the whole stream, from what really meets in scratchpads and DRAM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

import numpy as np

from ....base.checked_values import printable
from ....base.classes.dataclass import dataclass
from ....isa.config import INDEX_BITS, Config
from ....isa.instructions import (
    SCRATCHPADS,
    TABLE_SHIFT,
    TABLES,
    Alu,
    AluI,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    Opcode,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    Table,
    Window,
)
from ....isa.program import Access, Program, Segment, Tensor
from ....isa.stream import Stream, encode, join
from ....isa.verification.token_cache import with_cached_tokens
from ...accelerator.emission.footprint import footprint
from ...errors import CompileError
from ...graph.types import Array
from .dram_places import Grid, Place
from .interleave_layers import interleave
from .micro_ops import micro_ops_of, modes
from .on_chip import OnChip, Stay, plan_on_chip, rewrite_layer

INDICES = 1 << INDEX_BITS   # of tiles, or rows of weights, that a micro-op can name
MICRO_OPS, CONSTANTS, INPUTS, OUTPUTS, ARENA = range(5)
NAMES = ("micro_ops", "constants", "inputs", "outputs", "arena")
REMEMBERED = 128            # programs of layers
LABEL_LENGTH = 1000         # characters


@dataclass(frozen=True)
class Layer:
    """A program of one operator, and what its tensors are in the whole: activations in their
    places, and constants."""

    name: str
    program: Program
    places: Mapping[str, Place]
    constants: Mapping[str, bytes]
    with_next: bool = False         # each of the two has a half of the scratchpads
    output_size: int = 0            # bytes
    stays: bool = False             # the result, on the chip, for the next layer alone ...
    takes: str = ""                 # ... whose input this is


@dataclass
class Pool:
    """Bytes that are put one after the other; what is there already is not put there again."""

    grid: Grid
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    known: dict[bytes, int] = field(default_factory=dict)
    size: int = 0

    def place(self, data: bytes) -> int:
        """The offset of some bytes, which are added if they are new."""
        if data not in self.known:
            offset = self.grid.after(self.size, len(data))
            self.known[data] = offset
            self.pieces.append((offset, data))
            self.size = offset + len(data)
        return self.known[data]

    def content(self) -> Array:
        content = np.zeros(max(1, self.size), np.uint8)
        for offset, data in self.pieces:
            content[offset:offset + len(data)] = np.frombuffer(data, np.uint8)
        return content


@dataclass(frozen=True)
class Sizes:
    """Bytes of the segments that hold activations."""

    inputs: int
    outputs: int
    arena: int


def link(layers: Sequence[Layer], config: Config, sizes: Sizes,
         tensors: Iterable[Tensor]) -> Program:
    """The program of all layers, each under a label of its name; two that run at the same time have
    their labels at the same place."""
    grid = Grid.of(config)
    micro_ops, constants = Pool(grid), Pool(grid)
    code: list[Stream] = []
    labels: dict[str, int] = {}
    before: Moves = dict.fromkeys(SCRATCHPADS, 0)
    waiting: tuple[Layer, Stream] | None = None         # for the one that it is interleaved with
    position = 0
    for layer, stays in zip(layers, plan_on_chip(layers, config), strict=True):
        if waiting is not None:
            moves = {buffer: config.tiles(buffer) // 2 for buffer in SCRATCHPADS}
            first, stream = waiting
            other = _relocate(layer, moves, micro_ops, constants, second=True)
            stream = interleave(stream, other, config, first.places["output"],
                                first.output_size)
        elif layer.with_next:
            moves = dict.fromkeys(SCRATCHPADS, 0)
            waiting = layer, _relocate(layer, moves, micro_ops, constants)
            labels[_fresh(layer.name, labels)] = position
            continue
        else:
            moves = _moves(layer.program, config, before)
            if stays.rest is not None:
                moves[Buffer.OUT] = stays.rest
            stream = _relocate(layer, moves, micro_ops, constants, stays)
        waiting = None
        labels[_fresh(layer.name, labels)] = position
        code.append(stream)
        position += len(stream)
        before = moves
    segments = [
        Segment(NAMES[MICRO_OPS], max(1, micro_ops.size), Access.READ, micro_ops.content()),
        Segment(NAMES[CONSTANTS], max(1, constants.size), Access.READ, constants.content()),
        Segment(NAMES[INPUTS], max(1, sizes.inputs), Access.READ),
        Segment(NAMES[OUTPUTS], max(1, sizes.outputs), Access.WRITE),
        Segment(NAMES[ARENA], max(1, sizes.arena), Access.WRITE)]
    whole = join([*code, encode([Sync()])])
    return with_cached_tokens(Program(config, whole, tuple(segments), tuple(tensors), labels))


def _fresh(name: str, taken: Mapping[str, int]) -> str:
    """A label for a layer, which has any name that its model gave it. Images hold printable ones
    of limited length."""
    name = printable(name)[:LABEL_LENGTH]
    number, found = 1, name
    while found in taken:
        number, found = number + 1, f"{name}.{number + 1}"
    return found


Moves = dict[Buffer, int]           # how far tiles are moved in each scratchpad
FixedMoves = tuple[tuple[Buffer, int], ...]


def _moves(program: Program, config: Config, before: Moves) -> Moves:
    """Not at all after a neighbour that was moved, else up to the other end, or as far as indices
    reach. Banks of the accumulator stay banks."""
    moves: Moves = {}
    for buffer, used in _scratchpad_use(program).items():
        reach = INDICES // _weight_rows(program) if buffer == Buffer.WGT else INDICES
        room = max(0, min(config.tiles(buffer), reach) - used)
        if buffer == Buffer.ACC:
            room -= room % config.acc_bank_tiles
        moves[buffer] = 0 if before[buffer] else room
    return moves


def _relocate(layer: Layer, moves: Moves, micro_ops: Pool, constants: Pool,
              stays: OnChip | None = None, *, second: bool = False) -> Stream:
    """The instructions of a layer where they belong in the whole, without its end. The second of
    two at the same time has the second half of the tables."""
    stays = stays or OnChip()
    places = _places(layer, moves, micro_ops, constants, stays)
    found = [places[segment.name] for segment in layer.program.segments]
    offsets = np.array([each.offset for each in found], np.uint32)
    numbers = np.array([each.segment for each in found], np.uint8)
    rewritten = _rewrite(layer.program, tuple(moves.items()), TABLES // 2 if second else 0, stays,
                         layer.takes, tuple(each.segment > CONSTANTS for each in found))
    code = rewritten.code.copy()
    for kind, here in ((Load, rewritten.loads), (Store, rewritten.stores)):
        words = code.view(kind.dtype())
        segments = words["segment"][here]
        words["offset"][here] += offsets[segments]
        words["segment"][here] = numbers[segments]
    return code


@dataclass(frozen=True, eq=False)
class Rewritten:
    """A layer's instructions for tiles that were moved, in segments of its own, and where its
    transfers are."""

    code: Stream
    loads: Array
    stores: Array


@lru_cache(4 * REMEMBERED)
def _rewrite(program: Program, moves: FixedMoves, first_table: int, stays: OnChip, takes: str,
             wait: tuple[bool, ...]) -> Rewritten:
    """A layer is tried in many streams, but in few places. `wait` says which of its segments others
    may still have to write."""
    code = rewrite_layer(_move_tiles(program, moves, first_table), program, takes, stays)
    code = _constants_first(code[code["opcode"] != Opcode.SYNC], np.array(wait))
    loads, stores = (np.flatnonzero(code["opcode"] == kind.opcode) for kind in (Load, Store))
    return Rewritten(code, loads, stores)


def _move_tiles(program: Program, moves: FixedMoves, first_table: int) -> Stream:
    """The instructions of a layer for tiles that were moved, and for tables from one on."""
    code, steps = program.code.copy(), dict(moves)
    moved = np.array([steps[buffer.scratchpad] for buffer in Buffer], np.uint16)
    for kind in (Load, Store):
        words, here = code.view(kind.dtype()), _positions(program, kind)
        words["sram"][here] += moved[words["buffer"][here]]
    for products in (Gemm, Window):
        code.view(products.dtype())["uop"][_positions(program, products)] += np.uint16(
            steps[Buffer.UOP])
    for lanes in (Alu, AluI, Requantize):
        _move_lanes(code, lanes, steps)
    _move_tables(code, steps, first_table)
    return code


def _positions(program: Program, kind: type[Instruction]) -> Array:
    """Where a program has instructions of a kind."""
    return np.flatnonzero(program.code["opcode"] == int(kind.opcode))


def _constants_first(code: Stream, wait: Array) -> Stream:
    """What a layer loads before anything else: first what is there already, then activations, for
    which the load engine may have to wait until the layer before has stored them."""
    others = np.flatnonzero(code["opcode"] != Opcode.LOAD)
    count = int(others[0]) if len(others) else len(code)
    waits = wait[code.view(Load.dtype())["segment"][:count]]
    order = np.concatenate([np.argsort(waits, kind="stable"), np.arange(count, len(code))])
    reordered: Stream = code[order]
    return reordered


def _move_lanes(code: Stream, kind: type[Alu | AluI | Requantize], moves: Moves) -> None:
    words, here = code.view(kind.dtype()), code["opcode"] == int(kind.opcode)
    if not here.any():
        return
    to_out = (words["flags"] & RequantizeFlags.ACC == 0 if kind is Requantize
              else words["target"] == Buffer.OUT)
    words["dst"][here & to_out] += np.uint16(moves[Buffer.OUT])
    words["dst"][here & ~to_out] += np.uint16(moves[Buffer.ACC])
    for name in {Alu: ("lhs", "rhs"), AluI: ("src",), Requantize: ("src", "params")}[kind]:
        words[name][here] += np.uint16(moves[Buffer.ACC])


def _move_tables(code: Stream, moves: Moves, first: int) -> None:
    """Fill tables from tiles that were moved, and count their numbers from another one on."""
    words, here = code.view(Table.dtype()), code["opcode"] == Table.opcode
    words["src"][here] += np.uint16(moves[Buffer.ACC])
    words["table"][here] += np.uint8(first)
    words, here = code.view(Requantize.dtype()), code["opcode"] == Requantize.opcode
    words["flags"][here & (words["flags"] & RequantizeFlags.LOOKUP != 0)] += np.uint8(
        first << TABLE_SHIFT)


def _places(layer: Layer, moves: Moves, micro_ops: Pool, constants: Pool,
            stays: OnChip) -> dict[str, Place]:
    """Where each segment of a layer's program is in the whole."""
    places = {}
    for segment in layer.program.segments:
        if segment.name == NAMES[MICRO_OPS]:
            data = _relocate_micro_ops(layer.program, tuple(moves.items()), stays.taken)
            places[segment.name] = Place(MICRO_OPS, micro_ops.place(data))
        elif segment.name in layer.constants:
            places[segment.name] = Place(CONSTANTS, constants.place(layer.constants[segment.name]))
        else:
            places[segment.name] = layer.places[segment.name]
    return places


@lru_cache(REMEMBERED)
def _relocate_micro_ops(program: Program, fixed: FixedMoves, taken: Stay | None) -> bytes:
    """The micro-ops of a layer for tiles that were moved. Those of a depthwise product count groups
    of lanes and rows of weights, and some read results as activations."""
    words, config, moves = micro_ops_of(program).copy(), program.config, dict(fixed)
    flags = modes(program)
    depthwise = flags & GemmFlags.DEPTHWISE != 0
    rows, groups = (np.where(depthwise, each, 1) for each in (config.block_out, config.acc_groups))
    # In groups of lanes, which both kinds of tiles have.
    inp, out = config.inp_groups * moves[Buffer.INP], config.acc_groups * moves[Buffer.OUT]
    if taken is not None:
        inp = config.acc_groups * taken.first - config.inp_groups * taken.wanted.inp
    source = np.where(flags & GemmFlags.OUT != 0, out, inp) // np.where(
        depthwise, 1, config.inp_groups)
    for name, move in (("dst", moves[Buffer.ACC] * groups), ("src", source),
                       ("wgt", moves[Buffer.WGT] * rows)):
        moved = words[name].astype(np.int64) + move
        if moved.max(initial=0) >= INDICES:
            raise CompileError(f"{name} of a micro-op is {moved.max()}, but must be less than "
                               f"{INDICES}; take smaller scratchpads")
        words[name] = moved
    return words.tobytes()


@lru_cache(REMEMBERED)
def _scratchpad_use(program: Program) -> dict[Buffer, int]:
    """How much a layer uses of each scratchpad, which is asked for every stream that it is tried
    in."""
    return footprint(program.code)


@lru_cache(REMEMBERED)
def _weight_rows(program: Program) -> int:
    """What micro-ops count of a tile of weights: itself, or its rows if products are depthwise."""
    code = program.code
    flags = code.view(Gemm.dtype())["flags"][code["opcode"] == Gemm.opcode]
    by_lane = (flags & GemmFlags.DEPTHWISE).any() or (code["opcode"] == Window.opcode).any()
    return program.config.block_out if by_lane else 1
