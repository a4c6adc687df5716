"""The accelerator, or a unit of it, between shift registers: so it fits any package.

    data_in ─▶ register ─▶ register ─▶ …         one for each bit of an input
                  │           │
                  ▼           ▼
                 the accelerator
                  │           │
                  ▼           ▼
               register ─▶ register ─▶ … ─▶ data_out       one for each bit of an output

A system would have a processor or a memory controller there, which also starts and ends paths at
registers. Traces stay open, as in a system. So a part can be measured without a board.
"""

from __future__ import annotations

from pathlib import Path

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, Flow

from ...hw.targets import Target, find_target
from ...hw.top import Accelerator
from ...isa.config import Config

NAME = "accelerator"
TOP = "top"
PORTS = ("clk", "rst", "data_in", "load", "data_out")


class Bare(Elaboratable):       # type: ignore[misc]     # Amaranth has no types
    """Pins: `data_in`, `data_out`, and `load`, with which the registers behind take the outputs."""

    def __init__(self, inner: Component):
        self.inner = inner              # a component whose members are plain ports
        self.data_in = Signal()
        self.data_out = Signal()
        self.load = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules[NAME] = inner = self.inner
        ports = {name: (member.flow, Value.cast(getattr(inner, name)))
                 for name, member in inner.signature.members.items()
                 if not name.startswith("trace_")}
        inputs = Cat(port for flow, port in ports.values() if flow == Flow.In)
        outputs = Cat(port for flow, port in ports.values() if flow == Flow.Out)
        before = Signal(len(inputs), reset_less=True)
        behind = Signal(len(outputs), reset_less=True)
        loads = Signal()
        m.d.sync += [
            before.eq(Cat(self.data_in, before)), loads.eq(self.load),
            behind.eq(Mux(loads, outputs, behind >> 1)), self.data_out.eq(behind[0]),
        ]
        m.d.comb += inputs.eq(before)
        return m


def to_rtlil(inner: object, fpga: Target | None = None, *, emit_src: bool = False) -> str:
    """All of it in Yosys's language, optionally with lines of source on what they describe."""
    from amaranth.back import rtlil

    bare = Bare(inner)
    text: str = rtlil.convert(bare, name=TOP, platform=fpga, emit_src=emit_src,
                              ports=(bare.data_in, bare.data_out, bare.load))
    return text


def config_to_rtlil(config: Config, family: str, multipliers: int | None = None) -> str:
    """The accelerator for a family of FPGAs, and for a number of multipliers if it is given."""
    return to_rtlil(Accelerator(config), find_target(family, multipliers))


def write_rtlil(config: dict[str, int], family: str, multipliers: int) -> None:
    """The step of a build: the accelerator for a family of FPGAs and its multipliers."""
    Path("top.il").write_text(config_to_rtlil(Config(**config), family, multipliers),
                              encoding="utf-8")
