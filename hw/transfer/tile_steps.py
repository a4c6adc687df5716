"""The base of LoadSteps and StoreSteps: turns instructions into steps along tiles."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import INDEX_BITS, Config
from ...isa.instructions import Buffer, Instruction
from ...isa.record import fields_of
from ..layouts import COMMAND, POSITION_BITS, buffers_of, unpack
from ..logic import narrow
from .burst_walker import COUNT_BITS
from .packing import Packing


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
    """Iterates over the tiles of instructions that move a box: planes of rows of tiles.

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
    instructions : In(stream of prepared_layout)
        The instructions, in order, as `prepare` gives them. The one at the head stays until it is
        taken.
    steps : Out(stream of step_layout)
        The steps of each instruction, in the order of its tiles.
    """

    def __init__(self, config: Config, instruction: type[Instruction], *,
                 carried: Sequence[str], own: dict[str, ShapeLike]):
        self.config = config
        self.instruction = instruction
        self.carried = carried
        self.packing = packing = Packing(config, buffers_of(instruction))
        # A load has a pitch from plane to plane, and its rows are contiguous; a store has one from
        # row to row, too.
        self.axes, = (field.count for field in fields_of(instruction) if field.name == "sram_pitch")
        index = min(INDEX_BITS, packing.index_bits - 1)
        self.prepared_layout = data.StructLayout({
            "command": COMMAND, "empty": 1, "lane": packing.lane_bits,
            "lane_strides": data.ArrayLayout(packing.lane_bits, 2),
            "start": index, "pitches": data.ArrayLayout(index, self.axes),
            **packing.prepared_layout(),
            **self._prepared_layout()})
        super().__init__({
            "instructions": In(stream.Signature(self.prepared_layout)),
            "steps": Out(stream.Signature(step_layout(packing, carried, own))),
        })

    def prepare(self, m, command, prepared) -> None:
        """Drive the unit's form of an instruction from a command."""
        packing, fields = self.packing, unpack(self.instruction, command.word)

        def lane(place):
            return packing.lane_of(fields.buffer, place)

        m.d.comb += [
            prepared.command.eq(command), prepared.lane.eq(lane(fields.offset)),
            *(prepared.lane_strides[axis].eq(lane(stride))
              for axis, stride in enumerate(fields.stride)),
            prepared.start.eq(narrow(fields.sram, packing.index_bits)),
            *(each.eq(narrow(pitch, packing.index_bits)) for each, pitch
              in zip(prepared.pitches, _axes(fields.sram_pitch), strict=True)),
            *packing.prepare(prepared, fields.buffer, fields.shape[2], fields.sram,
                             lane(fields.offset)),
        ]
        self._prepare(m, fields, prepared)

    def elaborate(self, platform):
        m = Module()
        m.submodules.packing = self.packing
        self.prepared = self.instructions.payload
        self.fields = unpack(self.instruction, self.prepared.command.word)
        self.begins, self.moved, self.goes = Signal(init=1), Signal(), Signal()
        begun = Signal()                        # the counters belong to the instruction at the head
        m.d.comb += [                           # ... or not: two registers, for long nets
            self.steps.valid.eq(begun),
            self.moved.eq(self.steps.valid & self.steps.ready),
            # A step is taken, or the first one is being computed: the only enable of these
            # registers.
            self.goes.eq(self.begins | self.steps.ready),
            self.instructions.ready.eq(self.moved & self.steps.payload.last),
        ]
        with m.If(self.instructions.valid):
            m.d.sync += [begun.eq(1), self.begins.eq(0)]
        with m.If(self.instructions.ready):
            m.d.sync += [begun.eq(0), self.begins.eq(1)]

        self.tiles_left = Signal(COUNT_BITS, reset_less=True)       # in the run, including this one
        self.rows, self.planes = Countdown("rows"), Countdown("planes")
        self.run_ends = Signal(reset_less=True)     # with the current step, as the others
        self.run_goes_on = Signal(reset_less=True)  # the inverse, for `last`
        self.row_ends, self.plane_ends = (Signal(name=name) for name in ("row_ends", "plane_ends"))
        self.in_last_run = Signal()                 # of the plane
        # Of the first run: whether it has data, and otherwise whether it is a single tile. The same
        # of the next run, if there is one, and whether that begins another plane or row.
        self.first_data, self.first_single = (Signal(name=name)
                                              for name in ("first_data", "first_single"))
        self.next_data, self.next_single = (Signal(name=name)
                                            for name in ("next_data", "next_single"))
        self.new_plane, self.new_row = (Signal(name=name) for name in ("new_plane", "new_row"))
        self._count_planes(m)
        self._count_rows(m)
        self._locate(m)
        self._describe(m)
        self._describe_own(m)
        return m

    # Hooks of the subclass.

    def _prepared_layout(self):
        """Further fields computed from an instruction before it reaches the unit."""
        return {}

    def _prepare(self, m, fields, prepared):
        """Drive these, and `empty`, for an instruction that moves nothing."""
        raise NotImplementedError

    def _count_rows(self, m):
        """Count tiles and rows. Drives the properties of the first run and of the next one, and
        what the current step ends besides its run when it is taken:

        row_ends        the row of DRAM is complete
        plane_ends      the plane is complete
        in_last_run     the plane is complete if the run is
        """
        raise NotImplementedError

    def _describe_own(self, m):
        """Drive the unit's own fields."""
        raise NotImplementedError

    # Common to both.

    def _count_planes(self, m):
        with m.If(self.goes):
            with m.If(self.begins):
                m.d.sync += self.planes.load(self.fields.shape[0])
            with m.Elif(self.plane_ends):
                m.d.sync += self.planes.step()

    def _locate(self, m):
        """The next tile of the scratchpad, its lane, and how many tiles a step can move from
        there."""
        packing, prepared = self.packing, self.prepared
        resumed = packing.index + packing.left[:packing.index_bits]
        indices = self._walk(m, "index", start=prepared.start, resumed=resumed,
                             after=packing.index + packing.advance,
                             strides=(*prepared.pitches, None)[:2])
        lanes = self._walk(m, "lane", start=prepared.lane, after=packing.next_lane,
                           resumed=packing.next_lane, strides=prepared.lane_strides)
        part, last_part, together, fits, within = (
            Signal.like(getattr(packing, name), name=name, reset_less=True)
            for name in ("part", "last_part", "together", "fits", "within"))
        self.data = Signal(reset_less=True)         # the current run has data
        m.d.comb += [*(getattr(packing, each.name).eq(each)
                       for each in (part, last_part, together, fits, within)),
                     packing.padding.eq(~self.data)]
        # Candidates for the next run are computed in parallel, before the selection.
        in_plane, in_row, in_line = (
            packing.begin(prepared, index, lane)
            for index, lane in zip(indices, (*lanes[:2], packing.lane), strict=True))
        begun = self._first_step(self.next_data, self.next_single, {
            name: Mux(self.new_plane, in_plane[name], Mux(self.new_row, in_row[name], value))
            for name, value in in_line.items()})
        at_start = self._first_step(self.first_data, self.first_single,
                                    packing.start(prepared, prepared.lane))
        first = {name: Mux(self.begins, at_start[name], value) for name, value in begun.items()}
        with m.If(self.goes):
            m.d.sync += [part.eq(packing.next_part), last_part.eq(packing.next_last_part),
                         fits.eq(packing.next_fits), within.eq(packing.next_within),
                         self.run_ends.eq(packing.next_ends_row),
                         self.run_goes_on.eq(~packing.next_ends_row)]
            with m.If(self.begins | self.run_ends):
                m.d.sync += [
                    part.eq(0), last_part.eq(~first["data"] | (prepared.parts == 0)),
                    self.data.eq(first["data"]), together.eq(first["together"]),
                    fits.eq(first["fits"]), within.eq(first["within"]),
                    self.run_ends.eq(first["ends"]), self.run_goes_on.eq(~first["ends"]),
                ]

    def _first_step(self, data, single, first):
        """The first step of a run, from what it would be if the run has `data`."""
        ends = first["fits"] & (self.prepared.parts == 0)
        return {"data": data, "together": data & first["together"], "within": first["within"],
                "fits": Mux(data, first["fits"], single), "ends": Mux(data, ends, single)}

    def _walk(self, m, name, *, start, after, resumed, strides):
        """Drive an input of the packing from a register, which begins at `start` and becomes
        `after` with each step. At the end of a row or a plane it becomes the start of that row or
        plane plus a stride, which two more registers hold. If a run ends inside a row, it becomes
        `resumed`.

        Returns the start of the next run: in another plane, in another row, or in this one.
        """
        target = getattr(self.packing, name)
        now, next_row, next_plane = (Signal.like(target, name=f"{prefix}{name}", reset_less=True)
                                     for prefix in ("", "next_row_", "next_plane_"))
        plane_stride, row_stride = strides
        plane = Signal.like(target, name=f"plane_{name}")
        m.d.comb += [target.eq(now), plane.eq(Mux(self.begins, start, next_plane))]
        row = resumed if row_stride is None else next_row
        with m.If(self.goes):
            m.d.sync += now.eq(Mux(self.run_ends, resumed, after))
            with m.If(self.row_ends):
                m.d.sync += now.eq(row)
                if row_stride is not None:
                    m.d.sync += next_row.eq(next_row + row_stride)
            with m.If(self.begins | self.plane_ends):
                m.d.sync += [now.eq(plane), next_plane.eq(plane + plane_stride)]
                if row_stride is not None:
                    m.d.sync += next_row.eq(plane + row_stride)
        return next_plane, row, resumed

    def _describe(self, m):
        packing, step, fields = self.packing, self.steps.payload, self.fields
        m.d.comb += [
            packing.buffer.eq(fields.buffer), packing.left.eq(self.tiles_left),
            packing.lanes.eq(self.prepared.lanes), packing.parts.eq(self.prepared.parts),
            *(step[name].eq(getattr(packing, name)) for name in ("index", *self.carried)),
            step.buffer.eq(fields.buffer), step.position.eq(self.prepared.command.position),
            step.empty.eq(self.prepared.empty),
            step.outside.eq(packing.outside & ~self.prepared.empty),
            step.ends_beat.eq(packing.ends_beat & ~self.prepared.empty),
            step.last.eq(self.prepared.empty | (self.in_last_run & self.planes.is_last
                                                & ~self.run_goes_on)),
        ]


def _axes(pitch):
    """Of one axis or several."""
    return pitch if isinstance(pitch, tuple) else (pitch,)


class Countdown:
    """A register that counts down to one, and another that tells when it gets there: a comparison
    would arrive too late.
    """

    def __init__(self, name: str):
        self.left = Signal(COUNT_BITS, name=f"{name}_left", reset_less=True)
        self.is_last = Signal(name=f"last_of_{name}", reset_less=True)

    def load(self, value: Value, *, unless: Value | int = 0, other: Value | int = 1):
        """Load a value, or `other` if `unless` holds, which may arrive late."""
        return [self.left.eq(Mux(unless, other, value)),
                self.is_last.eq(Mux(unless, other == 1, value == 1))]

    def step(self):
        return [self.left.eq(self.left - 1), self.is_last.eq(self.left == 2)]
