"""The dependency tokens: one counter for each ordered pair of engines."""

from amaranth.hdl import Module, Mux, Signal
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
        some = Signal(name=f"{giver.name}_to_{taker.name}_some".lower())     # count != 0
        full, overflow = Signal(), Signal(name=f"{giver.name}_to_{taker.name}_overflow".lower())
        m.d.comb += [full.eq(count == self.config.token_limit),
                     overflow.eq(posted & ~taken & full)]
        # A take is known late: it decides whether the counter moves, the post which way.
        with m.If(Mux(posted, ~taken & ~full, taken)):
            m.d.sync += count.eq(Mux(posted, count + 1, count - 1))
        with m.If(posted):
            m.d.sync += some.eq(1)
        with m.Elif(taken):
            m.d.sync += some.eq(count != 1)
        return some, overflow
