"""The buses as other tools see them: names, widths and directions of ports in Verilog."""

import re

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib.wiring import Component

from microtron.hw.bus.axi import (
    connect_flat,
    flat_ports,
    lite_channels,
    read_channels,
    write_channels,
)
from microtron.hw.bus.reader import Reader
from microtron.hw.bus.writer import Writer
from microtron.isa.config import Config

SENT = {"id": 1, "addr": 40, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3,
        "qos": 4, "valid": 1}
OUTPUTS = {**{f"ar{name}": width for name, width in SENT.items()}, "rready": 1,
           **{f"aw{name}": width for name, width in SENT.items()}, "bready": 1,
           "wdata": 128, "wstrb": 16, "wlast": 1, "wvalid": 1}
INPUTS = {"arready": 1, "rid": 1, "rdata": 128, "rresp": 2, "rlast": 1, "rvalid": 1,
          "awready": 1, "wready": 1, "bid": 1, "bresp": 2, "bvalid": 1}


class Top(Component):
    """Reader and writer behind flat ports."""

    def __init__(self, config):
        self.config = config
        super().__init__({**flat_ports("m_axi", read_channels(config)),
                          **flat_ports("m_axi", write_channels(config)),
                          **flat_ports("s_axi", lite_channels().flip())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader, m.submodules.writer = Reader(self.config), Writer(self.config)
        connect_flat(m, "m_axi", m.submodules.reader.bus, self)
        connect_flat(m, "m_axi", m.submodules.writer.bus, self)
        return m


def ports(text, direction):
    found = re.findall(rf"^  {direction} (?:\[(\d+):0\] )?(\w+);$", text, re.MULTILINE)
    return {name: int(high or 0) + 1 for high, name in found}


@pytest.fixture(scope="module")
def text():
    return verilog.convert(Top(Config(bus_bits=128, address_bits=40)), name="top",
                           strip_internal_attrs=True)


def test_the_master_has_the_standard_ports(text):
    top = text[text.rindex("module top"):]
    for direction, expected in (("output", OUTPUTS), ("input", INPUTS)):
        found = {name: width for name, width in ports(top, direction).items()
                 if name.startswith("m_axi")}
        assert found == {f"m_axi_{name}": width for name, width in expected.items()}


def test_a_slave_has_the_ports_of_its_master_the_other_way_round(text):
    top = text[text.rindex("module top"):]
    outputs = {name for name in ports(top, "output") if name.startswith("s_axi")}
    assert outputs == {f"s_axi_{name}" for name in (
        "awready", "wready", "bresp", "bvalid", "arready", "rdata", "rresp", "rvalid")}
    inputs = ports(top, "input")
    assert (inputs["s_axi_awaddr"], inputs["s_axi_wstrb"], inputs["s_axi_wdata"]) == (12, 4, 32)


def test_queues_are_memories(text):
    """The writer's: nobody asks the reader for anything here, so that it has nothing to keep."""
    assert len(re.findall(r"^  reg \[\d+:0\] storage \[\d+:0\];$", text, re.MULTILINE)) == 1
