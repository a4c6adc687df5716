"""The dependency tokens: one counter for each ordered pair of engines."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from ..isa.config import Config
from ..isa.instructions import Engine
from .interfaces import tokens
from .logic import step_by_one


class Tokens(Component):
    """Counts the tokens from each engine to each other engine.

    Rate: every engine may post to all others and take from all others in every cycle. A token
    posted in one cycle can be taken in the next. A post and a take of the same counter in one
    cycle cancel. Counters never wrap or saturate: a post to a full counter that is not taken from
    raises `overflow` in the next cycle, and the token is not counted.

    Whether an engine has all its tokens is computed one cycle ahead, for the current instruction
    and for the one behind it, so that `granted` comes from a register.

    Members
    -------
    load, gemm, alu, store : In(tokens)
        What each engine waits for, takes and posts. `granted` and `missing` answer in the same
        cycle. `granted` is valid for an instruction that `coming` announced, or that stayed; it is
        low in the cycle after `bars`.
    coming : In(a mask for each engine)
        What the engine will wait for in the next cycle, if it `renews`.
    renews : In(len(Engine))
        Engines that have no instruction to start in this cycle, or start it.
    overflow : Out(len(Engine))
        Engines whose post in the previous cycle overflowed a counter.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            **{engine.name.lower(): In(tokens) for engine in Engine},
            "coming": In(data.ArrayLayout(len(Engine), len(Engine))), "renews": In(len(Engine)),
            "overflow": Out(len(Engine)),
        })

    def port(self, engine: Engine):
        return getattr(self, engine.name.lower())

    def elaborate(self, platform):
        m = Module()
        counters = {}
        for giver in Engine:
            overflows = []
            for taker in Engine:
                if giver != taker:
                    *counters[giver, taker], overflow = self._counter(m, giver, taker)
                    overflows.append(overflow)
            m.d.comb += self.overflow[giver].eq(sum(overflows[1:], overflows[0]) != 0)
        for taker in Engine:
            port = self.port(taker)
            granted = Signal(init=1, name=f"{taker.name}_granted".lower())
            lacks_now, lacks_then = [], []      # for this instruction, for the one behind it
            for giver in Engine:
                some, many = counters.get((giver, taker), (Const(0), Const(0)))
                arrives = self.port(giver).post[taker] if giver != taker else 0
                m.d.comb += port.missing[giver].eq(port.wait[giver] & ~some)
                lacks_now.append(port.wait[giver] & ~some & ~arrives)
                lacks_then.append(self.coming[taker][giver] & ~arrives
                                  & ~Mux(port.wait[giver], many, some))
            m.d.comb += port.granted.eq(granted)
            m.d.sync += granted.eq(~port.bars & ~Mux(self.renews[taker], Cat(lacks_then).any(),
                                                     Cat(lacks_now).any()))
        return m

    def _counter(self, m, giver, taker):
        """One counter. Returns whether it holds a token, whether it holds several, and whether a
        post has overflowed it."""
        count = Signal(self.config.token_bits, name=f"{giver.name}_to_{taker.name}".lower())
        posted, wanted = self.port(giver).post[taker], self.port(taker).wait[giver]
        some, many = (Signal(name=f"{giver.name}_to_{taker.name}_{part}".lower())
                      for part in ("some", "many"))             # count >= 1, count >= 2
        full, overflow = Signal(), Signal(name=f"{giver.name}_to_{taker.name}_overflow".lower())

        def after(taken, otherwise):
            """`take` arrives late, so both outcomes are computed before it."""
            return Mux(self.port(taker).take, Mux(wanted, taken, otherwise), otherwise)

        moves = Signal()
        m.d.comb += [full.eq(count == self.config.token_limit),
                     moves.eq(after(~posted, posted & ~full))]
        m.d.sync += [
            overflow.eq(after(0, posted & full)),
            some.eq(after(Mux(posted, some, many), posted | some)),
            many.eq(after(many & (posted | (count != 2)), Mux(posted, some, many))),
        ]
        with m.If(moves):
            m.d.sync += count.eq(step_by_one(count, posted))
        return some, many, overflow
