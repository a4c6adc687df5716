"""All lanes of the ALU, with what they share: parameters, constants and delays."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.instructions import PARAMETER_TILES, Buffer
from .alu_lane import CONTROL, CONTROLS, STAGES, AluLane
from .requantizer import LANE_BITS, register

READ_LATENCY = 2                        # from a granted read to its data
LATENCY = READ_LATENCY + STAGES         # from a step's last granted read to its result

# What a step asks of the lanes.
WORK = data.StructLayout({
    "control": CONTROL,
    "constant": 1,                      # `immediate` is the right operand of every lane
    "immediate": signed(LANE_BITS),
})


class AluLanes(Component):
    """Computes a vector: every lane of a tile.

    Rate: a vector a cycle. Latency: `LATENCY` cycles from `issued` to `finished`. There is no
    back-pressure. The operands are sampled `READ_LATENCY` cycles after `issued`.

    A parameter tile is kept until the next of its kind arrives. It serves the steps that are
    issued after its read was granted: the three may be fetched in the three cycles before the
    first step that needs them, while steps issued earlier still take what was there.

    Members
    -------
    issued : In(1)
        A step has been granted what it reads.
    work : In(WORK)
        What that step computes.
    fetched : In(PARAMETER_TILES)
        The read of bias, multiplier or shift has been granted in this cycle.
    left, right : In(acc tile)
        Data of the read ports, each valid `READ_LATENCY` cycles after its grant.
    finished : Out(1)
        A step was issued `LATENCY` cycles ago.
    results : Out(acc tile)
        The vector of that step.
    """

    def __init__(self, config: Config):
        self.lanes = config.batch * config.block_out
        tile = 8 * config.tile_bytes(Buffer.ACC)
        super().__init__({
            "issued": In(1),
            "work": In(WORK),
            "fetched": In(PARAMETER_TILES),
            "left": In(tile),
            "right": In(tile),
            "finished": Out(1),
            "results": Out(tile),
        })

    def elaborate(self, platform):
        m = Module()
        travelling = Signal(LATENCY)            # bit k: a step was issued k + 1 cycles ago
        m.d.sync += travelling.eq(Cat(self.issued, travelling))
        m.d.comb += self.finished.eq(travelling[-1])

        work = self.work
        for cycle in range(READ_LATENCY):
            work = register(m, work, f"work_{cycle + 1}")
        controls = [work.control]
        for stage in range(1, CONTROLS):
            controls.append(register(m, controls[-1], f"control_{stage}"))
        parameters = self._parameters(m)
        for number in range(self.lanes):
            m.submodules[f"lane_{number}"] = lane = AluLane()
            bias, multiplier, shift = (_lane(each, number) for each in parameters)
            m.d.comb += [
                lane.left.eq(_lane(self.left, number)),
                lane.right.eq(Mux(work.constant, work.immediate, _lane(self.right, number))),
                lane.bias.eq(bias),
                lane.multiplier.eq(multiplier),
                lane.shift.eq(shift),
                _lane(self.results, number).eq(lane.result),
                *(lane.controls[stage].eq(each) for stage, each in enumerate(controls)),
            ]
        return m

    def _parameters(self, m):
        """The parameter tiles, each replaced when the data of its next read are there."""
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


def _lane(tile, number):
    return tile.word_select(number, LANE_BITS)
