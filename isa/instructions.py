"""The instruction set, declared once. A bit position is written nowhere else.

Four engines run decoupled, each in order: LOAD, GEMM, ALU and STORE. FETCH hands them their
instructions in program order and executes `sync` itself. An instruction starts when its engine
holds a token from every engine in `wait` and, when its effects are complete, posts one to every
engine in `post`. There is one token counter for each ordered pair of engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum, IntFlag
from typing import Any, ClassVar

from ..base.classes.dataclass import dataclass
from .record import Fields, Record, Rule, i8, i16, i32, operand, u8, u16, u32

INSTRUCTION_BYTES = 32
POSITION_BITS = 21          # of an instruction's number: 64 MiB of code, and more in no program
ISA_VERSION = 1
SEGMENTS = 8                # windows into DRAM that the control registers describe
SEGMENT_ALIGNMENT = 4096    # bytes; bases on this grid make 4 KiB bursts a matter of the offset
PARAMETER_TILES = 3         # accumulator tiles read by requantize: bias, multiplier, shift
WINDOW_TAPS = 3             # products in a sum of a window
WINDOW_ROWS = 4             # rows of weights in a group, which a window takes the first three of
TABLES = 8                  # that the ALU holds, if it holds any
TABLE_ENTRIES = 256         # results of one table: one for each number of 8 bits
WORD_ENTRIES = 4            # entries in a lane of an accumulator tile
TABLE_WORDS = TABLE_ENTRIES // WORD_ENTRIES
TABLE_SHIFT = 5             # where the flags of a requantize have the number of a table


class Engine(IntEnum):
    """A unit with its own in-order command queue."""

    LOAD = 0
    GEMM = 1
    ALU = 2
    STORE = 3


class Engines(IntFlag):
    """A set of engines, as `wait` and `post` carry it."""

    LOAD = 1 << Engine.LOAD
    GEMM = 1 << Engine.GEMM
    ALU = 1 << Engine.ALU
    STORE = 1 << Engine.STORE


class Buffer(IntEnum):
    """A scratchpad, as DMA sees it."""

    UOP = 0     # micro-ops
    INP = 1     # activation tiles: batch × block_in
    WGT = 2     # weight tiles: block_out × block_in
    ACC = 3     # accumulator tiles: batch × block_out, 32 bits a lane
    ACC8 = 4    # the same tiles, 8 bits a lane in DRAM, sign-extended while loading
    OUT = 5     # result tiles: batch × block_out, 8 bits a lane

    @property
    def scratchpad(self) -> Buffer:
        """The buffer whose tiles these are."""
        return Buffer.ACC if self is Buffer.ACC8 else self


SCRATCHPADS = tuple(buffer for buffer in Buffer if buffer.scratchpad is buffer)


class AluOp(IntEnum):
    """What the ALU does in each lane to a left and a right operand."""

    ADD = 0     # left + right, wrapping
    SUB = 1     # left - right, wrapping
    MUL = 2     # left * right, low 32 bits
    MIN = 3
    MAX = 4
    SHR = 5     # left / 2**n rounded to nearest, ties up; n is the low five bits of right
    SHL = 6     # left * 2**n, wrapping
    MOVE = 7    # right: copies a tile or fills with a constant

    @property
    def reads_left(self) -> bool:
        """Whether there is a left operand to read."""
        return self is not AluOp.MOVE


class GemmFlags(IntFlag):
    """How a gemm multiplies and where its sums start."""

    DEPTHWISE = 1 << 0      # multiply lane by lane; tiles are addressed by group, weights by row
    START = 1 << 1          # start a new sum instead of adding to acc[dst] ...
    BIAS = 1 << 2           # ... from acc[bias] of the micro-op instead of zero
    OUT = 1 << 3            # activations are tiles of out, results of the ALU, instead of inp
    FIRST_UOP = 1 << 4      # start only at the first micro-op of the sequence
    FIRST_INNER = 1 << 5    # start only in the first iteration of the inner loop
    FIRST_MIDDLE = 1 << 6   # ... of the middle loop
    FIRST_OUTER = 1 << 7    # ... of the outer loop


class Rounding(IntEnum):
    """What a requantize does with the bits it drops."""

    TWICE = 0       # TFLite's convolutions and additions: high multiply, then shift
    EVEN = 1        # once, ties to even: ONNX
    AWAY = 2        # once, ties away from zero: TFLite's fully connected layers


class RequantizeFlags(IntFlag):
    """How a requantize rounds, where it writes, and whether results are looked up in a table.
    Neither EVEN nor AWAY: rounds twice. The numbers of TABLE_… add up to that of the table."""

    ACC = 1 << 0            # write to the accumulator instead of the out buffer
    WIDE = 1 << 1           # with ACC: keep 32 bits, no zero point, no clamp
    EVEN = Rounding.EVEN << 2
    AWAY = Rounding.AWAY << 2
    LOOKUP = 1 << 4         # write the table's entry for the result, in its place
    TABLE_1 = 1 << TABLE_SHIFT
    TABLE_2 = 2 << TABLE_SHIFT
    TABLE_4 = 4 << TABLE_SHIFT


# As plain numbers: NumPy takes far longer to compare an array with a member of an enum.
REQUANTIZE_FLAGS = tuple(map(int, RequantizeFlags))


class SyncAction(IntEnum):
    """What follows when every engine has come to rest."""

    BARRIER = 0     # the next instruction
    END = 1         # the end of the program


class Opcode(IntEnum):
    """First byte of every instruction. Zero is no instruction: blank memory is illegal."""

    LOAD = 1
    GEMM = 2
    ALU = 3
    ALUI = 4
    REQUANTIZE = 5
    STORE = 6
    SYNC = 7
    WINDOW = 8
    TABLE = 9


LOOPS = ("outer", "middle", "inner")
BOX = ("z", "y", "x")


@dataclass(frozen=True, kw_only=True)
class MicroOp(Record):
    """One tile product, relative to the loops of the gemm that runs it."""

    size = 8
    dst: int = operand(
        u16, "accumulator tile that receives the product; with `depthwise` and for a window, "
             "tile × acc_groups + group of lanes")
    src: int = operand(
        u16, "activation tile; with `depthwise` and for a window, tile × inp_groups + group of "
             "lanes")
    wgt: int = operand(
        u16, "weight tile; with `depthwise` and for a window, weight tile × block_out + row")
    bias: int = operand(
        u16, "accumulator tile a sum starts from, in the lanes of its own, with `start|bias`")


@dataclass(frozen=True, kw_only=True)
class Instruction(Record):
    """What all instructions share: an opcode byte, then what to wait for and what to post."""

    size = INSTRUCTION_BYTES
    lead = 1
    opcode: ClassVar[Opcode]
    engine: ClassVar[Engine | None]      # None: executed by FETCH

    wait: Engines = operand(u8, "engines to take a token from before starting",
                            default=Engines(0), kind=Engines)
    post: Engines = operand(u8, "engines to give a token to when complete",
                            default=Engines(0), kind=Engines)

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        either = fields.wait | fields.post
        if cls.engine is None:
            yield either != 0, lambda: "wait and post must be empty, for FETCH has no tokens"
        else:
            own = cls.engine.name.lower()
            yield either & (1 << cls.engine) != 0, lambda: (
                f"wait and post must not name {own}, its own engine, which runs in order already")

    @classmethod
    def lacks(cls, fields: Fields, config: Any) -> Iterator[Rule]:
        """Rules of accelerators that lack something: `config` is theirs."""
        yield from ()

    def encode(self) -> bytes:
        return bytes([self.opcode]) + super().encode()[self.lead:]


@dataclass(frozen=True, kw_only=True)
class Load(Instruction):
    """Copy a box of tiles from DRAM into a scratchpad, row by row, inside a border of padding.

    A row takes `left + x + right` tiles and a plane `top + y + bottom` rows of the scratchpad;
    planes are `sram_pitch` tiles apart. DRAM is not read where a size is zero: with x = 0 or
    y = 0 only the border is written, with z = 0 nothing at all.
    """

    opcode = Opcode.LOAD
    engine = Engine.LOAD
    buffer: Buffer = operand(
        u8, "scratchpad to fill", default=Buffer.INP, kind=Buffer, suffix=True,
        allowed=(Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8))
    segment: int = operand(u8, "segment to read")
    pad_value: int = operand(i8, "value of every lane of the border")
    sram: int = operand(u16, "first tile of the scratchpad, border included")
    offset: int = operand(u32, "byte of the segment at which the box starts")
    shape: tuple[int, int, int] = operand(u16, "tiles to read", default=(1, 1, 1), axes=BOX)
    sram_pitch: int = operand(u16, "tiles from plane to plane in the scratchpad")
    stride: tuple[int, int] = operand(i32, "bytes from plane to plane and row to row in DRAM",
                                      default=(0, 0), axes=("z", "y"))
    pad: tuple[int, int, int, int] = operand(
        u8, "border of each plane: rows above and below, tiles left and right",
        default=(0, 0, 0, 0), axes=("top", "bottom", "left", "right"))

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        yield from super().rules(fields)
        yield _segment_rule(fields)
        top, bottom, left, right = fields.pad
        yield (fields.buffer == Buffer.UOP) & (top | bottom | left | right != 0), lambda: (
            f"pad is {fields.pad}, but micro-ops cannot be padded")


@dataclass(frozen=True, kw_only=True)
class Gemm(Instruction):
    """Run a sequence of micro-ops in three nested loops, one tile product a cycle.

    Each adds `inp[src] · wgt[wgt]ᵀ` to `acc[dst]`, where every index is the micro-op's plus the
    three loop counters times their strides. With `start`, iterations whose `first_…` counters
    are all zero begin a new sum. With `out`, activations are `out[src]`: results of one layer that
    are multiplied for the next without a way through DRAM. They are tiles of `block_in` lanes, too.

    With `depthwise`, L = min(block_in, block_out) lanes are multiplied each by itself, with the
    first L weights of a row. A tile that is wider has several groups of L lanes: indices count
    these, and the other groups of an accumulator tile stay as they are.
    """

    opcode = Opcode.GEMM
    engine = Engine.GEMM
    flags: GemmFlags = operand(u8, "how to multiply, where sums start", default=GemmFlags(0),
                               kind=GemmFlags)
    uop: int = operand(u16, "first micro-op of the sequence")
    count: int = operand(u16, "micro-ops in the sequence", default=1)
    loops: tuple[int, int, int] = operand(u16, "iterations", default=(1, 1, 1), axes=LOOPS)
    dst_stride: tuple[int, int, int] = operand(
        i16, "accumulator tiles (groups, with `depthwise`) a step of each loop",
        default=(0, 0, 0), axes=LOOPS)
    src_stride: tuple[int, int, int] = operand(
        i16, "activation tiles (groups, with `depthwise`) a step of each loop",
        default=(0, 0, 0), axes=LOOPS)
    wgt_stride: tuple[int, int, int] = operand(
        i16, "weight tiles (rows, with `depthwise`) a step of each loop",
        default=(0, 0, 0), axes=LOOPS)

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        yield from super().rules(fields)
        dependent = fields.flags & ~(GemmFlags.DEPTHWISE | GemmFlags.START | GemmFlags.OUT)
        yield (dependent != 0) & (fields.flags & GemmFlags.START == 0), lambda: (
            f"flags has {dependent.name}, which means nothing without START")


@dataclass(frozen=True, kw_only=True)
class Window(Instruction):
    """Slide three taps of a depthwise kernel along the inner loop, three products a lane and cycle.

    An inner loop of N iterations makes N - 2 sums, none if N is less than three. Sum i adds
    `inp[src] ⊙ wgt[wgt]`, `inp[src'] ⊙ wgt[wgt' + 1]` and `inp[src''] ⊙ wgt[wgt'' + 2]` to
    `acc[dst]`, lane by lane: dst, src and wgt are the indices of iteration i, src' and wgt' those
    of the next one, src'' and wgt'' those of the one after. There is one micro-op. As in a
    depthwise gemm, dst and src count groups of lanes, and weights are rows of tiles. `wgt` must be
    a multiple of 4 in every iteration: three rows of a group of four. Where there is no sum, `dst`
    and the bias are not looked at. Needs `window_taps` = 3.
    """

    opcode = Opcode.WINDOW
    engine = Engine.GEMM
    flags: GemmFlags = operand(u8, "where sums start, where activations come from",
                               default=GemmFlags(0), kind=GemmFlags)
    uop: int = operand(u16, "the micro-op")
    loops: tuple[int, int, int] = operand(u16, "iterations", default=(1, 1, 1), axes=LOOPS,
                                          skip=2)       # where a gemm has its count
    dst_stride: tuple[int, int, int] = operand(
        i16, "groups of accumulator tiles a step of each loop", default=(0, 0, 0), axes=LOOPS)
    src_stride: tuple[int, int, int] = operand(
        i16, "groups of activation tiles a step of each loop", default=(0, 0, 0), axes=LOOPS)
    wgt_stride: tuple[int, int, int] = operand(
        i16, "rows of weight tiles a step of each loop", default=(0, 0, 0), axes=LOOPS)

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        yield from super().rules(fields)
        never = fields.flags & (GemmFlags.DEPTHWISE | GemmFlags.FIRST_UOP | GemmFlags.FIRST_INNER)
        yield never != 0, lambda: (
            f"flags has {never.name}, but a window is depthwise always, and has one micro-op whose "
            f"sums follow the inner loop")
        dependent = fields.flags & ~(GemmFlags.START | GemmFlags.OUT)
        yield (dependent != 0) & (fields.flags & GemmFlags.START == 0), lambda: (
            f"flags has {dependent.name}, which means nothing without START")


@dataclass(frozen=True, kw_only=True)
class Alu(Instruction):
    """Combine accumulator tiles lane by lane: `target[dst] = acc[lhs] op acc[rhs]`.

    The left operand walks with the destination. Results for `out` saturate to 8 bits.
    """

    opcode = Opcode.ALU
    engine = Engine.ALU
    op: AluOp = operand(u8, "operation", default=AluOp.ADD, kind=AluOp, suffix=True)
    dst: int = operand(u16, "first destination tile")
    lhs: int = operand(u16, "first left operand")
    rhs: int = operand(u16, "first right operand")
    loops: tuple[int, int, int] = operand(u16, "iterations", default=(1, 1, 1), axes=LOOPS)
    dst_stride: tuple[int, int, int] = operand(
        i16, "destination and left operand tiles a step", default=(0, 0, 0), axes=LOOPS)
    rhs_stride: tuple[int, int, int] = operand(
        i16, "right operand tiles a step", default=(0, 0, 0), axes=LOOPS)
    target: Buffer = operand(u8, "scratchpad to write", default=Buffer.ACC, kind=Buffer,
                             allowed=(Buffer.ACC, Buffer.OUT))


@dataclass(frozen=True, kw_only=True)
class AluI(Instruction):
    """Combine accumulator tiles with a constant: `target[dst] = acc[src] op immediate`.

    `alui.move` reads nothing and fills. Results for `out` saturate to 8 bits.
    """

    opcode = Opcode.ALUI
    engine = Engine.ALU
    op: AluOp = operand(u8, "operation", default=AluOp.ADD, kind=AluOp, suffix=True)
    dst: int = operand(u16, "first destination tile")
    src: int = operand(u16, "first left operand")
    loops: tuple[int, int, int] = operand(u16, "iterations", default=(1, 1, 1), axes=LOOPS)
    dst_stride: tuple[int, int, int] = operand(
        i16, "destination tiles a step", default=(0, 0, 0), axes=LOOPS)
    src_stride: tuple[int, int, int] = operand(
        i16, "left operand tiles a step", default=(0, 0, 0), axes=LOOPS)
    target: Buffer = operand(u8, "scratchpad to write", default=Buffer.ACC, kind=Buffer,
                             allowed=(Buffer.ACC, Buffer.OUT))
    immediate: int = operand(i32, "right operand of every lane")


@dataclass(frozen=True, kw_only=True)
class Requantize(Instruction):
    """Scale accumulators to 8 bits in one pass: bias, multiplier and shift of each channel,
    zero point, clamp, narrow.

    The parameters of a channel block are three accumulator tiles in a row: bias, multiplier,
    shift. They stand at `params + params_stride × outer` and are read when an iteration of the
    outer loop begins. ReLU and clip are `low` and `high`. With `lookup`, results for `out` are
    entries of a table: that for r is entry r + 128. Needs `tables` = 8.
    """

    opcode = Opcode.REQUANTIZE
    engine = Engine.ALU
    flags: RequantizeFlags = operand(u8, "how to round, where to write",
                                     default=RequantizeFlags(0), kind=RequantizeFlags)
    dst: int = operand(u16, "first destination tile")
    src: int = operand(u16, "first accumulator tile")
    params: int = operand(u16, "first of three parameter tiles")
    loops: tuple[int, int, int] = operand(u16, "iterations", default=(1, 1, 1), axes=LOOPS)
    dst_stride: tuple[int, int, int] = operand(
        i16, "destination tiles a step", default=(0, 0, 0), axes=LOOPS)
    src_stride: tuple[int, int, int] = operand(
        i16, "accumulator tiles a step", default=(0, 0, 0), axes=LOOPS)
    params_stride: int = operand(u8, "parameter tiles a step of the outer loop")
    zero_point: int = operand(i8, "added after scaling")
    low: int = operand(i8, "smallest result", default=-128)
    high: int = operand(i8, "largest result", default=127)

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        yield from super().rules(fields)
        acc, wide, even, away, lookup, *number = (
            fields.flags & each != 0 for each in REQUANTIZE_FLAGS)
        yield wide > acc, lambda: (
            "flags has WIDE without ACC, but out holds 8 bits only")
        yield even & away, lambda: "flags has both EVEN and AWAY, but rounds one way only"
        yield fields.low > fields.high, lambda: (
            f"low is {fields.low}, above high, which is {fields.high}")
        yield lookup & acc, lambda: (
            "flags has LOOKUP and ACC, but only results for out are looked up")
        for each in number:
            yield each > lookup, lambda: "flags has a table, which means nothing without LOOKUP"

    @classmethod
    def lacks(cls, fields: Fields, config: Any) -> Iterator[Rule]:
        if not config.tables:
            yield fields.flags & RequantizeFlags.LOOKUP != 0, lambda: (
                f"flags has LOOKUP, but tables is {config.tables}, and lookups need {TABLES}")

    @property
    def rounding(self) -> Rounding:
        return Rounding(self.flags >> 2 & 3)

    @property
    def table(self) -> int:
        """The number of its table, if it looks results up."""
        return int(self.flags) >> TABLE_SHIFT


def lookup_flags(table: int) -> RequantizeFlags:
    """What makes a requantize look its results up in a table."""
    return RequantizeFlags.LOOKUP | RequantizeFlags(table << TABLE_SHIFT)


@dataclass(frozen=True, kw_only=True)
class Table(Instruction):
    """Fill a table with its 256 entries from accumulator tiles, four to a lane.

    The lanes of the tiles, in order, are the words of the table, 64 in all: each has four entries
    of 8 bits, the first in its lowest byte. Takes a step for each word. Needs `tables` = 8.
    """

    opcode = Opcode.TABLE
    engine = Engine.ALU
    table: int = operand(u8, "number of the table")
    src: int = operand(u16, "first accumulator tile")

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        yield from super().rules(fields)
        yield fields.table >= TABLES, lambda: (
            f"table is {fields.table}, but there are {TABLES} (0 to {TABLES - 1})")


@dataclass(frozen=True, kw_only=True)
class Store(Instruction):
    """Copy a box of tiles from a scratchpad to DRAM. Complete when memory has acknowledged it."""

    opcode = Opcode.STORE
    engine = Engine.STORE
    buffer: Buffer = operand(u8, "scratchpad to read", default=Buffer.OUT, kind=Buffer,
                             suffix=True, allowed=(Buffer.OUT, Buffer.ACC))
    segment: int = operand(u8, "segment to write")
    sram: int = operand(u16, "first tile of the scratchpad")
    offset: int = operand(u32, "byte of the segment at which the box starts")
    shape: tuple[int, int, int] = operand(u16, "tiles to write", default=(1, 1, 1), axes=BOX)
    stride: tuple[int, int] = operand(i32, "bytes from plane to plane and row to row in DRAM",
                                      default=(0, 0), axes=("z", "y"))
    sram_pitch: tuple[int, int] = operand(
        u16, "tiles from plane to plane and row to row in the scratchpad",
        default=(0, 0), axes=("z", "y"))

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        yield from super().rules(fields)
        yield _segment_rule(fields)


@dataclass(frozen=True, kw_only=True)
class Sync(Instruction):
    """Let every engine finish, then go on or end the program. The last instruction is an end."""

    opcode = Opcode.SYNC
    engine = None
    action: SyncAction = operand(u8, "what follows", default=SyncAction.END, kind=SyncAction,
                                 suffix=True)


ISA: tuple[type[Instruction], ...] = (
    Load, Gemm, Window, Alu, AluI, Requantize, Table, Store, Sync)


def _segment_rule(fields: Fields) -> Rule:
    return fields.segment >= SEGMENTS, lambda: (
        f"segment is {fields.segment}, but there are {SEGMENTS} (0 to {SEGMENTS - 1})")
