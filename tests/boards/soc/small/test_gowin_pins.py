"""The small system on a Gowin part: its clock and its wires."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from microtron.boards.facts.board import Wire
from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.errors import BoardError
from microtron.boards.facts.in_package_sdram import INSIDE
from microtron.boards.facts.processors import NONE
from microtron.boards.soc.file_names import FACTS
from microtron.boards.soc.small.gowin_pins import device_of, pll_dividers, wires_of
from microtron.boards.soc.system_steps import gateware_steps, is_small, verilog_files
from microtron.isa.config import PRESETS

TANG = find_board("tang_nano_20k")


@pytest.mark.parametrize("hz", [24_000_000, 27_000_000, 48_000_000, 54_000_000, 66_000_000])
def test_the_pll_makes_the_clock_within_its_limits(hz):
    dividers = pll_dividers(replace(TANG, clock=replace(TANG.clock, system_hz=hz)))
    made = TANG.clock.hz * (dividers["FBDIV_SEL"] + 1) / (dividers["IDIV_SEL"] + 1)
    assert abs(made - hz) <= hz / 100
    assert 500e6 <= made * dividers["ODIV_SEL"] <= 1250e6


def test_the_clock_of_the_tang_nano_is_exact():
    assert pll_dividers(TANG) == {"IDIV_SEL": 8, "FBDIV_SEL": 15, "ODIV_SEL": 16}


def test_a_clock_that_no_pll_makes_is_refused():
    with pytest.raises(BoardError, match="the PLL makes no 1,000,000 Hz of 27,000,000"):
        pll_dividers(replace(TANG, clock=replace(TANG.clock, system_hz=1_000_000)))


def test_pins_that_lead_nowhere_and_parts_without_memory_are_refused():
    wire = Wire(("1",), "LVCMOS33", ())
    with pytest.raises(BoardError, match="there is no port 'led_red'; there are reset_button, "):
        wires_of(replace(TANG, pins={**TANG.pins, "led": {"red": wire}}))
    part = replace(TANG.part, name="GW2A-LV55PG484C8/I7")
    with pytest.raises(BoardError, match="must be as GW2AR-LV18, with memory in its package"):
        device_of(replace(TANG, part=part))


def test_the_system_is_one_file_with_the_memorys_wires_and_nothing_of_litex(tmp_path):
    assert is_small(TANG)
    assert verilog_files(TANG) == ("soc.v",)
    system, = gateware_steps(TANG, PRESETS[TANG.preset])        # which other tests write, too
    system.run(tmp_path, 1, 1)
    verilog = (tmp_path / "soc.v").read_text()
    ports = verilog[verilog.index("module soc("):]
    ports = ports[:ports.index(";")]
    for name, _ in INSIDE.values():
        assert name in ports
    assert "litedram" not in verilog.lower()
    facts = json.loads((tmp_path / FACTS).read_text())
    assert facts["memories"]["registers"] == {"base": 0x9000_0000, "size": 4096}


def test_other_systems_are_litexs():
    assert not is_small(replace(TANG, cpu="VexRiscv Lite"))
    assert not is_small(replace(find_board("ulx3s"), cpu=NONE))
