"""One lane of the ALU: eight operations and requantization through one multiplier."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ...isa.instructions import AluOp
from ..logic import is_among, require_entries
from . import requantizer
from .requantizer import LANE_BITS, SCALING, SHIFT_BITS, Requantizer

STAGES = 1 + requantizer.STAGES         # cycles from operands to result
CONTROLS = 1 + requantizer.SCALINGS
LIMITED = 1 + requantizer.LIMITED       # the first stage whose control needs zero point and limits
AMOUNT_BITS = 5                         # bits of a shift amount in the right operand

# The operation on a vector, the same for all its lanes.
CONTROL = data.StructLayout({
    "op": Shape.cast(AluOp),
    "requantize": 1,                    # instead of `op`
    "scaling": SCALING,
})

# Output of the first stage. `other` is the right operand or the bias of a requantize; it replaces
# the left operand, is added to it, or is ignored.
CHOSEN = data.StructLayout({
    "left": signed(LANE_BITS), "other": signed(LANE_BITS), "takes_other": 1, "adds_other": 1,
    "carry": 1, "multiplier": signed(LANE_BITS), "shift": SHIFT_BITS,
})


class AluLane(Component):
    """Computes `arithmetic.alu`, or scales with the parameters of a requantize.

    Every operation maps to a requantization: an addition uses the right operand as the bias, a
    multiplication as the multiplier, and a left shift multiplies by a power of two. A right shift
    rounds ties up, as the first rounding of TWICE does. `scaling` must be set to match:

                   value        bias      multiplier    shift    scaling
        add        left         right     1             0
        sub        left         −right    1             0
        mul        left         0         right         0        wrap
        min, max   one of them  0         1             0
        shr        left         0         1             right    TWICE
        shl        left         0         2**right      0        wrap
        move       right        0         1             0

    Rate: a value a cycle. Latency: `STAGES` cycles: one to select operands, the rest in the
    requantizer. There is no back-pressure.

    Members
    -------
    left, right : In(signed(32))
        The operands, a new pair in every cycle.
    bias, multiplier : In(signed(32))
        Parameters of a requantize, together with its left operand.
    shift : In(6)
        The third parameter of a requantize.
    controls : In(array of CONTROL)
        The operation by stage: entry k of `CONTROLS` applies to the operands that entered k cycles
        ago.
    result : Out(signed(32))
        Of the operands that entered `STAGES` cycles ago; where narrowed, in its lowest 8 bits.
    """

    def __init__(self):
        super().__init__({
            "left": In(signed(LANE_BITS)),
            "right": In(signed(LANE_BITS)),
            "bias": In(signed(LANE_BITS)),
            "multiplier": In(signed(LANE_BITS)),
            "shift": In(SHIFT_BITS),
            "controls": In(data.ArrayLayout(CONTROL, CONTROLS)),
            "result": Out(signed(LANE_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.requantizer = scale = Requantizer()
        chosen = Signal(CHOSEN, reset_less=True)
        self._choose(m, chosen)
        m.d.comb += [
            scale.value.eq(Mux(chosen.takes_other, chosen.other, chosen.left)),
            scale.bias.eq(Mux(chosen.adds_other, chosen.other, 0)),
            scale.carry.eq(chosen.carry),
            scale.multiplier.eq(chosen.multiplier), scale.shift.eq(chosen.shift),
            self.result.eq(scale.result),
        ]
        for stage in range(requantizer.SCALINGS):
            m.d.comb += scale.scaling[stage].eq(self.controls[1 + stage].scaling)
        return m

    def _multiplier(self):
        """The multiplier: the parameter, the right operand, or a power of two, which is 1 if
        nothing is multiplied."""
        control = self.controls[0]
        takes_right = ~control.requantize & (control.op == AluOp.MUL)
        exponent = Mux(control.op == AluOp.SHL, self.right[:AMOUNT_BITS], 0)
        return ((self.multiplier & control.requantize.replicate(LANE_BITS))
                | (self.right & takes_right.replicate(LANE_BITS))
                | _power_of_two(exponent, ~control.requantize & ~takes_right))

    def _choose(self, m, chosen):
        """Select the operands of the requantizer; the comparison for min and max is applied in the
        next stage."""
        left, right, control = self.left, self.right, self.controls[0]
        right_is_less = Signal()
        m.d.comb += right_is_less.eq(right < left)
        m.d.sync += [
            chosen.left.eq(left), chosen.other.eq(right), chosen.takes_other.eq(0),
            chosen.adds_other.eq(0), chosen.carry.eq(0), chosen.shift.eq(0),
            chosen.multiplier.eq(self._multiplier()),
        ]
        with m.If(control.requantize):
            m.d.sync += [chosen.other.eq(self.bias), chosen.adds_other.eq(1),
                         chosen.shift.eq(self.shift)]
        operations = require_entries(AluOp, {
            AluOp.ADD: [chosen.adds_other.eq(1)],
            AluOp.SUB: [chosen.adds_other.eq(1), chosen.other.eq(~right), chosen.carry.eq(1)],
            AluOp.MUL: [],          # done by its multiplier
            AluOp.MIN: [chosen.takes_other.eq(right_is_less)],
            AluOp.MAX: [chosen.takes_other.eq(~right_is_less)],
            AluOp.SHR: [chosen.shift.eq(right[:AMOUNT_BITS])],
            AluOp.SHL: [],
            AluOp.MOVE: [chosen.takes_other.eq(1)],
        })
        with m.Else(), m.Switch(control.op):
            for op, choices in operations.items():
                with m.Case(op):
                    m.d.sync += choices


def _power_of_two(exponent: Value, wanted: Value) -> Value:
    """2**exponent, or zero: each bit is the AND of two shared predecoded bits, one of eight and one
    of four."""
    low, high = exponent[:3], exponent[3:]
    of_eight = [low == number for number in range(1 << len(low))]
    of_four = [wanted & (high == number) for number in range(1 << len(high))]
    return Cat(one & other for other in of_four for one in of_eight)


def wraps(op: Value) -> Value:
    """Whether an operation needs `scaling.wrap`: the low half of a product."""
    return is_among(op, AluOp, {
        AluOp.ADD: False, AluOp.SUB: False, AluOp.MUL: True, AluOp.MIN: False, AluOp.MAX: False,
        AluOp.SHR: False, AluOp.SHL: True, AluOp.MOVE: False})
