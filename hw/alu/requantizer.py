"""One lane of requantization: bias, multiplier and shift, three roundings, zero point, clamp."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ...isa.arithmetic import INT32_HIGH, INT32_LOW
from ...isa.instructions import Rounding
from ..logic import exponent, is_among, register, select

LANE_BITS = 32
HALF_BITS = LANE_BITS // 2
SHIFT_BITS = 6
NEAR_BITS = 11                          # of a number that a zero point may bring into 8 bits
COARSE_BITS = exponent(HALF_BITS)       # shift amount of FINE, the rest is COARSE's
QUOTIENT_BITS = LANE_BITS + 1           # what is left of a product after a shift by 31 bits

# The stages of the pipeline, one cycle each.
(BIAS, PARTS, MIDDLE, PRODUCT, FIRST_COARSE, FIRST_FINE, ROUND, COARSE, FINE, FINISH,
 CLAMP) = range(11)
STAGES = CLAMP                          # registers; CLAMP is combinational
SCALINGS = CLAMP + 1
LIMITED = FINE                          # the first stage that uses zero point and limits

# The operation on a value, the same in all lanes of a vector.
SCALING = data.StructLayout({
    "rounding": Shape.cast(Rounding),
    "wrap": 1,              # the low 32 bits of the product, without saturation
    "narrow": 1,            # add the zero point and clamp; else the result has 32 bits
    "zero_point": signed(8),
    "low": signed(8),
    "high": signed(8),
})

# Of a number without its upper bits: whether these were more than copies of the sign.
LIMITS = data.StructLayout({"beyond": 1, "negative": 1})


class Requantizer(Component):
    """Computes `arithmetic.requantize` on one lane.

    With `narrow`, `scale(wrap(value + bias), multiplier, shift, rounding) + zero_point`, clamped to
    low and high; without it, the 32 bits that `scale` gives. With `wrap`, which needs a shift of
    zero, the low 32 bits of the product replace the result of `scale`.

    Rate: one value a cycle. Latency: `STAGES` cycles. There is no back-pressure. The output is
    combinational, because its consumer has a register.

        BIAS            value + bias                    ROUND     rounded, unless more is to come
        PARTS           four products of 16 × 16 bits   COARSE    saturated, shifted by 0, 16 or 32
        MIDDLE          the two in the middle added     FINE      shifted by the rest
        PRODUCT         64 bits                         FINISH    rounded, zero point added
        FIRST_COARSE    shifted by up to three bytes              and compared with low and high
        FIRST_FINE      shifted by up to 7 bits         CLAMP     limited to them

    A shift by more than 31 bits takes two steps, 31 bits and the rest, because rounding twice needs
    the number in between. A guard bit and a sticky bit below a number record what shifts dropped:
    the last bit dropped, and whether any before it was one. Rounding needs no more. Of the upper
    bits, a stage keeps those that can still reach the result; `beyond` records whether the others
    were more than copies of the sign.

    Members
    -------
    value : In(signed(32))
        The value to scale, a new one in every cycle.
    bias : In(signed(32))
        Added before scaling, in the cycle of its value.
    carry : In(1)
        Carry in: with a bias of `~x`, it subtracts x.
    multiplier : In(signed(32))
        In the cycle of its value.
    shift : In(6)
        Bits to shift right, in the cycle of its value.
    scaling : In(array of SCALING)
        The operation by stage: entry k of `SCALINGS` applies to the value that entered k cycles
        ago. A unit with many lanes delays these once for all.
    result : Out(signed(32))
        Of the value that entered `STAGES` cycles ago; with `narrow`, in its lowest 8 bits.
    """

    def __init__(self):
        super().__init__({
            "value": In(signed(LANE_BITS)),
            "bias": In(signed(LANE_BITS)),
            "carry": In(1),
            "multiplier": In(signed(LANE_BITS)),
            "shift": In(SHIFT_BITS),
            "scaling": In(data.ArrayLayout(SCALING, SCALINGS)),
            "result": Out(signed(LANE_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        shifts = [self.shift]           # by stage, as `scaling`
        for stage in range(BIAS, ROUND):
            shifts.append(register(m, shifts[-1], f"shift_{stage + 1}"))
        product = self._multiply(m)
        number, limits = self._shift_first(m, product, shifts)
        rounded = self._round(m, number, limits, shifts)
        self._shift_second(m, rounded, register(m, second_shift(shifts[ROUND]), "second"))
        return m

    def _multiply(self, m):
        """BIAS to PRODUCT. Parts of 16 bits fit the multipliers of FPGAs."""
        wrapped = (self.value + self.bias + self.carry)[:LANE_BITS]
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
        """FIRST_COARSE and FIRST_FINE. Returns the number, and what is needed to saturate it."""
        shift = shifts[PRODUCT]
        amount = register(m, shift[:5] | shift[5].replicate(5), "first_shift")      # at most 31
        fine_amount = register(m, amount[:3], "first_fine_shift")
        whole_bytes, kept = amount[3:], QUOTIENT_BITS + 7       # 7 more are shifted out next
        coarse = register(m, lowest(shift_right_sticky(append_sticky_bits(product, 0), whole_bytes,
                                                       8), kept + 2),
                          "first_coarse")
        lost = register(m, Cat(
            (whole_bytes <= number) & _differs(product[kept + 8 * number:][:8], product[-1])
            for number in range(3)).any(), "first_lost")
        sign = register(m, product[-1], "sign")
        above = Cat((fine_amount <= number) & (bit != sign)
                    for number, bit in enumerate(coarse[2 + LANE_BITS - 1:]))
        number = register(m, lowest(shift_right_sticky(coarse, fine_amount, 1), QUOTIENT_BITS + 2),
                          "first")
        limits = Signal(LIMITS, reset_less=True)
        m.d.sync += [limits.beyond.eq(lost | above.any()), limits.negative.eq(sign)]
        return number, limits

    def _round(self, m, number, limits, shifts):
        """ROUND. Returns the number, and what COARSE needs to saturate it."""
        quotient, last_bit, any_bit = parts_of(number)
        scaling, more_to_come = self.scaling[FIRST_FINE], shifts[FIRST_FINE][5]
        is_twice = scaling.rounding == Rounding.TWICE
        exact = more_to_come & ~is_twice        # keep all 33 bits, to be rounded later
        twice = register(m, is_twice, "rounds_twice")
        once = register(m, ~more_to_come, "rounds_once")
        to_even = register(m, rounds_to_even(scaling), "rounds_to_even")
        limited = register(m, ~exact & ~scaling.wrap, "limited")
        increment = last_bit & (twice | (once & (any_bit | tie_goes_up(to_even, quotient))))
        result = Signal(data.StructLayout({
            "number": signed(QUOTIENT_BITS), "saturates": 1, "negative": 1, "dropped": 1}),
            name="rounded", reset_less=True)
        incremented = Signal(signed(QUOTIENT_BITS))
        beyond = limits.beyond | (incremented[-1] != incremented[-2])
        m.d.comb += incremented.eq(quotient + increment)
        m.d.sync += [
            result.number.eq(incremented),
            result.saturates.eq(limited & beyond),
            result.negative.eq(limits.negative),
            result.dropped.eq(~twice & (last_bit | any_bit)),
        ]
        return result

    def _shift_second(self, m, rounded, amount):
        """COARSE to CLAMP."""
        limit, number = Signal(signed(QUOTIENT_BITS)), Signal(signed(QUOTIENT_BITS))
        m.d.comb += [limit.eq(Mux(rounded.negative, INT32_LOW, INT32_HIGH)),
                     number.eq(rounded.number)]
        with m.If(self.scaling[COARSE].wrap):
            m.d.comb += number[-1].eq(rounded.number[-2])
        number, limit = (append_sticky_bits(each, rounded.dropped) for each in (number, limit))
        # A shift by 48 bits never occurs. Its input of the multiplexer carries the saturation
        # limit, whose bits are mostly alike, so that each bit is a 4:1 multiplexer.
        halves = amount[COARSE_BITS:]
        choices = [*(shift_right_sticky(number, Const(place, 2), HALF_BITS) for place in range(3)),
                   shift_right_sticky(limit, halves, HALF_BITS)]
        coarse = register(m, select(choices, halves | rounded.saturates.replicate(2)).as_signed(),
                          "coarse")
        fine_shift = register(m, amount[:COARSE_BITS], "fine_shift")
        fine = register(m, shift_right_sticky(coarse, fine_shift, 1), "fine")

        scaling = self.scaling[FINISH]
        quotient, last_bit, any_bit = parts_of(fine)
        to_even = register(m, rounds_to_even(self.scaling[FINE]), "finishes_to_even")
        increment = last_bit & (any_bit | tie_goes_up(to_even, quotient))
        # Eight bits are enough: with `narrow`, those above are not used.
        zero_point = Mux(scaling.narrow, scaling.zero_point.as_unsigned(), 0)
        finished = register(m, quotient + zero_point + increment, "finished")
        below, above = self._compare(m, quotient, increment)

        scaling = self.scaling[CLAMP]
        clamped = Mux(below, scaling.low, Mux(above, scaling.high, finished[:8].as_signed()))
        m.d.comb += self.result.eq(Cat(Mux(scaling.narrow, clamped, finished)[:8], finished[8:]))

    def _compare(self, m, quotient, increment):
        """FINISH, beside the sum: whether it is below `low` or above `high`. The distances of the
        limits from the zero point are computed before, so that the comparison takes no longer than
        the sum."""
        scaling = self.scaling[FINE]
        to_low = register(m, scaling.zero_point - scaling.low, "to_low")
        to_high = register(m, scaling.zero_point - scaling.high - 1, "to_high")
        # Limits and zero point have 8 bits: a number that does not fit in three more is beyond the
        # limits.
        far, negative = _differs(quotient[NEAR_BITS - 1:-1], quotient[-1]), quotient[-1]
        near = lowest(quotient, NEAR_BITS)
        below = register(m, Mux(far, negative, (near + to_low + increment) < 0), "below")
        above = register(m, Mux(far, ~negative, (near + to_high + increment) >= 0), "above")
        return below, above


def append_sticky_bits(number, dropped):
    """A number with its guard and sticky bits. `dropped`: some bit below the guard bit was one."""
    return Cat(dropped, Const(0, 1), number).as_signed()


def lowest(number, bits):
    """The lowest bits of a number, as a signed number."""
    return number[:bits].as_signed()


def parts_of(number):
    """The number itself, the last bit dropped below it, and whether any other was one."""
    return number[2:].as_signed(), number[1], number[0]


def shift_right_sticky(number, amount, unit):
    """Shift right by `amount` units of `unit` bits; the lowest bit is sticky."""
    while len(amount):          # two bits at a time: a 4:1 multiplexer
        here = amount[-2:]
        step = unit << len(amount) - len(here)
        lost = Cat((here > place) & number[place * step:][:step].any()
                   for place in range((1 << len(here)) - 1))
        moved = select([number >> place * step for place in range(1 << len(here))], here)
        number, amount = (moved | lost.any()).as_signed(), amount[:-2]
    return number


def _differs(bits, sign):
    """Whether some bits are more than copies of the sign."""
    return Mux(sign, ~bits.all(), bits.any())


def second_shift(shift):
    """The rest of a shift after 31 bits: 0 to 32."""
    return Mux(shift[5], shift[:5] + 1, Const(0, unsigned(6)))


def rounds_to_even(scaling):
    return is_among(scaling.rounding, Rounding, {
        Rounding.TWICE: False, Rounding.EVEN: True, Rounding.AWAY: False})


def tie_goes_up(to_even, quotient):
    """Whether a tie rounds up: to the even neighbour, or away from zero."""
    return Mux(to_even, quotient[0], ~quotient[-1])
