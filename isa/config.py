"""One accelerator, described by one object that hardware, simulator, compiler and runtime share."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cached_property

from ..base.checked_values import SHOWN_BITS, integer, quote
from ..base.classes.dataclass import dataclass
from ..base.errors import ConfigError
from ..base.keywords import KeywordsChecked
from .instructions import (
    ISA,
    SCRATCHPADS,
    TABLE_WORDS,
    TABLES,
    WINDOW_ROWS,
    WINDOW_TAPS,
    Buffer,
    Instruction,
    MicroOp,
    Table,
    Window,
)

INDEX_BITS = 16             # tile indices in instructions and micro-ops
VECTOR_CYCLES_LIMIT = 16    # of the ALU, for a vector
PAGE_BYTES = 4096           # AXI bursts must not cross this; no tile is larger


def choice(default: int, doc: str, *, omit_default: bool = False, has_register: bool = True,
           microarchitectural: bool = False) -> int:
    """A field a person chooses, with its line of documentation.

    `omit_default`: images and digests leave the default out, so that those from before the field
    stay what they were. Without `has_register`, hardware with the default has no register for it,
    and zero is read. `microarchitectural`: programs mean the same with any value.
    """
    return dataclasses.field(default=default, metadata={
        "doc": doc, "omit_default": omit_default, "has_register": has_register,
        "microarchitectural": microarchitectural})


@dataclass(frozen=True, kw_only=True)
class Config(KeywordsChecked):
    """The parameters of an accelerator: hardware, compiler, simulator and runtime share them.

    What a person chooses is a field, what follows from it is a property. A tile product multiplies
    a batch × block_in activation tile by a block_out × block_in weight tile. Impossible
    combinations are refused here, before anything is built from them.
    """

    batch: int = choice(1, "rows of an activation tile")
    block_in: int = choice(16, "input channels of a tile: summed over in one cycle")
    block_out: int = choice(16, "output channels of a tile: produced in one cycle")
    inp_bits: int = choice(8, "bits of an activation")
    wgt_bits: int = choice(8, "bits of a weight: 8 or 4")
    acc_bits: int = choice(32, "bits of an accumulator lane")
    out_bits: int = choice(8, "bits of a result")
    uop_bytes: int = choice(32 << 10, "micro-op scratchpad")
    inp_bytes: int = choice(32 << 10, "activation scratchpad")
    wgt_bytes: int = choice(256 << 10, "weight scratchpad")
    acc_bytes: int = choice(128 << 10, "accumulator scratchpad")
    out_bytes: int = choice(32 << 10, "result scratchpad")
    acc_banks: int = choice(4, "accumulator banks; engines in different banks do not disturb "
                               "each other", microarchitectural=True)
    bus_bits: int = choice(64, "width of the memory bus: 64, 128 or 256",
                           microarchitectural=True)
    address_bits: int = choice(32, "width of a DRAM address")
    queue_depth: int = choice(16, "instructions an engine's queue holds", microarchitectural=True)
    token_bits: int = choice(8, "width of a token counter", microarchitectural=True)
    reads_in_flight: int = choice(16, "bursts of reads that may be outstanding",
                                  microarchitectural=True)
    writes_in_flight: int = choice(8, "bursts of writes that may be outstanding",
                                   microarchitectural=True)
    vector_cycles: int = choice(1, "cycles the ALU takes for a vector; it has batch × block_out / "
                                   "vector_cycles lanes", omit_default=True,
                               microarchitectural=True)
    out_readers: int = choice(2, "engines that read results: 1 is STORE alone, 2 GEMM too",
                              omit_default=True)
    window_taps: int = choice(1, "products that a depthwise sum adds up in a cycle: 1, or 3 with "
                                 "the instruction `window`", omit_default=True,
                             has_register=False)
    cycles_only: int = choice(0, "1: hardware counts the cycles of a run alone, not what engines "
                                 "do and wait for", omit_default=True, has_register=False,
                             microarchitectural=True)
    tables: int = choice(0, "tables of 256 results that the ALU holds: 0 or 8", omit_default=True,
                         has_register=False)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            number = integer(value)
            if number is None or number.bit_length() > SHOWN_BITS:
                raise ConfigError(f"{field.name} is {quote(value)}, but must be an integer"
                                  f"{'' if number is None else ' that an accelerator can have'}")
            object.__setattr__(self, field.name, number)
        self._check_shape()
        self._check_widths()
        for buffer in SCRATCHPADS:
            self._check_buffer(buffer)
        self._check_machinery()

    def _check_shape(self) -> None:
        for name, most in (("batch", 16), ("block_in", 64), ("block_out", 64)):
            value = getattr(self, name)
            if not 1 <= value <= most or value & value - 1:
                raise ConfigError(f"{name} is {value}, but must be a power of two from 1 to {most}")
        cycles, vector = self.vector_cycles, self.batch * self.block_out
        most = min(vector, VECTOR_CYCLES_LIMIT)
        if not 1 <= cycles <= most or cycles & cycles - 1:
            raise ConfigError(f"vector_cycles is {cycles}, but must be a power of two from 1 to "
                              f"{most}: a vector has {vector} lanes")
        if self.window_taps not in (1, WINDOW_TAPS):
            raise ConfigError(f"window_taps is {self.window_taps}, but must be 1 or {WINDOW_TAPS}")
        for name in ("block_in", "block_out"):
            if self.has_windows and getattr(self, name) < WINDOW_ROWS:
                raise ConfigError(f"window_taps is {self.window_taps}, but {name} is "
                                  f"{getattr(self, name)}: windows need {WINDOW_ROWS} or more; "
                                  f"set window_taps = 1 or a larger {name}")

    def _check_widths(self) -> None:
        for name, right in (("inp_bits", (8,)), ("wgt_bits", (4, 8)), ("acc_bits", (32,)),
                            ("out_bits", (8,)), ("bus_bits", (64, 128, 256))):
            value = getattr(self, name)
            if value not in right:
                raise ConfigError(f"{name} is {value}, but must be "
                                  f"{' or '.join(str(each) for each in right)}")
        if self.block_out * self.block_in * self.wgt_bits < 8:
            raise ConfigError(f"a weight tile of {self.block_out} × {self.block_in} × "
                              f"{self.wgt_bits} bits is less than a byte; take larger blocks")

    def _check_buffer(self, buffer: Buffer) -> None:
        name = f"{buffer.name.lower()}_bytes"
        size, tile = getattr(self, name), self.tile_bytes(buffer)
        assert tile <= PAGE_BYTES, "the limits of batch and blocks leave no larger tile"
        if size <= 0 or size & size - 1 or size < 2 * tile:
            raise ConfigError(f"{name} is {size}, but must be a power of two and hold two tiles "
                              f"of {tile} bytes or more")
        if size // tile > 1 << INDEX_BITS:
            raise ConfigError(f"{name} is {size}: {size // tile} tiles of {tile} bytes, but "
                              f"indices have {INDEX_BITS} bits, so at most "
                              f"{tile << INDEX_BITS} bytes can be addressed")

    def _check_machinery(self) -> None:
        banks, tiles = self.acc_banks, self.tiles(Buffer.ACC)
        if banks not in (1, 2, 4, 8) or banks * 2 > tiles:
            raise ConfigError(f"acc_banks is {banks}, but must be 1, 2, 4 or 8 and leave each "
                              f"bank two of the {tiles} accumulator tiles or more")
        for name, low, high in (("address_bits", 24, 64), ("queue_depth", 2, 1024),
                                ("token_bits", 2, 16), ("reads_in_flight", 1, 64),
                                ("writes_in_flight", 1, 64), ("out_readers", 1, 2),
                                ("cycles_only", 0, 1)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} is {value}, but must be from {low} to {high}")

        if self.tables not in (0, TABLES):
            raise ConfigError(f"tables is {self.tables}, but must be 0 or {TABLES}")
        if self.tables and tiles < self.table_tiles:
            raise ConfigError(f"tables is {self.tables}, but acc_bytes is {self.acc_bytes}: a "
                              f"table is filled from {self.table_tiles} tiles of the accumulator, "
                              f"which has {tiles}; set tables = 0 or larger acc_bytes")

    def tile_bytes(self, buffer: Buffer) -> int:
        """Bytes of one tile of a scratchpad as it lies in DRAM."""
        match buffer:
            case Buffer.UOP:
                return MicroOp.size
            case Buffer.INP:
                return self.batch * self.block_in * self.inp_bits // 8
            case Buffer.WGT:
                return self.block_out * self.block_in * self.wgt_bits // 8
            case Buffer.ACC:
                return self.batch * self.block_out * self.acc_bits // 8
            case Buffer.ACC8 | Buffer.OUT:
                return self.batch * self.block_out * self.out_bits // 8

    def tiles(self, buffer: Buffer) -> int:
        """How many tiles a scratchpad holds."""
        return self._tiles[buffer]

    @cached_property
    def _tiles(self) -> tuple[int, ...]:
        """Of each buffer: asked again and again."""
        pads = [buffer.scratchpad for buffer in Buffer]
        return tuple(getattr(self, f"{pad.name.lower()}_bytes") // self.tile_bytes(pad)
                     for pad in pads)

    @property
    def gemm_out_tiles(self) -> int:
        """How many tiles of results a gemm may read as activations: out in tiles of `block_in`
        lanes."""
        if self.inp_bits != self.out_bits or self.out_readers == 1:
            return 0
        return self.out_bytes // self.tile_bytes(Buffer.INP)

    @property
    def has_windows(self) -> bool:
        return self.window_taps == WINDOW_TAPS

    @property
    def instructions(self) -> tuple[type[Instruction], ...]:
        """Those that the accelerator has; any other word is illegal."""
        absent = {*(() if self.has_windows else (Window,)), *(() if self.tables else (Table,))}
        return tuple(each for each in ISA if each not in absent)

    @property
    def table_tiles(self) -> int:
        """Accumulator tiles that a table is filled from."""
        return -(-TABLE_WORDS // (self.batch * self.block_out))

    @property
    def depthwise_lanes(self) -> int:
        """Lanes in which depthwise gemms and windows multiply: a group of a wider tile's lanes."""
        return min(self.block_in, self.block_out)

    def place_in_tile(self, row: int, lane: int) -> int:
        """Where a lane of a row lies in a tile of activations, sums or results: groups of
        `depthwise_lanes` lanes follow one another, each with all rows. So a tile of the larger
        block is several of the smaller one, side by side."""
        group, lane = divmod(lane, self.depthwise_lanes)
        return (group * self.batch + row) * self.depthwise_lanes + lane

    @property
    def inp_groups(self) -> int:
        """Groups of `depthwise_lanes` lanes in an activation tile."""
        return self.block_in // self.depthwise_lanes

    @property
    def acc_groups(self) -> int:
        """Groups of `depthwise_lanes` lanes in an accumulator tile."""
        return self.block_out // self.depthwise_lanes

    @property
    def alu_lanes(self) -> int:
        """Lanes of a vector that the ALU works on in one cycle."""
        return self.batch * self.block_out // self.vector_cycles

    @property
    def acc_bank_tiles(self) -> int:
        """Accumulator tiles in one bank; bank b holds the b-th such run of tiles."""
        return self.tiles(Buffer.ACC) // self.acc_banks

    @property
    def macs_per_cycle(self) -> int:
        return self.batch * self.block_in * self.block_out

    @property
    def bus_bytes(self) -> int:
        return self.bus_bits // 8

    @property
    def token_limit(self) -> int:
        """The most tokens one counter holds; one more halts the accelerator."""
        return (1 << self.token_bits) - 1

    def to_dict(self) -> dict[str, int]:
        # Every run asks; `asdict` would copy number by number.
        return {name: value for name, value in vars(self).items() if name != "_tiles"}

    def numbers(self) -> dict[str, int]:
        """Every field, every property that is an integer, and the tiles of each scratchpad."""
        derived = [name for name, each in vars(Config).items() if isinstance(each, property)
                   and each.fget is not None and each.fget.__annotations__["return"] == "int"]
        return {**self.to_dict(), **{name: getattr(self, name) for name in derived},
                **{f"{buffer.name.lower()}_tiles": self.tiles(buffer) for buffer in SCRATCHPADS}}

    def explicit_fields(self) -> dict[str, int]:
        """The fields that images and digests hold: all but defaults that are left out."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
                if not field.metadata["omit_default"] or getattr(self, field.name) != field.default}

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that differ between any two configurations."""
        text = ",".join(f"{name}={value}" for name, value in sorted(self.explicit_fields().items()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


# On these a program's meaning does not depend, only its cycles.
MICROARCHITECTURE = tuple(field.name for field in dataclasses.fields(Config)
                          if field.metadata["microarchitectural"])

tiny = Config(block_in=4, block_out=4, uop_bytes=2 << 10, inp_bytes=2 << 10, wgt_bytes=4 << 10,
              acc_bytes=8 << 10, out_bytes=2 << 10)
# What `microtron explore` found for MLPerf Tiny on an LFE5U-85F; see docs/exploration.md.
trim = dataclasses.replace(tiny, block_in=8, block_out=8, uop_bytes=8 << 10, inp_bytes=8 << 10,
                           wgt_bytes=8 << 10, acc_banks=1, vector_cycles=4, out_readers=1,
                           window_taps=3, tables=8)
small = Config(block_in=8, block_out=8, uop_bytes=16 << 10, inp_bytes=16 << 10,
               wgt_bytes=64 << 10, acc_bytes=64 << 10, out_bytes=16 << 10, vector_cycles=2)
base = Config(window_taps=3, tables=8)
# The array of `base` as an xc7z020 holds it; see docs/configurations.md.
lean = Config(uop_bytes=16 << 10, wgt_bytes=128 << 10, acc_banks=2, vector_cycles=2)
slim = dataclasses.replace(lean, vector_cycles=4)       # and as an LFE5U-85F does
# The smallest; one with the array of `tiny`, which a GW2AR-18 holds; and one for an xc7z010, where
# memory is a processor's.
micro = Config(block_in=2, block_out=2, uop_bytes=2 << 10, inp_bytes=2 << 10, wgt_bytes=4 << 10,
               acc_bytes=8 << 10, out_bytes=2 << 10, acc_banks=1, address_bits=24, queue_depth=2,
               token_bits=4, reads_in_flight=2, writes_in_flight=2, vector_cycles=2, out_readers=1,
               cycles_only=1)
compact = dataclasses.replace(micro, block_in=4, block_out=4, vector_cycles=4)
mini = dataclasses.replace(micro, address_bits=32)
wide = Config(block_in=32, block_out=32, inp_bytes=64 << 10, wgt_bytes=512 << 10,
              acc_bytes=256 << 10, out_bytes=64 << 10, bus_bits=128)

PRESETS = {"micro": micro, "mini": mini, "compact": compact, "tiny": tiny, "trim": trim,
           "small": small, "slim": slim, "lean": lean, "base": base, "wide": wide}
