"""What LoadSteps and StoreSteps have in common: instructions come in, steps along tiles go out."""

from collections.abc import Sequence

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import INDEX_BITS, Config
from ..isa.instructions import Buffer, Instruction
from .interfaces import commands
from .layouts import POSITION_BITS, buffers_of, unpack
from .packing import Packing
from .rows import COUNT_BITS


def step_layout(packing: Packing, carried: Sequence[str],
                own: dict[str, ShapeLike]) -> data.StructLayout:
    """One step along the tiles of an instruction.

    buffer          the scratchpad, as the instruction names it
    index           its tile; the first one if several move together
    outside         the scratchpad has no such tile
    ends_beat       the beat is complete, or no longer needed, after this step
    empty           the only step of an instruction that moves nothing
    last            the last step of its instruction
    position        number of the instruction

    The other fields are the outputs of the packing that are `carried`, and the `own` fields of
    the unit.
    """
    return data.StructLayout({
        "buffer": Shape.cast(Buffer), "index": INDEX_BITS, "outside": 1, "ends_beat": 1,
        "empty": 1, "last": 1, "position": POSITION_BITS,
        **{name: getattr(packing, name).shape() for name in carried}, **own,
    })


class TileSteps(Component):
    """Walks the tiles of instructions that move a box: planes of rows of tiles.

    Rate: one step a cycle while steps are taken, and one cycle without a step between two
    instructions. Latency: the first step is valid in the cycle after its instruction reached the
    head of the stream, when the counters have been set. Back-pressure: a step stays until it is
    taken. An instruction is taken together with its last step. One that moves nothing still gives
    one step, marked `empty`.

    Indices are exact as long as no step that is `outside` is taken.

    Parameters
    ----------
    instruction : the class of the instructions, Load or Store
    carried : outputs of the packing that travel with a step
    own : further fields of a step, which the subclass drives

    Members
    -------
    commands : In(stream of COMMAND)
        The instructions, in order. The one at the head must stay until it is taken.
    steps : Out(stream of step_layout)
        The steps of each instruction, in the order of its tiles.
    """

    def __init__(self, config: Config, instruction: type[Instruction], *,
                 carried: Sequence[str], own: dict[str, ShapeLike]):
        self.config = config
        self.instruction = instruction
        self.carried = carried
        self.packing = Packing(config, buffers_of(instruction))
        super().__init__({
            "commands": In(commands),
            "steps": Out(stream.Signature(step_layout(self.packing, carried, own))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.packing = self.packing
        self.fields = unpack(self.instruction, self.commands.payload.word)
        self.begins, self.moved = Signal(), Signal()
        begun = Signal()                        # the counters belong to the instruction at the head
        m.d.comb += [
            self.begins.eq(self.commands.valid & ~begun),
            self.steps.valid.eq(self.commands.valid & begun),
            self.moved.eq(self.steps.valid & self.steps.ready),
            self.commands.ready.eq(self.moved & self.steps.payload.last),
        ]
        with m.If(self.begins):
            m.d.sync += begun.eq(1)
        with m.If(self.commands.ready):
            m.d.sync += begun.eq(0)

        self.tiles_left, self.rows_left, self.planes_left = (
            Signal(COUNT_BITS, name=f"{name}_left", reset_less=True)    # this one included
            for name in ("tiles", "rows", "planes"))
        self.row_ends, self.plane_ends = Signal(), Signal()
        self.empty = Signal()                   # beside the payload, which some fields depend on
        self._count_planes(m)
        self._count_rows(m)
        self._locate(m)
        self._describe(m)
        self._describe_own(m)
        return m

    # What the subclass adds.

    def _count_rows(self, m):
        """Count tiles and rows. Drives what the step at hand ends when it is taken:

        row_ends        DRAM goes on in another row
        plane_ends      the plane is complete
        """
        raise NotImplementedError

    def _pitches(self):
        """Tiles of the scratchpad from plane to plane, and from row to row: None where each row
        follows right after the one before.
        """
        raise NotImplementedError

    def _describe_own(self, m):
        """Drive `empty`, for an instruction that moves nothing, and the unit's own fields."""
        raise NotImplementedError

    # What both have.

    def _count_planes(self, m):
        with m.If(self.moved):
            m.d.sync += self.planes_left.eq(self.planes_left - self.plane_ends)
        with m.If(self.begins):
            m.d.sync += self.planes_left.eq(self.fields.shape[0])

    def _locate(self, m):
        """Which tile of the scratchpad is next, and where in its beat it starts."""
        packing, fields = self.packing, self.fields
        self._walk(m, "index", start=fields.sram, after=packing.index + packing.count,
                   strides=self._pitches())
        self._walk(m, "place", start=fields.offset, after=packing.next_place,
                   strides=fields.stride)
        part = Signal.like(packing.part, name="part", reset_less=True)
        m.d.comb += packing.part.eq(part)
        with m.If(self.moved):
            m.d.sync += part.eq(packing.next_part)
        with m.If(self.begins):
            m.d.sync += part.eq(0)

    def _walk(self, m, name, *, start, after, strides):
        """Drive an input of the packing from a register.

        The register goes from `start` to what comes `after` each step, and at the end of a row or
        of a plane to a stride beyond where that row or that plane started.
        """
        target = getattr(self.packing, name)
        now, row, plane = (Signal.like(target, name=f"{prefix}{name}", reset_less=True)
                           for prefix in ("", "row_", "plane_"))
        plane_stride, row_stride = strides
        in_row = (now,) if row_stride is None else (now, row)
        m.d.comb += target.eq(now)
        with m.If(self.moved):
            m.d.sync += now.eq(after)
            if row_stride is not None:
                with m.If(self.row_ends):
                    m.d.sync += [each.eq(row + row_stride) for each in in_row]
            with m.If(self.plane_ends):
                m.d.sync += [each.eq(plane + plane_stride) for each in (*in_row, plane)]
        with m.If(self.begins):
            m.d.sync += [each.eq(start) for each in (*in_row, plane)]

    def _describe(self, m):
        packing, step, fields = self.packing, self.steps.payload, self.fields
        m.d.comb += [
            packing.buffer.eq(fields.buffer), packing.left.eq(self.tiles_left),
            *(step[name].eq(getattr(packing, name)) for name in ("index", *self.carried)),
            step.buffer.eq(fields.buffer), step.position.eq(self.commands.payload.position),
            step.empty.eq(self.empty),
            step.outside.eq(packing.outside & ~self.empty),
            step.ends_beat.eq(packing.ends_beat & ~self.empty),
            step.last.eq(self.empty | (self.plane_ends & (self.planes_left == 1))),
        ]
