"""One lane of the ALU: eight operations and requantization through one multiplier."""

from amaranth.hdl import Const, Module, Mux, Shape, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ..isa.instructions import AluOp
from . import requantizer
from .requantizer import LANE_BITS, SCALING, SHIFT_BITS, Requantizer

STAGES = 1 + requantizer.STAGES         # cycles from operands to result
AMOUNT_BITS = 5                         # of a shift by the right operand

# What a vector is to become: the same in all its lanes.
CONTROL = data.StructLayout({
    "op": Shape.cast(AluOp),
    "requantize": 1,                    # instead of `op`
    "scaling": SCALING,
})


class AluLane(Component):
    """Computes `arithmetic.alu`, or scales with the parameters of a requantize.

    Every operation is a requantization with operands of its own: addition has the right operand
    for a bias, multiplication for a multiplier, a shift to the left a power of two. A shift to
    the right rounds ties up, as the first rounding of TWICE does. `scaling` must agree with that:

                   value        bias      multiplier    shift    scaling
        add        left         right     1             0
        sub        left         −right    1             0
        mul        left         0         right         0        wrap
        min, max   one of them  0         1             0
        shr        left         0         1             right    TWICE
        shl        left         0         2**right      0        wrap
        move       right        0         1             0

    Rate: a value a cycle. Latency: `STAGES` cycles: one to choose, the rest in the requantizer.
    There is no back-pressure.

    Members
    -------
    left, right : In(signed(32))
    bias, multiplier : In(signed(32)), shift : In(6)
        Parameters of a requantize, which come with its left operand.
    controls : In(array of CONTROL, by stage)
        Entry k belongs to the operands that entered k cycles ago.
    result : Out(signed(32))
    """

    def __init__(self):
        super().__init__({
            "left": In(signed(LANE_BITS)),
            "right": In(signed(LANE_BITS)),
            "bias": In(signed(LANE_BITS)),
            "multiplier": In(signed(LANE_BITS)),
            "shift": In(SHIFT_BITS),
            "controls": In(data.ArrayLayout(CONTROL, STAGES)),
            "result": Out(signed(LANE_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.requantizer = scale = Requantizer()
        chosen = Signal(data.StructLayout({
            "value": signed(LANE_BITS), "bias": signed(LANE_BITS),
            "multiplier": signed(LANE_BITS), "shift": SHIFT_BITS}), reset_less=True)
        self._choose(m, chosen)
        m.d.comb += [
            scale.value.eq(chosen.value), scale.bias.eq(chosen.bias),
            scale.multiplier.eq(chosen.multiplier), scale.shift.eq(chosen.shift),
            self.result.eq(scale.result),
        ]
        for stage in range(requantizer.STAGES):
            m.d.comb += scale.scaling[stage].eq(self.controls[1 + stage].scaling)
        return m

    def _choose(self, m, chosen):
        """The operands of the requantizer."""
        left, right, control = self.left, self.right, self.controls[0]
        amount = right[:AMOUNT_BITS]
        left_is_less = Signal()
        m.d.comb += left_is_less.eq(left < right)
        m.d.sync += [chosen.value.eq(left), chosen.bias.eq(0), chosen.multiplier.eq(1),
                     chosen.shift.eq(0)]
        with m.If(control.requantize):
            m.d.sync += [chosen.bias.eq(self.bias), chosen.multiplier.eq(self.multiplier),
                         chosen.shift.eq(self.shift)]
        with m.Else(), m.Switch(control.op):
            with m.Case(AluOp.ADD):
                m.d.sync += chosen.bias.eq(right)
            with m.Case(AluOp.SUB):
                m.d.sync += chosen.bias.eq(-right)
            with m.Case(AluOp.MUL):
                m.d.sync += chosen.multiplier.eq(right)
            with m.Case(AluOp.MIN):
                m.d.sync += chosen.value.eq(Mux(left_is_less, left, right))
            with m.Case(AluOp.MAX):
                m.d.sync += chosen.value.eq(Mux(left_is_less, right, left))
            with m.Case(AluOp.SHR):
                m.d.sync += chosen.shift.eq(amount)
            with m.Case(AluOp.SHL):
                m.d.sync += chosen.multiplier.eq((Const(1, LANE_BITS) << amount)[:LANE_BITS])
            with m.Case(AluOp.MOVE):
                m.d.sync += chosen.value.eq(right)


def wraps(op):
    """Whether an operation wants `scaling.wrap`: the low half of a product."""
    return op.matches(AluOp.MUL, AluOp.SHL)
