"""Many wide counters in little area: lower bits in registers, upper bits in a memory."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import ceil_log2

from .logic import exponent, register, select

COUNTER_BITS = 40               # three hours at 100 MHz
GROUP = 8                       # counters multiplexed in one cycle


class Counters(Component):
    """Accumulates steps in counters of COUNTER_BITS bits.

    Counters take turns, one a cycle, to add their carry to their upper bits: a round takes as many
    cycles as the memory has words. Until its turn a carry waits in a register of its own, and in
    the cycle of its turn in `due`, which all share. There are enough lower bits that the next carry
    does not come within two rounds. At any time, the value of a counter is the sum of the three.

    Memory cannot be cleared at once: in the first round after `clear`, upper bits read as zero.

    Rate: a step of each counter and a read a cycle.

    Parameters
    ----------
    widest : the largest step of each counter

    Members
    -------
    clear : In(1)
        Restart from zero in the next cycle.
    step_* : In(range(widest + 1))
        The increment of each counter in this cycle.
    read : In(bits)
        The number of the counter to read, in every cycle.
    value : Out(COUNTER_BITS)
        The counter whose number was given two cycles before, with its value of then.
    """

    def __init__(self, widest: list[int]):
        self.widest = widest
        self.places = max(1 << ceil_log2(len(widest)), 2)
        self.low_bits = ceil_log2(max(widest)) + exponent(2 * self.places)
        self.high_bits = COUNTER_BITS - self.low_bits
        super().__init__({
            "clear": In(1), "read": In(exponent(self.places)), "value": Out(COUNTER_BITS),
            **{f"step_{number}": In(range(most + 1)) for number, most in enumerate(widest)}})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.high_bits, depth=self.places, init=[])
        write, old, asked = (memory.write_port(), memory.read_port(domain="comb"),
                             memory.read_port(domain="comb"))
        turn, ahead = (Signal(exponent(self.places), init=init) for init in (0, 1))
        fresh, due = Signal(init=1), Signal()       # the first round; the carry of this turn
        high = Signal(self.high_bits)               # and its upper bits
        lows, carries = self._registers(m, ahead)
        m.d.sync += [turn.eq(ahead), ahead.eq(ahead + 1), due.eq(select(carries, ahead)),
                     high.eq(old.data)]
        with m.If(turn == self.places - 1):
            m.d.sync += fresh.eq(0)
        with m.If(self.clear):
            m.d.sync += [turn.eq(0), ahead.eq(1), due.eq(0), fresh.eq(1)]
        m.d.comb += [old.addr.eq(ahead), write.addr.eq(turn), write.en.eq(1),
                     write.data.eq(Mux(fresh, 0, high) + due)]
        self._read(m, asked, lows, carries, due & (self.read == turn),
                   fresh & (self.read >= turn))
        return m

    def _registers(self, m, ahead):
        """The lower bits of each counter, and its carry, which is cleared ahead of the counter's
        turn."""
        lows, carries = [], []
        for number in range(len(self.widest)):
            low = Signal(self.low_bits, name=f"low_{number}")
            carry, now = Signal(name=f"carry_{number}"), Signal(name=f"carries_{number}")
            total = low + getattr(self, f"step_{number}")
            m.d.comb += now.eq(total[self.low_bits:].any())
            m.d.sync += [low.eq(total), carry.eq(now | (carry & (ahead != number)))]
            with m.If(self.clear):
                m.d.sync += [low.eq(0), carry.eq(0)]
            lows.append(low)
            carries.append(carry)
        missing = [Const(0)] * (self.places - len(self.widest))
        return [*lows, *missing], [*carries, *missing]

    def _read(self, m, asked, lows, carries, moves, unknown):
        """Select within each group of counters, then among groups. `moves`: the carry of the
        counter that is read is in `due`."""
        size = min(GROUP, self.places)
        group = register(m, self.read[exponent(size):], "group")
        low, carry = (
            select([register(m, select(values[at:at + size], self.read), f"{name}_{at // size}")
                    for at in range(0, self.places, size)], group)
            for name, values in (("chosen_low", lows), ("chosen_carry", carries)))
        moves = register(m, moves, "moves")
        m.d.comb += asked.addr.eq(self.read)
        high = register(m, Mux(unknown, 0, asked.data), "chosen_high")
        carry = register(m, carry | moves, "read_carry")
        m.d.comb += self.value.eq((register(m, high, "read_high") + carry) << self.low_bits
                                  | register(m, low, "read_low"))
