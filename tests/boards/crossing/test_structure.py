"""Every wire from one clock to the other in the netlist: to a synchronizer, or from what stands
still while somebody looks."""

import json
import subprocess
import sys

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, ClockSignal, Module
from amaranth.lib.wiring import Component, In, Out

from microtron.boards.crossing.async_fifo import AsyncFifo
from microtron.boards.soc.dram.crossed_bridge import CrossedBridge
from microtron.boards.soc.dram.dram_port import Port
from microtron.isa.config import tiny

from ...hw.formal_proofs.formal import YOSYS, broken

# Registers whose outputs may reach the other clock through logic, and where they end: all of them
# are stable from before a synchronized bit tells of them until one comes back.
STANDING = {"storage", "is_write", "address", "data", "strobes", "answer", "response"}
CLOCKED = {"$dff": "CLK", "$dffe": "CLK", "$sdff": "CLK", "$sdffe": "CLK", "$sdffce": "CLK"}
OUTPUTS = {"Q", "Y", "RD_DATA"}


class Wires:
    """The cells of a flat netlist, by the bits that they drive."""

    def __init__(self, unit, folder):
        (folder / "unit.il").write_text(rtlil.convert(unit))
        (folder / "unit.ys").write_text(
            f"read_rtlil {folder}/unit.il\nhierarchy -top top\nproc\nflatten\nopt_clean\n"
            f"memory_collect\nopt_clean\nwrite_json {folder}/unit.json\n")
        done = subprocess.run([sys.executable, "-c", YOSYS, str(folder / "unit.ys")],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
        module = json.loads((folder / "unit.json").read_text())["modules"]["top"]
        self.cells = module["cells"]
        self.names = {}             # of a bit: the shortest path, which is the outermost
        for name, net in module["netnames"].items():
            for bit in net["bits"]:
                if bit not in self.names or len(name) < len(self.names[bit]):
                    self.names[bit] = name
        self.drivers = {bit: name for name, cell in self.cells.items()
                        for port, bits in cell["connections"].items() if port in OUTPUTS
                        for bit in bits}

    def clock(self, cell):
        """The clock of a register, or of what is written into a memory; None for logic."""
        if cell["type"] == "$mem_v2":
            return cell["connections"]["WR_CLK"][0]
        port = CLOCKED.get(cell["type"])
        return None if port is None else cell["connections"][port][0]

    def sources(self, bits):
        """Registers and memories that bits come from, and whether through logic."""
        found, seen = set(), set()
        waiting = [(bit, False) for bit in bits]
        while waiting:
            bit, logic = waiting.pop()
            name = self.drivers.get(bit)
            if name is None or (bit, logic) in seen:
                continue
            seen.add((bit, logic))
            cell = self.cells[name]
            if self.clock(cell) is not None:
                found.add((name, bit, logic))
            if self.clock(cell) is None or cell["type"] == "$mem_v2":
                inputs = (("RD_ADDR",) if cell["type"] == "$mem_v2"
                          else [port for port in cell["connections"] if port not in OUTPUTS])
                waiting += [(each, True) for port in inputs for each in cell["connections"][port]]
        return found

    def crossings(self):
        """What reaches a register of another clock: its name, the register's, and whether there is
        logic between."""
        for name, cell in self.cells.items():
            clock = self.clock(cell)
            if clock is None:
                continue
            outside = CLOCKED.get(cell["type"])
            ports = [port for port in cell["connections"] if port not in OUTPUTS
                     and port not in (outside, "WR_CLK", "RD_CLK", "RD_ADDR")]
            bits = [bit for port in ports for bit in cell["connections"][port]]
            for source, bit, logic in self.sources(bits):
                if self.clock(self.cells[source]) != clock:
                    is_memory = self.cells[source]["type"] == "$mem_v2"
                    target = (self.names[cell["connections"]["Q"][0]] if "Q" in cell["connections"]
                              else name)
                    yield "storage" if is_memory else self.names[bit], target, logic


def unsynchronized(unit, folder):
    """Crossings that are neither into the first register of a synchronizer nor of what stands."""
    return sorted({(source, target) for source, target, logic in Wires(unit, folder).crossings()
                   if (logic or "stage0" not in target)
                   and source.split(".")[-1].split("__")[-1] not in STANDING})


class Alone(Component):
    """A queue with both clocks as ports."""

    def __init__(self, queue):
        self.queue = queue
        super().__init__({"put_clock": In(1), "take_clock": In(1), "offer": In(1), "item": In(3),
                          "take": In(1), "shows": Out(1), "accepts": Out(1), "shown": Out(3)})

    def elaborate(self, platform):
        m = Module()
        m.domains.putter = ClockDomain()
        m.domains.taker = ClockDomain()
        m.submodules.queue = queue = self.queue(3, 4, put_domain="putter", take_domain="taker")
        m.d.comb += [ClockSignal("putter").eq(self.put_clock), queue.put.valid.eq(self.offer),
                     ClockSignal("taker").eq(self.take_clock), queue.put.payload.eq(self.item),
                     queue.take.ready.eq(self.take), self.shows.eq(queue.take.valid),
                     self.accepts.eq(queue.put.ready), self.shown.eq(queue.take.payload)]
        return m


def test_all_that_crosses_in_the_bridge_is_synchronized_or_stands(tmp_path):
    bridge = CrossedBridge(tiny, Port(64, 24, 0x4000_0000, 1 << 25))
    assert unsynchronized(bridge, tmp_path) == []
    crossings = {source for source, _, _ in Wires(bridge, tmp_path).crossings()}
    assert any("produced" in name for name in crossings), "the check sees nothing"


@pytest.mark.parametrize(("right", "wrong"), [
    ("self.consumed != produced_seen", "self.consumed != self.produced"),   # past its synchronizer
    ("self.produced == consumed_seen", "self.produced == self.consumed"),
])
def test_a_pointer_that_is_not_synchronized_is_found(right, wrong, tmp_path):
    assert unsynchronized(Alone(AsyncFifo), tmp_path) == []
    assert unsynchronized(Alone(broken(AsyncFifo, right, wrong)), tmp_path) != []
