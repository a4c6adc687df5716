"""One lane of requantization: bias, multiplier and shift, three roundings, zero point, clamp."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ..isa.arithmetic import INT32_HIGH, INT32_LOW
from ..isa.instructions import Rounding
from .logic import is_among

LANE_BITS = 32
HALF_BITS = LANE_BITS // 2
SHIFT_BITS = 6

# The stages of the pipeline, one cycle each.
BIAS, PARTS, MIDDLE, PRODUCT, FIRST, ROUND, COARSE, FINE, FINISH, CLAMP = range(10)
STAGES = CLAMP + 1

# What is done to a value, apart from its operands: the same in all lanes of a vector.
SCALING = data.StructLayout({
    "rounding": Shape.cast(Rounding),
    "wrap": 1,              # the low 32 bits of the product instead of the nearest number
    "narrow": 1,            # add the zero point and clamp; else the result has 32 bits
    "zero_point": signed(8),
    "low": signed(8),
    "high": signed(8),
})


class Requantizer(Component):
    """Computes `arithmetic.requantize` on one lane.

    With `narrow`, `scale(wrap(value + bias), multiplier, shift, rounding) + zero_point`, clamped
    to low and high; without it, the 32 bits that `scale` gives. With `wrap`, which goes with a
    shift of zero, the low 32 bits of the product take the place of what `scale` gives.

    Rate: one value a cycle. Latency: `STAGES` cycles. There is no back-pressure: what enters in
    one cycle leaves `STAGES` cycles later.

        BIAS      value + bias                      ROUND     rounded, unless more is to come
        PARTS     four products of 16 × 16 bits     COARSE    saturated, shifted by whole bytes
        MIDDLE    the two in the middle added       FINE      shifted by the rest
        PRODUCT   64 bits                           FINISH    rounded, zero point added
        FIRST     shifted by up to 31 bits          CLAMP     limited to low and high

    A shift by more than 31 bits is made in two steps, 31 bits and the rest, because rounding
    twice needs the number in between. Two bits below a number remember what shifts dropped: the
    last bit dropped, and whether any before it was one. That is all a rounding asks.

    Members
    -------
    value : In(signed(32))
        What is scaled, a new one in every cycle.
    bias : In(signed(32))
        Added before scaling, in the cycle of its value.
    multiplier : In(signed(32))
        In the cycle of its value.
    shift : In(6)
        Bits to shift right, in the cycle of its value.
    scaling : In(array of SCALING)
        What else is done, by stage: entry k belongs to the value that entered k cycles ago.
        A unit with many lanes delays these once for all of them.
    result : Out(signed(32))
        Of the value that entered `STAGES` cycles ago.
    """

    def __init__(self):
        super().__init__({
            "value": In(signed(LANE_BITS)),
            "bias": In(signed(LANE_BITS)),
            "multiplier": In(signed(LANE_BITS)),
            "shift": In(SHIFT_BITS),
            "scaling": In(data.ArrayLayout(SCALING, STAGES)),
            "result": Out(signed(LANE_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        shifts = [self.shift]           # by stage, as `scaling`
        for stage in range(BIAS, FINE):
            shifts.append(register(m, shifts[-1], f"shift_{stage + 1}"))
        product = self._multiply(m)
        rounded = self._shift_first(m, product, shifts)
        self._shift_second(m, rounded, shifts)
        return m

    def _multiply(self, m):
        """BIAS to PRODUCT. Parts of 16 bits fit the multipliers that FPGAs have."""
        wrapped = (self.value + self.bias)[:LANE_BITS]
        left = register(m, wrapped, "biased")
        right = register(m, self.multiplier, "multiplier_1")
        left_low, left_high = left[:HALF_BITS], left[HALF_BITS:].as_signed()
        right_low, right_high = right[:HALF_BITS], right[HALF_BITS:].as_signed()

        low = register(m, left_low * right_low, "low_product")
        cross = register(m, left_low * right_high, "cross_product")
        other = register(m, left_high * right_low, "other_cross_product")
        high = register(m, left_high * right_high, "high_product")

        middle = register(m, cross + other, "middle")
        outside = register(m, Cat(low, high).as_signed(), "low_and_high")
        return register(m, (outside + (middle << HALF_BITS))[:2 * LANE_BITS].as_signed(), "product")

    def _shift_first(self, m, product, shifts):
        """FIRST and ROUND. Returns the number, and what COARSE needs to saturate it."""
        first = shifts[FIRST][:5] | shifts[FIRST][5].replicate(5)       # at most 31
        number = register(m, shifted(with_dropped(product, 0), first), "first")

        quotient, last_bit, any_bit = parts_of(number)
        scaling, more_to_come = self.scaling[ROUND], shifts[ROUND][5]
        twice = scaling.rounding == Rounding.TWICE
        once = ~more_to_come & (any_bit | tie_goes_up(scaling, quotient))
        increment = last_bit & (twice | once)
        sign_bits = quotient[LANE_BITS - 1:]
        rounded = data.StructLayout({"number": signed(LANE_BITS + 1), "negative": 1,
                                     "beyond": 1, "dropped": 1})
        result = Signal(rounded, reset_less=True)
        m.d.sync += [
            result.number.eq(quotient + increment),
            result.negative.eq(quotient[-1]),
            result.beyond.eq(sign_bits.any() & ~sign_bits.all()),
            result.dropped.eq(~twice & (last_bit | any_bit)),
        ]
        return result

    def _shift_second(self, m, rounded, shifts):
        """COARSE to CLAMP."""
        scaling, more_to_come = self.scaling[COARSE], shifts[COARSE][5]
        exact = more_to_come & (scaling.rounding != Rounding.TWICE)     # 33 bits, rounded later
        beyond = rounded.beyond | (rounded.number[-1] != rounded.number[-2])
        limit = Mux(rounded.negative, INT32_LOW, INT32_HIGH)
        number = Signal(signed(LANE_BITS + 1))
        with m.If(scaling.wrap):
            m.d.comb += number.eq(rounded.number[:LANE_BITS].as_signed())
        with m.Elif(beyond & ~exact):
            m.d.comb += number.eq(limit)
        with m.Else():
            m.d.comb += number.eq(rounded.number)
        whole_bytes = Cat(Const(0, 3), second_shift(shifts[COARSE])[3:])
        coarse = register(m, shifted(with_dropped(number, rounded.dropped), whole_bytes), "coarse")
        fine = register(m, shifted(coarse, second_shift(shifts[FINE])[:3]), "fine")

        scaling = self.scaling[FINISH]
        quotient, last_bit, any_bit = parts_of(fine)
        increment = last_bit & (any_bit | tie_goes_up(scaling, quotient))
        zero_point = Mux(scaling.narrow, scaling.zero_point, 0)
        finished = register(m, quotient + zero_point + increment, "finished")

        scaling = self.scaling[CLAMP]
        clamped = Mux(finished < scaling.low, scaling.low,
                      Mux(finished > scaling.high, scaling.high, finished))
        result = Signal(signed(LANE_BITS), reset_less=True)
        m.d.sync += result.eq(Mux(scaling.narrow, clamped, finished))
        m.d.comb += self.result.eq(result)


def register(m, value, name):
    """The value one cycle later."""
    later = Signal.like(value, name=name, reset_less=True)
    m.d.sync += later.eq(value)
    return later


def with_dropped(number, dropped):
    """A number with the two bits below it. `dropped`: something below half a unit was lost."""
    return Cat(dropped, Const(0, 1), number).as_signed()


def parts_of(number):
    """The number itself, the last bit dropped below it, and whether any other was one."""
    return number[2:].as_signed(), number[1], number[0]


def shifted(number, amount):
    """Shifts right; the lowest bit stays set when any bit that went through it was."""
    lost = number[:(1 << len(amount)) - 1] & ((Const(1, 1) << amount) - 1)
    return ((number >> amount) | lost.any()).as_signed()


def second_shift(shift):
    """What is left of a shift after 31 bits: 0 to 32."""
    return Mux(shift[5], shift[:5] + 1, Const(0, unsigned(6)))


def tie_goes_up(scaling, quotient):
    """Where a tie is rounded: to the even neighbour, or away from zero."""
    to_even = is_among(scaling.rounding, Rounding, {
        Rounding.TWICE: False, Rounding.EVEN: True, Rounding.AWAY: False})
    return Mux(to_even, quotient[0], ~quotient[-1])
