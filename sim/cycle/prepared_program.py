"""A program in the form of the compiled simulator: prepared once, run many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from ...isa.address_map import place_windows
from ...isa.config import Config
from ...isa.instructions import MicroOp
from ...isa.program import Program, Segment
from ...isa.stream import Stream
from ..twins.decode import Column, Rows
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


def prepare(program: Program, config: Config, *, is_proven: bool = False) -> Prepared:
    """Prepare a program for an accelerator with the same tiles and scratchpads. With `is_proven`,
    its words are known to be instructions that the accelerator has."""
    return prepare_code(program.code, program.segments, place_windows(program), config,
                        is_proven=is_proven)


def prepare_code(code: Stream, segments: Sequence[Segment], bases: Sequence[int],
                 config: Config, *, is_proven: bool = False) -> Prepared:
    """The same for an array of instructions and segments; `bases` are the addresses of the code and
    of each segment."""
    from .decode_program import decode_rows, find_micro_ops

    moved = bases[0] if bases[-1] >= ADDRESS_LIMIT else 0
    bases = [base - moved for base in bases]
    rows, positions = decode_rows(code, config, segments, bases[1:], is_proven=is_proven)
    loaded = find_micro_ops(code, rows)
    return Prepared(config=config, code=rows, positions=positions, bases=bases, moved=moved,
                    micro_ops=MicroOps(tile=loaded.tile, span=loaded.span,
                                       sources=_sources(loaded.segment, loaded.place)))


def _sources(segment: Column, place: Column) -> tuple[Source, ...]:
    """The same by segment."""
    if len(segment) and (segment == segment[0]).all():      # as compilers put them
        return (Source(segment=int(segment[0]), number=np.arange(len(segment)), place=place,
                       end=int(place.max()) + 1),)
    numbers = [(int(each), np.flatnonzero(segment == each)) for each in np.unique(segment)]
    return tuple(Source(segment=each, number=number, place=place[number],
                        end=int(place[number].max()) + 1) for each, number in numbers)
