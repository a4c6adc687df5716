"""The accelerator: all units connected, with its buses as ports."""

from amaranth.back import verilog as backend
from amaranth.hdl import Module, ResetInserter
from amaranth.lib.wiring import Component, Out, connect

from ..isa.config import Config
from ..isa.instructions import Buffer, Engine, Instruction
from .accumulator import Accumulator
from .alu.alu import AluEngine
from .alu.alu_decode import AluDecoder, decoded_layout
from .bus.axi import connect_flat, flat_ports, lite_channels, read_channels, write_channels
from .bus.axi_lite import AxiLiteSlave
from .bus.reader import Client, Reader
from .bus.writer import Writer
from .control import Control
from .fetch.command_queue import CommandQueue
from .fetch.fetch import Fetch
from .gemm.gemm import GemmEngine
from .gemm.gemm_decode import JUDGED, GemmDecoder
from .layouts import COMMAND, POSITION_BITS, unpack
from .load.load import LoadEngine
from .scratchpad import Scratchpad
from .store.store import StoreEngine
from .targets import Target, small_memory
from .tokens import Tokens

MODULE = "microtron"
TRACE = {"start": 1, "start_position": POSITION_BITS, "end": 1, "end_position": POSITION_BITS}


class Accelerator(Component):
    """Runs programs from memory; see docs/hardware.md for how the units work together.

        s_axi ── control ── fetch ─┬─ queue ── LOAD ───┬─ uop, inp, wgt ─┐
                            │      ├─ queue ── GEMM ───┼─────────────────┴─ accumulator
        m_axi ── reader ────┴──────│─ queue ── ALU ────┼─ accumulator ── out
              └─ writer ───────────┴─ queue ── STORE ──┴─ out, accumulator
                                        tokens

    Members
    -------
    m_axi_* : Out(read_channels and write_channels)
        An AXI4 master, to memory.
    s_axi_* : In(lite_channels)
        An AXI4-Lite slave, for a driver.
    interrupt : Out(1)
        High from the end of a program until a driver clears it.
    trace_running : Out(1)
        A program runs. Boards leave this and the other trace ports unconnected.
    trace_*_start, trace_*_end : Out(1)
        An instruction of an engine starts, or is complete, in this cycle.
    trace_*_start_position, trace_*_end_position : Out(32)
        Its number in the program.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({
            **flat_ports("m_axi", read_channels(config)),
            **flat_ports("m_axi", write_channels(config)),
            **flat_ports("s_axi", lite_channels().flip()),
            "interrupt": Out(1), "trace_running": Out(1),
            **{f"trace_{engine.name.lower()}_{name}": Out(width)
               for engine in Engine for name, width in TRACE.items()},
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.control = self.control = Control(config)
        m.submodules.slave = slave = AxiLiteSlave()
        renewed = ResetInserter(self.control.reset)

        def unit(name, component):
            """Add a unit that is reset before every program."""
            m.submodules[name] = renewed(component)
            return component

        self.fetch = unit("fetch", Fetch(config))
        self.tokens = unit("tokens", Tokens(config))
        self.reader, self.writer = unit("reader", Reader(config)), unit("writer", Writer(config))
        self.engines = {Engine.LOAD: unit("load", LoadEngine(config)),
                        Engine.GEMM: unit("gemm", GemmEngine(config)),
                        Engine.ALU: unit("alu", AluEngine(config)),
                        Engine.STORE: unit("store", StoreEngine(config))}
        # What the queues hold, if not commands.
        kept = {Engine.GEMM: JUDGED, Engine.ALU: decoded_layout(config)}
        # With two commands each, block RAM suffices for three queues; the ALU's would be the
        # widest.
        self.queues = {engine: unit(f"{engine.name.lower()}_queue", CommandQueue(
            config, kept.get(engine, COMMAND),
            small_memory(platform) if engine != Engine.ALU else None)) for engine in Engine}
        self.decoders = {Engine.GEMM: GemmDecoder(config), Engine.ALU: AluDecoder(config)}
        for engine, decoder in self.decoders.items():
            m.submodules[f"{engine.name.lower()}_decoder"] = decoder
        self._join_control(m, slave)
        self._join_engines(m)
        self._join_memory(m)
        self._join_scratchpads(m)
        return m

    def _join_control(self, m, slave):
        control, fetch = self.control, self.fetch
        connect_flat(m, "s_axi", slave.bus, self)
        m.d.comb += [
            control.write_enable.eq(slave.write_enable),
            control.write_offset.eq(slave.write_offset),
            control.write_data.eq(slave.write_data),
            control.read_offset.eq(slave.read_offset),
            slave.read_data.eq(control.read_data),
            fetch.running.eq(control.running),
            fetch.base.eq(control.program_base),
            fetch.count.eq(control.program_count),
            control.fetch_fault.eq(fetch.fault),
            control.dispatched.eq(fetch.dispatched),
            control.finished.eq(fetch.finished),
            control.overflow.eq(self.tokens.overflow),
            control.quiet.eq(self.reader.quiet & self.writer.quiet),
            self.interrupt.eq(control.interrupt),
            self.trace_running.eq(control.running),
        ]
        load, gemm, alu, store = self.engines.values()
        for each in (self.reader, self.writer):
            m.d.comb += each.halt.eq(control.halt)
        for each in (fetch, load, gemm, alu, store):
            m.d.comb += each.halts.eq(control.halts)
        connect(m, load.window, control.load_window)
        connect(m, store.window, control.store_window)

    def _join_engines(self, m):
        at_rest = []
        for engine, each in self.engines.items():
            name, queue = engine.name.lower(), self.queues[engine]
            dispatched = getattr(self.fetch, name)
            if engine in self.decoders:
                connect(m, dispatched, self.decoders[engine].commands)
                dispatched = self.decoders[engine].decoded
            connect(m, dispatched, queue.put)
            waits = (queue.coming.wait if engine == Engine.ALU
                     else unpack(Instruction, queue.coming.word).wait)
            connect(m, queue.take, each.commands)
            connect(m, each.tokens, self.tokens.port(engine))
            connect(m, each.events, getattr(self.control, name))
            m.d.comb += [self.tokens.coming[engine].eq(waits),
                         self.tokens.renews[engine].eq(queue.take.ready | ~queue.take.valid)]
            at_rest.append(queue.empty & ~each.events.busy)
            for signal in TRACE:
                m.d.comb += getattr(self, f"trace_{name}_{signal}").eq(
                    getattr(each.events, signal))
        load, gemm, alu, store = at_rest
        m.d.comb += self.fetch.idle.eq(load & gemm & alu & store)

    def _join_memory(self, m):
        load, store = self.engines[Engine.LOAD], self.engines[Engine.STORE]
        for client, each in ((Client.FETCH, self.fetch), (Client.LOAD, load)):
            connect(m, each.requests, self.reader.requests[client])
            connect(m, self.reader.beats[client], each.beats)
        connect(m, store.requests, self.writer.requests)
        connect(m, store.beats, self.writer.beats)
        connect(m, self.writer.answers, store.answers)
        connect_flat(m, "m_axi", self.reader.bus, self)
        connect_flat(m, "m_axi", self.writer.bus, self)

    def _join_scratchpads(self, m):
        load, gemm = self.engines[Engine.LOAD], self.engines[Engine.GEMM]
        alu, store = self.engines[Engine.ALU], self.engines[Engine.STORE]
        shared = self.config.gemm_out_tiles > 0
        for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT):
            name = buffer.name.lower()
            brief = shared and buffer == Buffer.INP
            m.submodules[name] = pad = Scratchpad(self.config, buffer, brief=brief)
            connect(m, getattr(load, name), pad.fill)
            connect(m, getattr(gemm, name), pad.read)
        m.submodules.out = out = Scratchpad(self.config, Buffer.OUT, words=True, shared=shared)
        connect(m, alu.out, out.write)
        connect(m, store.out, out.read)
        if shared:
            connect(m, gemm.out, out.tiles)
        m.submodules.accumulator = acc = Accumulator(self.config)
        connect(m, load.acc, acc.fill)
        connect(m, gemm.acc_read, acc.gemm_read)
        connect(m, gemm.acc_write, acc.gemm_write)
        connect(m, alu.left, acc.alu_a)
        connect(m, alu.right, acc.alu_b)
        connect(m, alu.acc, acc.alu_write)
        connect(m, store.acc, acc.store)


def verilog(config: Config, target: Target | None = None) -> str:
    """The accelerator as Verilog: module `microtron`, clock `clk`, synchronous reset `rst`.

    With a target, multipliers and small memories are mapped for that FPGA; nothing else differs.
    """
    return backend.convert(Accelerator(config), name=MODULE, platform=target, emit_src=False)
