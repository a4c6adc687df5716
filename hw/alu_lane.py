"""One lane of the ALU: eight operations and requantization through one multiplier."""

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ..isa.instructions import AluOp
from . import requantizer
from .logic import covering, is_among
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

    Every operation is a requantization with operands of its own: an addition takes the right
    operand for its bias, a multiplication for its multiplier, a shift to the left multiplies by a
    power of two. A shift to the right rounds ties up, as the first rounding of TWICE does.
    `scaling` must agree with that:

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
        The operands, a new pair in every cycle.
    bias, multiplier : In(signed(32))
        Parameters of a requantize, together with its left operand.
    shift : In(6)
        The third parameter of a requantize.
    controls : In(array of CONTROL)
        What to compute, by stage: entry k belongs to the operands that entered k cycles ago.
    result : Out(signed(32))
        Of the operands that entered `STAGES` cycles ago; 8 bits, sign-extended, where narrowed.
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
        operations = covering(AluOp, {
            AluOp.ADD: chosen.bias.eq(right),
            AluOp.SUB: chosen.bias.eq(-right),
            AluOp.MUL: chosen.multiplier.eq(right),
            AluOp.MIN: chosen.value.eq(Mux(left_is_less, left, right)),
            AluOp.MAX: chosen.value.eq(Mux(left_is_less, right, left)),
            AluOp.SHR: chosen.shift.eq(amount),
            AluOp.SHL: chosen.multiplier.eq((Const(1, LANE_BITS) << amount)[:LANE_BITS]),
            AluOp.MOVE: chosen.value.eq(right),
        })
        with m.Else(), m.Switch(control.op):
            for op, choice in operations.items():
                with m.Case(op):
                    m.d.sync += choice


def wraps(op: Value) -> Value:
    """Whether an operation wants `scaling.wrap`: the low half of a product."""
    return is_among(op, AluOp, {
        AluOp.ADD: False, AluOp.SUB: False, AluOp.MUL: True, AluOp.MIN: False, AluOp.MAX: False,
        AluOp.SHR: False, AluOp.SHL: True, AluOp.MOVE: False})
