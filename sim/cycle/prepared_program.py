"""A program in the form of the compiled simulator: prepared once, run many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from ...isa.address_map import place_windows
from ...isa.config import Config
from ...isa.instructions import Buffer, Engine, Load, MicroOp
from ...isa.program import Program, Segment
from ...isa.stream import Stream
from ..twins.decode import Column, Rows, decode_rows
from .bundles import Given, Loads

ADDRESS_LIMIT = 1 << 62
WORD = np.dtype(f"u{MicroOp.size}")         # a micro-op as one number
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A program on one accelerator."""

    config: Config
    code: Rows                              # a row for each instruction
    positions: npt.NDArray[np.int64]        # of each engine's instructions, in order
    bases: list[int]                        # addresses of the code and of each segment, minus …
    moved: int                              # … this: only distances matter, registers are signed
    micro_ops: MicroOps

    @cached_property
    def bind_timing(self) -> partial[Given]:
        """The inputs of a run, but for the memory timing."""
        from ..llvm.entry import bind_array
        from ..twins import top
        from .loop import GIVEN
        settings = top.settings(self.config, len(self.code), self.bases[0])
        return partial(Given, code=bind_array(GIVEN.code, self.code),
                       positions=bind_array(GIVEN.positions, self.positions),
                       config=bind_array(GIVEN.config, settings),
                       floors=bind_array(GIVEN.floors, top.floors(self.config)))

    @cached_property
    def loads(self) -> partial[Loads]:
        """The micro-ops of loads, but for their values in memory."""
        from ..llvm.entry import bind_array
        from .loop import LOADS
        return partial(Loads, tile=bind_array(LOADS.tile, self.micro_ops.tile),
                       span=bind_array(LOADS.span, self.micro_ops.span))


@dataclass(frozen=True, eq=False)
class MicroOps:
    """The effects of loads of micro-ops. Load number n fills the scratchpad's tiles
    `tile[begin:end]`, where `begin, end = span[n]`, from the places in memory that `sources`
    lists."""

    tile: Column
    span: Column
    sources: tuple[Source, ...]

    def values(self, segments: Sequence[Bytes | None]) -> npt.NDArray[np.uint16]:
        """The micro-ops currently in memory. Bytes without data in a segment are zero."""
        found = np.zeros(len(self.tile), WORD)
        for source in self.sources:
            words = _words(segments[source.segment])
            if source.end <= len(words):
                found[source.number] = words[source.place]
            else:
                there = source.place < len(words)
                found[source.number[there]] = words[source.place[there]]
        return found.view(np.uint16).reshape(len(found), MicroOp.size // 2)


@dataclass(frozen=True, eq=False)
class Source:
    """The micro-ops that come from one segment."""

    segment: int
    number: Column                          # among all of them
    place: Column                           # in the segment, counted in micro-ops
    end: int                                # behind the last place


def _words(data: Bytes | None) -> npt.NDArray[np.uint64]:
    """A segment as micro-ops. The last one may be incomplete."""
    whole = np.zeros(0, np.uint8) if data is None else data
    if len(whole) % MicroOp.size:
        whole = np.append(whole, np.zeros(-len(whole) % MicroOp.size, np.uint8))
    words: npt.NDArray[np.uint64] = whole.view(WORD)
    return words


def prepare(program: Program, config: Config) -> Prepared:
    """Prepare a program for an accelerator with the same tiles and scratchpads."""
    return prepare_code(program.code, program.segments, place_windows(program), config)


def prepare_code(code: Stream, segments: Sequence[Segment], bases: Sequence[int],
                 config: Config) -> Prepared:
    """The same for an array of instructions and segments; `bases` are the addresses of the code and
    of each segment."""
    moved = bases[0] if bases[-1] >= ADDRESS_LIMIT else 0
    bases = [base - moved for base in bases]
    rows = decode_rows(code, config, segments, bases[1:])
    return Prepared(config=config, code=rows, positions=_positions(rows), bases=bases,
                    moved=moved, micro_ops=_micro_ops(code, rows))


def _positions(code: Rows) -> npt.NDArray[np.int64]:
    """The positions of each engine's instructions, in order."""
    engines = np.where(code["legal"] != 0, code["engine"], -1)
    each = [np.flatnonzero(engines == int(engine)) for engine in Engine]
    table = np.zeros((len(Engine), max(map(len, each)) + 1), np.int64)
    for engine, positions in enumerate(each):
        table[engine, :len(positions)] = positions
    return table


def _micro_ops(stream: Stream, code: Rows) -> MicroOps:
    """The effects of all loads of micro-ops that end, tile by tile. Where planes of a load overlap,
    the last one wins, so no load has more tiles than the scratchpad."""
    loads = np.flatnonzero((code["legal"] != 0) & (code["engine"] == Engine.LOAD)
                           & (code["buffer"] == Buffer.UOP))
    loads = loads[_reaching(code[loads])]
    words = code[loads]
    z, y, x, pitch = (words[name] for name in ("planes", "rows", "tiles", "plane_pitch"))
    reach = np.where(words["no_bytes"] != 0, 0, (z - 1) * pitch + y * x)
    of, at = _enumerate_lists(reach)    # the load of each tile, and its offset there
    plane = np.minimum(at // np.maximum(pitch, 1)[of], z[of] - 1)
    plane[pitch[of] == 0] = z[of[pitch[of] == 0]] - 1
    within = at - plane * pitch[of]                     # offset in the last plane that contains it
    filled = within < (y * x)[of]                       # there may be gaps between planes
    of, at, plane, within = of[filled], at[filled], plane[filled], within[filled]
    row, column = np.divmod(within, x[of])
    offset = (words["offset"][of] + plane * words["plane_stride"][of]
              + row * words["row_stride"][of])
    span = np.zeros((len(code), 2), np.int64)
    counts = np.bincount(of, minlength=len(loads))
    span[loads, 1] = np.cumsum(counts)
    span[loads, 0] = span[loads, 1] - counts
    segment = stream.view(Load.dtype())["segment"][loads].astype(np.int64)
    return MicroOps(tile=words["sram"][of] + at, span=span, sources=_sources(
        segment[of], offset // MicroOp.size + column))


def _sources(segment: Column, place: Column) -> tuple[Source, ...]:
    """The same by segment."""
    numbers = [(int(each), np.flatnonzero(segment == each)) for each in np.unique(segment)]
    return tuple(Source(segment=each, number=number, place=place[number],
                        end=int(place[number].max()) + 1) for each, number in numbers)


def _enumerate_lists(lengths: Column) -> tuple[Column, Column]:
    """For consecutive lists of these lengths: the list of each element, and its index there."""
    lists = np.repeat(np.arange(len(lengths)), lengths)
    return lists, np.arange(len(lists)) - (np.cumsum(lengths) - lengths)[lists]


def _reaching(loads: Rows) -> npt.NDArray[np.bool_]:
    """Which loads stay inside their segment and scratchpad. The others never end."""
    low = high = loads["offset"]
    for count, stride in (("planes", "plane_stride"), ("rows", "row_stride")):
        reach = (loads[count] - 1) * loads[stride]
        low, high = low + np.minimum(reach, 0), high + np.maximum(reach, 0)
    there = (low >= 0) & (high + loads["tiles"] * loads["tile_bytes"] <= loads["size"])
    good: npt.NDArray[np.bool_] = ((loads["inside"] != 0) & (loads["misaligned"] == 0)
                                   & (there | (loads["no_bytes"] != 0)))
    return good
