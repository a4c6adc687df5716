"""The ALU engine behind its decoder, given commands as they are."""

from amaranth.hdl import Module
from amaranth.lib.wiring import Component, In, connect, flipped

from microtron.hw.alu.alu import AluEngine
from microtron.hw.alu.alu_decode import AluDecoder
from microtron.hw.interfaces import commands
from microtron.isa.config import Config

JOINED = ("tokens", "events", "left", "right", "acc", "out")


class DecodingAlu(Component):
    """An engine whose `commands` are whole commands. Everything else is the engine's."""

    def __init__(self, config: Config):
        self.engine, self.decoder = AluEngine(config), AluDecoder(config)
        super().__init__({**dict(self.engine.signature.members.items()), "commands": In(commands)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine, m.submodules.decoder = self.engine, self.decoder
        connect(m, flipped(self.commands), self.decoder.commands)
        connect(m, self.decoder.decoded, self.engine.commands)
        for name in JOINED:
            connect(m, getattr(self.engine, name), flipped(getattr(self, name)))
        m.d.comb += self.engine.halts.eq(self.halts)
        return m
