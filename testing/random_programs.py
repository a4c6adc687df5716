"""Random programs that are valid by construction: what every execution is compared on.

A program fills a window of each scratchpad, does many random things inside these windows (so that
instructions of different engines conflict often), writes the windows out and ends. Tokens are
derived from the data. The same seed gives the same program.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..isa.config import INDEX_BITS, Config
from ..isa.instructions import (
    PARAMETER_TILES,
    SCRATCHPADS,
    TABLES,
    WINDOW_ROWS,
    WINDOW_TAPS,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
    Table,
    Window,
    lookup_flags,
)
from ..isa.program import Access, Program, Segment
from ..isa.stream import encode, encode_micro_ops
from ..isa.verification.bounds import Range, index_range
from ..isa.verification.derive_tokens import with_tokens

CONSTANTS, INPUT, SCRATCH, DUMP = range(4)      # segments
WINDOW_TILES = 48                               # most tiles of a scratchpad that are used
MOST_ITERATIONS = 40
UOPS = 16
ATTEMPTS = 50
Triple = tuple[int, int, int]
CORNERS = (0, 1, -1, 127, -128, (1 << 31) - 1, -(1 << 31), 1 << 30)


@dataclass
class Part:
    """The part of a scratchpad that a program uses, its window."""

    first: int
    tiles: int

    def place(self, rng: random.Random, low: int, high: int) -> int | None:
        """A base for indices from `low` to `high` relative to it, if they fit."""
        room = self.tiles - (high - low + 1)
        return None if room < 0 else self.first + rng.randint(0, room) - low


@dataclass
class Draft:
    """A program in the making."""

    config: Config
    rng: random.Random
    windows: dict[Buffer, Part] = field(default_factory=dict)
    uops: list[MicroOp] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    scratch_bytes: int = 0
    tables: tuple[int, ...] = ()        # that it fills and looks results up in

    @property
    def dense(self) -> int:
        """How many micro-ops, from the first on, are for matrix products; the others are for
        depthwise gemms and, every second one, for windows."""
        return -(-2 * self.windows[Buffer.UOP].tiles // 3)

    def is_window_aligned(self, number: int) -> bool:
        """Whether the rows of a micro-op for depthwise gemms are those of a window."""
        return self.config.has_windows and (number - self.dense) % 2 == 0


def random_program(config: Config, seed: int, *, length: int = 40) -> Program:
    """A valid program of about `length` instructions between its prologue and its epilogue."""
    draft = begin_draft(config, f"{config.digest} {seed}")
    makers = [*(MAKERS[name] for name in OFTEN),
              *([_window_product, _window_product] if config.has_windows else []),
              *([_table] if config.tables else [])]
    while len(draft.code) < length:
        if draft.rng.random() < 0.02:
            draft.code.append(Sync(action=SyncAction.BARRIER))
        instruction = draft.rng.choice(makers)(draft)
        if instruction is not None:
            draft.code.append(instruction)
    return finish_draft(draft, f"seed {seed}, length {length}")


def begin_draft(config: Config, seed: str) -> Draft:
    """A program that has filled its windows, and done nothing else yet."""
    draft = Draft(config, random.Random(seed))
    for buffer in SCRATCHPADS:
        draft.windows[buffer] = _window(draft, buffer)
    draft.scratch_bytes = draft.rng.choice((1, 4)) * WINDOW_TILES * config.tile_bytes(Buffer.ACC)
    _fill(draft)
    return draft


def finish_draft(draft: Draft, generator: str) -> Program:
    """The program with its epilogue and its tokens."""
    _drain(draft)
    return with_tokens(Program(draft.config, encode(draft.code), _segments(draft),
                               provenance={"generator": generator}))


def _window(draft: Draft, buffer: Buffer) -> Part:
    capacity = draft.config.tiles(buffer)
    tiles = min(capacity, UOPS if buffer == Buffer.UOP else draft.rng.choice((12, WINDOW_TILES)))
    if buffer == Buffer.ACC and draft.config.tables:
        tiles = max(tiles, draft.config.table_tiles)
    # Rows of weights, and groups of lanes, must be addressable too.
    parts = {Buffer.WGT: draft.config.block_out, Buffer.INP: draft.config.inp_groups,
             Buffer.ACC: draft.config.acc_groups}
    capacity = min(capacity, (1 << INDEX_BITS) // parts.get(buffer, 1))
    inp = draft.windows.get(Buffer.INP)
    if buffer == Buffer.OUT and inp is not None:
        first = inp.first * draft.config.tile_bytes(Buffer.INP) // draft.config.tile_bytes(buffer)
        if first + tiles <= capacity and draft.rng.random() < 0.5:
            return Part(first, tiles)       # the same micro-ops lead to both
    first = draft.rng.choice((0, capacity - tiles, draft.rng.randint(0, capacity - tiles)))
    return Part(first, tiles)


def _fill(draft: Draft) -> None:
    """Load every window, so that nothing depends on what a scratchpad held before."""
    draft.uops = [_micro_op(draft, number) for number in range(draft.windows[Buffer.UOP].tiles)]
    offset = 0
    for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC):
        window = draft.windows[buffer]
        offset += -offset % draft.config.tile_bytes(buffer)
        draft.code.append(Load(buffer=buffer, segment=CONSTANTS, sram=window.first, offset=offset,
                               shape=(1, 1, window.tiles)))
        offset += window.tiles * draft.config.tile_bytes(buffer)
    out = draft.windows[Buffer.OUT]
    draft.code.append(AluI(op=AluOp.MOVE, dst=out.first, loops=(1, 1, out.tiles),
                           dst_stride=(0, 0, 1), target=Buffer.OUT,
                           immediate=draft.rng.randint(-200, 200)))
    if draft.config.tables:
        draft.tables = tuple(draft.rng.sample(range(TABLES), 2))
        acc = draft.windows[Buffer.ACC]
        for number in draft.tables:
            src = acc.place(draft.rng, 0, draft.config.table_tiles - 1)
            assert src is not None, "the window is large enough"
            draft.code.append(Table(table=number, src=src))


def _drain(draft: Draft) -> None:
    """Write the result windows to memory, where they can be compared."""
    offset = 0
    for buffer in (Buffer.ACC, Buffer.OUT):
        window = draft.windows[buffer]
        draft.code.append(Store(buffer=buffer, segment=DUMP, sram=window.first, offset=offset,
                                shape=(1, 1, window.tiles)))
        offset += window.tiles * draft.config.tile_bytes(buffer)
    draft.code.append(Sync(action=SyncAction.END))


def _segments(draft: Draft) -> tuple[Segment, ...]:
    config, rng = draft.config, np.random.default_rng(draft.rng.getrandbits(64))
    sizes = {buffer: draft.windows[buffer].tiles * config.tile_bytes(buffer)
             for buffer in draft.windows}
    constants = rng.integers(0, 256, sum(sizes.values()) + 4 * config.tile_bytes(Buffer.WGT),
                             np.uint8)
    micro_ops = np.frombuffer(encode_micro_ops(draft.uops).tobytes(), np.uint8)
    constants[:len(micro_ops)] = micro_ops
    acc = constants[-sizes[Buffer.ACC] - sizes[Buffer.OUT]:].view()
    corners = np.array(CORNERS, np.int64).astype(np.int32).view(np.uint8)
    acc[:min(len(corners), len(acc))] = corners[:len(acc)]
    data = rng.integers(0, 256, draft.scratch_bytes, np.uint8)
    return (Segment("constants", len(constants), Access.READ, constants),
            Segment("input", len(data), Access.READ, data),
            Segment("scratch", len(data), Access.WRITE, data[::-1].copy()),
            Segment("dump", sizes[Buffer.ACC] + sizes[Buffer.OUT], Access.WRITE))


def _micro_op(draft: Draft, number: int) -> MicroOp:
    """Indices inside the windows; for depthwise gemms, they count groups of lanes, and rows of
    weight tiles."""
    config, depthwise = draft.config, number >= draft.dense
    rows = config.block_out if depthwise else 1

    def inside(buffer: Buffer, groups: int = 1) -> int:
        window = draft.windows[buffer]
        index = window.first + draft.rng.randrange(window.tiles)
        if groups == 1 or not depthwise:
            return index
        return index * groups + draft.rng.randrange(groups)
    uop = MicroOp(dst=inside(Buffer.ACC, config.acc_groups),
                  src=inside(Buffer.INP, config.inp_groups), bias=inside(Buffer.ACC),
                  wgt=inside(Buffer.WGT) * rows + draft.rng.randrange(rows))
    if rows > 1 and draft.is_window_aligned(number):
        return replace(uop, wgt=uop.wgt // WINDOW_ROWS * WINDOW_ROWS)
    return uop


def _loops(draft: Draft) -> Triple:
    choices = (0, 1, 2, 3, 5, 16) if draft.rng.random() < 0.05 else (1, 1, 2, 3, 4, 7, 16)
    while True:
        outer, middle, inner = draft.rng.choices(choices, k=3)
        if outer * middle * inner <= MOST_ITERATIONS:
            return outer, middle, inner


def _strides(draft: Draft, loops: Triple, span: int) -> tuple[Triple, Range]:
    """Strides that keep a loop nest within `span` tiles, and what it reaches from base 0."""
    choices = (0, 0, 1, 1, 2, 3, 4, 8, -1, -2)
    for _ in range(ATTEMPTS):
        outer, middle, inner = draft.rng.choices(choices, k=3)
        low, high = index_range(0, loops, (outer, middle, inner)) or (0, 0)
        if high - low < span:
            return (outer, middle, inner), (low, high)
    return (0, 0, 0), (0, 0)


def _walk(draft: Draft, buffer: Buffer, loops: Triple) -> tuple[int, Triple]:
    """A base and strides that keep a loop nest in the window."""
    window = draft.windows[buffer]
    stride, (low, high) = _strides(draft, loops, window.tiles)
    base = window.place(draft.rng, low, high)
    assert base is not None, "strides were chosen to fit the window"
    return base, stride


def _gemm(draft: Draft) -> Gemm:
    """Micro-ops are given, so strides must suit all of them; those that fit none are zero."""
    rng = draft.rng
    window = draft.windows[Buffer.UOP]
    depthwise = rng.random() < 0.25
    begin, end = (draft.dense, window.tiles) if depthwise else (0, draft.dense)
    count = min(rng.choice((1, 1, 2, 3, 5, 8)), end - begin) if rng.random() < 0.97 else 0
    first = rng.randint(begin, end - count)
    chosen, loops = draft.uops[first:first + count], _loops(draft)
    dst_stride = _uop_strides(draft, Buffer.ACC, [each.dst for each in chosen], loops,
                              draft.config.acc_groups if depthwise else 1)
    from_out, src_stride = _sources(draft, [each.src for each in chosen], loops, depthwise)
    wgt_stride = _uop_strides(draft, Buffer.WGT, [each.wgt for each in chosen], loops,
                              draft.config.block_out if depthwise else 1)
    flags = _gemm_flags(rng, depthwise) | from_out
    return Gemm(flags=flags, uop=window.first + first, count=count,
                loops=loops, dst_stride=dst_stride, src_stride=src_stride, wgt_stride=wgt_stride)


def _sources(draft: Draft, bases: list[int], loops: Triple,
             depthwise: bool) -> tuple[GemmFlags, Triple]:
    """Whether activations come from out, as flags, and their strides."""
    groups = draft.config.inp_groups if depthwise else 1
    results = _results(draft)
    from_out = results is not None and draft.rng.random() < 0.4 and all(
        results.first * groups <= each < (results.first + results.tiles) * groups
        for each in bases)
    source = results if results is not None and from_out else draft.windows[Buffer.INP]
    return (GemmFlags.OUT if from_out else GemmFlags(0),
            _strides_within(draft, source, bases, loops, groups))


def _results(draft: Draft) -> Part | None:
    """The window of out as gemms count it: in activation tiles, of which all must be inside."""
    config, out = draft.config, draft.windows[Buffer.OUT]
    if not config.gemm_out_tiles:
        return None
    tile, activations = config.tile_bytes(Buffer.OUT), config.tile_bytes(Buffer.INP)
    first = -(-out.first * tile // activations)
    tiles = (out.first + out.tiles) * tile // activations - first
    return Part(first, tiles) if tiles > 0 else None


def _window_product(draft: Draft) -> Window | None:
    """The last iterations of the inner loop begin no sum, so their destinations may be anywhere."""
    rng, part = draft.rng, draft.windows[Buffer.UOP]
    suitable = [each for each in range(draft.dense, part.tiles) if draft.is_window_aligned(each)]
    if not suitable:
        return None
    number = rng.choice(suitable)
    uop, loops = draft.uops[number], _loops(draft)
    dst_stride = _uop_strides(draft, Buffer.ACC, [uop.dst], (
        loops[0], loops[1], max(loops[2] - WINDOW_TAPS + 1, 0)), draft.config.acc_groups)
    from_out, src_stride = _sources(draft, [uop.src], loops, depthwise=True)
    groups = _uop_strides(draft, Buffer.WGT, [uop.wgt // WINDOW_ROWS], loops,
                          draft.config.block_out // WINDOW_ROWS)
    outer, middle, inner = (WINDOW_ROWS * each for each in groups)
    flags = _gemm_flags(rng, depthwise=False) & ~(GemmFlags.FIRST_UOP | GemmFlags.FIRST_INNER)
    return Window(flags=flags | from_out, uop=part.first + number, loops=loops,
                  dst_stride=dst_stride, src_stride=src_stride, wgt_stride=(outer, middle, inner))


def _gemm_flags(rng: random.Random, depthwise: bool) -> GemmFlags:
    flags = GemmFlags.DEPTHWISE if depthwise else GemmFlags(0)
    if rng.random() < 0.5:
        flags |= GemmFlags.START
        flags |= GemmFlags(sum(each for each in GemmFlags
                               if each > GemmFlags.START and each != GemmFlags.OUT
                               and rng.random() < 0.3))
    return flags


def _uop_strides(draft: Draft, buffer: Buffer, bases: list[int], loops: Triple,
                 rows: int = 1) -> Triple:
    """Strides with which every base stays in the window, of `rows` indices a tile."""
    return _strides_within(draft, draft.windows[buffer], bases, loops, rows)


def _strides_within(draft: Draft, window: Part, bases: list[int], loops: Triple,
                    rows: int) -> Triple:
    first, last = window.first * rows, (window.first + window.tiles) * rows - 1
    if not bases:
        return 1, 1, 1
    for _ in range(ATTEMPTS // 5):
        stride, (low, high) = _strides(draft, loops, window.tiles * rows)
        if min(bases) + low >= first and max(bases) + high <= last:
            return stride
    return 0, 0, 0


def _alu(draft: Draft) -> Alu:
    loops = _loops(draft)
    target = draft.rng.choice((Buffer.ACC, Buffer.ACC, Buffer.OUT))
    rhs, rhs_stride = _walk(draft, Buffer.ACC, loops)
    acc, window = draft.windows[Buffer.ACC], draft.windows[target]
    stride, (low, high) = _strides(draft, loops, min(acc.tiles, window.tiles))
    lhs, dst = acc.place(draft.rng, low, high), window.place(draft.rng, low, high)
    assert lhs is not None, "strides were chosen to fit both windows"
    assert dst is not None
    return Alu(op=draft.rng.choice(list(AluOp)), dst=dst, lhs=lhs, rhs=rhs, loops=loops,
               dst_stride=stride, rhs_stride=rhs_stride, target=target)


def _alui(draft: Draft) -> AluI:
    loops = _loops(draft)
    target = draft.rng.choice((Buffer.ACC, Buffer.OUT))
    src, src_stride = _walk(draft, Buffer.ACC, loops)
    dst, dst_stride = _walk(draft, target, loops)
    immediate = draft.rng.choice((*CORNERS, draft.rng.randint(-300, 300)))
    return AluI(op=draft.rng.choice(list(AluOp)), dst=dst, src=src, loops=loops,
                dst_stride=dst_stride, src_stride=src_stride, target=target, immediate=immediate)


def _requantize(draft: Draft) -> Requantize | None:
    rng, loops = draft.rng, _loops(draft)
    acc = draft.windows[Buffer.ACC]
    step = rng.choice((0, 1, PARAMETER_TILES))
    params = acc.place(rng, 0, step * max(loops[0] - 1, 0) + PARAMETER_TILES - 1)
    if params is None:
        return None
    flags = rng.choice((RequantizeFlags(0), RequantizeFlags.ACC,
                        RequantizeFlags.ACC | RequantizeFlags.WIDE))
    flags |= rng.choice((RequantizeFlags(0), RequantizeFlags.EVEN, RequantizeFlags.AWAY))
    if draft.tables and not flags & RequantizeFlags.ACC and rng.random() < 0.7:
        flags |= lookup_flags(rng.choice(draft.tables))
    target = Buffer.ACC if flags & RequantizeFlags.ACC else Buffer.OUT
    src, src_stride = _walk(draft, Buffer.ACC, loops)
    dst, dst_stride = _walk(draft, target, loops)
    low, high = sorted((rng.randint(-128, 127), rng.choice((127, rng.randint(-128, 127)))))
    return Requantize(flags=flags, dst=dst, src=src, params=params, loops=loops,
                      dst_stride=dst_stride, src_stride=src_stride, params_stride=step,
                      zero_point=rng.randint(-128, 127), low=low, high=high)


def _table(draft: Draft) -> Table | None:
    src = draft.windows[Buffer.ACC].place(draft.rng, 0, draft.config.table_tiles - 1)
    return None if src is None else Table(table=draft.rng.choice(draft.tables), src=src)


def _box(draft: Draft, buffer: Buffer, size: int) -> tuple[Triple, int, tuple[int, int]] | None:
    """A shape, an offset and strides of a box of tiles inside `size` bytes of DRAM."""
    rng, tile = draft.rng, draft.config.tile_bytes(buffer)
    for _ in range(ATTEMPTS):
        shape = (rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 4)), rng.choice((1, 2, 3, 5, 9)))
        if rng.random() < 0.05:
            shape = (shape[0], shape[1], 0)
        stride = (rng.randint(-8, 24) * tile, rng.randint(-2, 12) * tile)
        low, high = index_range(0, shape, (*stride, tile)) or (0, 0)
        room = (size - (high - low) - tile) // tile
        if room >= 0:
            return shape, rng.randint(0, room) * tile - low, stride
    return None


def _load(draft: Draft) -> Load | None:
    """Any scratchpad but the micro-ops', from input or from what stores have written."""
    rng = draft.rng
    buffer = rng.choice((Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8))
    segment = rng.choice((INPUT, SCRATCH))
    box = _box(draft, buffer, draft.scratch_bytes)
    if box is None:
        return None
    shape, offset, stride = box
    top, bottom, left, right = (rng.choice((0, 0, 0, 1, 2)) for _ in range(4))
    width, height = left + shape[2] + right, top + shape[1] + bottom
    pitch = width * height + rng.choice((0, 0, 1, 3))
    window = draft.windows[buffer.scratchpad]
    sram = window.place(rng, 0, (shape[0] - 1) * pitch + width * height)
    if sram is None:
        return None
    value = rng.randint(-8, 7) if buffer == Buffer.WGT else rng.choice((0, -128, 127, 5))
    return Load(buffer=buffer, segment=segment, sram=sram, offset=offset, shape=shape,
                stride=stride, sram_pitch=pitch, pad=(top, bottom, left, right),
                pad_value=value)


def _store(draft: Draft) -> Store | None:
    rng = draft.rng
    buffer = rng.choice((Buffer.OUT, Buffer.ACC))
    box = _box(draft, buffer, draft.scratch_bytes)
    if box is None:
        return None
    shape, offset, stride = box
    pitch = (rng.choice((0, 1, 9, 12)), rng.choice((0, 1, 3, 9)))
    low, high = index_range(0, shape, (*pitch, 1)) or (0, 0)
    sram = draft.windows[buffer].place(rng, low, high)
    if sram is None:
        return None
    return Store(buffer=buffer, segment=SCRATCH, sram=sram, offset=offset, shape=shape,
                 stride=stride, sram_pitch=pitch)


# What draws an instruction, or None if it found no room for one; by the instruction's name.
MAKERS: dict[str, Callable[[Draft], Instruction | None]] = {
    "load": _load, "gemm": _gemm, "window": _window_product, "alu": _alu, "alui": _alui,
    "requantize": _requantize, "table": _table, "store": _store}
OFTEN = ("load", "load", "gemm", "gemm", "gemm", "alu", "alui", "requantize", "store")
