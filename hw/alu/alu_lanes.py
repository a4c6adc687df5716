"""The lanes of the ALU, and what they share: parameters, constants and delay lines."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ..accumulator import READ_LATENCY
from ..logic import delay_line, register, select
from .alu_lane import CONTROL, CONTROLS, LIMITED, STAGES, AluLane
from .requantizer import LANE_BITS


def first_latency(config: Config) -> int:
    """Cycles from a step's last granted read to the first part of its result. With several parts,
    selecting one takes a cycle."""
    return READ_LATENCY + (config.vector_cycles > 1) + STAGES


def latency(config: Config) -> int:
    """Cycles from a step's last granted read to the last part of its result."""
    return first_latency(config) + config.vector_cycles - 1


# The operation of a step, as the lanes get it.
WORK = data.StructLayout({
    "control": CONTROL,
    "constant": 1,                      # `immediate` is the right operand of every lane
    "immediate": signed(LANE_BITS),
})


class AluLanes(Component):
    """Computes a vector: every lane of a tile.

    There may be fewer lanes than a vector has elements. A vector is then computed in
    `vector_cycles` parts, lowest lanes first. With parts 0 and 1 of a step `s`:

        cycle         t       t + 1   t + 3    t + 4    t + 5    …   first_latency   latency
        issued        s
        work                  s       s        s
        left, right                   s        s
        part                          0        1
        chosen                                 0        1
        finished                                                     0               1

    Rate: a vector every `vector_cycles` cycles; the issuing unit ensures that. Latency: `latency`
    cycles from `issued` to the last part of the result. There is no back-pressure. The operands are
    sampled from `READ_LATENCY` cycles after `issued` on, for as many cycles as there are parts.

    A parameter tile is held until the next of its kind arrives. It applies to the steps issued
    after its read was granted: the three may be fetched in the three cycles before the first step
    that needs them, while earlier steps still use the old ones.

    Members
    -------
    issued : In(1)
        The reads of a step have been granted.
    work : In(WORK)
        The operation of that step.
    fetched : In(PARAMETER_TILES)
        The read of bias, multiplier or shift has been granted in this cycle.
    left, right : In(acc tile)
        Data of the read ports, each valid `READ_LATENCY` cycles after its grant, until all parts
        have been taken.
    finished : Out(vector_cycles)
        Bit k: part k of a step's vector is valid, `first_latency + k` cycles after its issue.
    results : Out(alu_lanes × 32 bits)
        That part; where narrowed, in the lowest 8 bits of each lane.
    """

    def __init__(self, config: Config):
        self.config = config
        tile = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "issued": In(1),
            "work": In(WORK),
            "fetched": In(PARAMETER_TILES),
            "left": In(tile),
            "right": In(tile),
            "finished": Out(config.vector_cycles),
            "results": Out(config.alu_lanes * LANE_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        travelling = Signal(latency(self.config))       # bit k: a step was issued k + 1 cycles ago
        m.d.sync += travelling.eq(Cat(self.issued, travelling))
        m.d.comb += self.finished.eq(travelling[first_latency(self.config) - 1:])

        operands = (self.left, self.right, *self._parameters(m))
        if self.config.vector_cycles == 1:
            work = self.work
            for cycle in range(READ_LATENCY):
                work = register(m, work, f"work_{cycle + 1}")
            left, right, *parameters = map(_lanes, operands)
            operands = (left, _constant(work, right), *parameters)
        else:
            work, operands = self._choose_part(m, operands, travelling)
        controls = self._delay(m, work.control)
        for number, each in enumerate(zip(*operands, strict=True)):
            m.submodules[f"lane_{number}"] = lane = AluLane()
            left, right, bias, multiplier, shift = each
            m.d.comb += [
                lane.left.eq(left), lane.right.eq(right), lane.bias.eq(bias),
                lane.multiplier.eq(multiplier), lane.shift.eq(shift),
                self.results.word_select(number, LANE_BITS).eq(lane.result),
                *(lane.controls[stage].eq(each) for stage, each in enumerate(controls)),
            ]
        return m

    def _delay(self, m, control):
        """The control of each stage. Fields that only late stages need go through a delay line in
        memory."""
        controls = [control]
        for stage in range(1, CONTROLS):
            controls.append(register(m, controls[-1], f"control_{stage}"))
        m.d.sync += _limits(controls[LIMITED]).eq(
            delay_line(m, _limits(control), LIMITED - 1, "limits"))
        return controls

    def _choose_part(self, m, operands, travelling):
        """Multiplex the operands part by part. Returns those of each lane, and the operation on
        them."""
        kept = Signal.like(self.work, name="work_1", reset_less=True)
        with m.If(self.issued):
            m.d.sync += kept.eq(self.work)              # held until the next step is issued
        work = kept
        for cycle in range(1, READ_LATENCY):
            work = register(m, work, f"work_{cycle + 1}")
        part = Signal(range(self.config.vector_cycles), reset_less=True)
        with m.If(travelling[READ_LATENCY - 2]):
            m.d.sync += part.eq(0)
        with m.Else():
            m.d.sync += part.eq(part + 1)
        chosen = []
        for name, tile in zip(("left", "right", "bias", "multiplier", "shift"), operands,
                              strict=True):
            lanes = _lanes(select([tile.word_select(number, len(self.results))
                                   for number in range(self.config.vector_cycles)], part))
            if name == "right":
                lanes = _constant(work, lanes)
            chosen.append(_lanes(register(m, Cat(lanes), f"chosen_{name}")))
        return register(m, work, "work_chosen"), chosen

    def _parameters(self, m):
        """The parameter tiles, each replaced when the data of its next read arrive."""
        arriving = self.fetched
        for cycle in range(READ_LATENCY):
            later = Signal(PARAMETER_TILES, name=f"fetched_{cycle + 1}")
            m.d.sync += later.eq(arriving)
            arriving = later
        tiles = []
        for name, arrives in zip(("bias", "multiplier", "shift"), arriving, strict=True):
            tile = Signal.like(self.right, name=name, reset_less=True)
            with m.If(arrives):
                m.d.sync += tile.eq(self.right)
            tiles.append(tile)
        return tiles


def _limits(control):
    scaling = control.scaling
    return Cat(scaling.narrow, scaling.zero_point, scaling.low, scaling.high)


def _constant(work, lanes):
    """The right operands, or the immediate instead."""
    return [Mux(work.constant, work.immediate, lane)[:LANE_BITS] for lane in lanes]


def _lanes(tile):
    return [tile.word_select(number, LANE_BITS) for number in range(len(tile) // LANE_BITS)]
