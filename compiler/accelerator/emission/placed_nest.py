"""What is known of a nest before anything is emitted, whoever emits it."""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ...nest import nest as ir
from ..selection.intrinsic import Intrinsics
from .scratchpads import Place, place_buffers
from .separate_operands import separate_operands
from .sites import Slides, single_writer_buffers, slides_of
from .transfers import bits_in_dram


@dataclass(eq=False)
class PlacedNest:
    """A nest whose buffers have their places.

    stable      buffers that a single statement writes
    slides      how buffers slide that do
    segments    the number of each buffer in DRAM
    bits        of an element there
    """

    config: Config
    nest: ir.Nest
    intrinsics: Intrinsics
    places: dict[ir.Buffer, Place] = field(init=False)
    stable: set[ir.Buffer] = field(init=False)
    slides: Slides = field(init=False)
    segments: dict[ir.Buffer, int] = field(init=False)
    bits: dict[ir.Buffer, int] = field(init=False)

    def __post_init__(self) -> None:
        nest = self.nest
        self.places = separate_operands(nest, self.config, place_buffers(nest, self.config))
        self.stable, self.slides = single_writer_buffers(nest), slides_of(nest)
        self.segments = {buffer: number for number, buffer
                         in enumerate((*nest.inputs, *nest.outputs), start=1)}
        self.bits = bits_in_dram(nest, self.config)


def ahead_sections(loop: ir.Loop) -> tuple[list[ir.Allocate], list[tuple[ir.Statement, ...]]]:
    """The allocations of a loop that runs ahead, and the sections of its body."""
    allocated, statement = [], loop.body
    while isinstance(statement, ir.Allocate):
        allocated.append(statement)
        statement = statement.body
    parts = statement.statements if isinstance(statement, ir.Sequence) else (statement,)
    filled = sorted(1 + max(number for number, part in enumerate(parts) if _fills(part, buffer))
                    for buffer in ahead_of(loop))
    return allocated, [parts[begin:end] for begin, end in pairwise((0, *filled, len(parts)))]


def ahead_of(loop: ir.Loop) -> list[ir.Buffer]:
    """The buffers that a loop fills an iteration ahead."""
    statement, found = loop.body, []
    while isinstance(statement, ir.Allocate):
        found += [statement.buffer] if statement.ahead else []
        statement = statement.body
    return found


def _fills(statement: ir.Statement, buffer: ir.Buffer) -> bool:
    """Whether something in a statement writes to a buffer."""
    return any((isinstance(each, ir.Invoke) and each.regions[0].buffer is buffer)
               or (isinstance(each, ir.Copy) and each.target.buffer is buffer)
               for each in ir.statements_of(statement))
