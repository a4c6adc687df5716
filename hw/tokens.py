"""The dependency tokens: one counter for each ordered pair of engines."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.instructions import Engine
from .interfaces import tokens


class Tokens(Component):
    """Counts the tokens that each engine has given to each other engine.

    Rate: every engine may post to all others and take from all others in every cycle. A token
    posted in one cycle can be taken in the next. A post and a take of the same counter in one
    cycle cancel. Counters never wrap or saturate: a post to a full counter that is not taken from
    raises `overflow`, and the token is not counted.

    Members
    -------
    load, gemm, alu, store : In(tokens)
        What each engine waits for, takes and posts. `granted` and `missing` answer in the same
        cycle.
    overflow : Out(len(Engine))
        Engines whose post in this cycle overflows a counter.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            **{engine.name.lower(): In(tokens) for engine in Engine},
            "overflow": Out(len(Engine)),
        })

    def port(self, engine: Engine):
        return getattr(self, engine.name.lower())

    def elaborate(self, platform):
        m = Module()
        present = {}
        for giver in Engine:
            overflows = []
            for taker in Engine:
                if giver != taker:
                    present[giver, taker], overflow = self._counter(m, giver, taker)
                    overflows.append(overflow)
            m.d.comb += self.overflow[giver].eq(sum(overflows[1:], overflows[0]) != 0)
        for taker in Engine:
            port = self.port(taker)
            for giver in Engine:
                there = present.get((giver, taker), 0)
                m.d.comb += port.missing[giver].eq(port.wait[giver] & ~there)
            m.d.comb += port.granted.eq(port.missing == 0)
        return m

    def _counter(self, m, giver, taker):
        """One counter. Returns whether it holds a token and whether a post overflows it."""
        count = Signal(self.config.token_bits, name=f"{giver.name}_to_{taker.name}".lower())
        posted = self.port(giver).post[taker]
        taken = self.port(taker).take & self.port(taker).wait[giver]
        overflow = Signal(name=f"{giver.name}_to_{taker.name}_overflow".lower())
        m.d.comb += overflow.eq(posted & ~taken & (count == self.config.token_limit))
        with m.If(posted & ~taken & ~overflow):
            m.d.sync += count.eq(count + 1)
        with m.Elif(taken & ~posted):
            m.d.sync += count.eq(count - 1)
        return count != 0, overflow
