"""Systems as Verilog: for every board with a system, and for the simulation."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from microtron.boards.ecp5.set_clock import CLOCK
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.catalogue import load_boards
from microtron.boards.facts.ecp5_pll import CELL, choose_settings
from microtron.boards.facts.processors import soft_processor
from microtron.boards.soc.file_names import FACTS, PINS
from microtron.boards.soc.serialize import deserialize, serialize
from microtron.boards.soc.system_steps import gateware_steps
from microtron.isa.config import PRESETS, tiny

SOFT = [board for board in load_boards() if board.flow in PINS]
LATER = ("colorlight_i9",)      # like the ECPIX-5: Ethernet, and memory on an ECP5


@pytest.mark.parametrize("board", SOFT, ids=lambda board: board.name)
def test_a_board_survives_its_way_to_another_process(board):
    assert deserialize(json.loads(json.dumps(serialize(board)))) == board


@pytest.mark.parametrize("board", [
    pytest.param(board, marks=[pytest.mark.soak] if board.name in LATER else []) for board in SOFT],
    ids=lambda board: board.name)
def test_a_system_has_the_boards_memory_pins_and_interrupts(board, tmp_path):
    """With the board's own preset, as `tests/test_docs_boards.py` has it: it is written once."""
    steps = gateware_steps(board, PRESETS[board.preset])
    system = next(step for step in steps if step.name == "system")
    system.run(tmp_path, 1, 1)
    facts = json.loads((tmp_path / FACTS).read_text())
    assert facts["memories"]["main_ram"]["size"] == board.memory.bytes
    assert facts["clock_hz"] == board.clock.system_hz
    if soft_processor(board) is None:           # a host asks, and a table starts the memory
        assert not facts.get("interrupts")
    else:
        assert {"microtron", "uart", "timer0"} <= set(facts["interrupts"])
        assert facts["dram"]["start"]
    verilog = (tmp_path / "soc.v").read_text()
    pins = (tmp_path / PINS[board.flow]).read_text()
    for group, wires in board.pins.items():
        for name, wire in wires.items():
            assert re.search(rf"\b{group}_{name}\b", verilog), f"{group}.{name} leads nowhere"
            for place in wire.places:
                assert re.search(rf'"{place}"|" {place};', pins), f"{group}.{name} has no {place}"


def test_an_accelerator_with_a_clock_of_its_own_has_a_pll_and_a_constraint(tmp_path):
    """And its bridge has both clocks; `set_clock` finds the clock by its net's name."""
    board = board_of("ulx3s")
    crossed = replace(board, clock=replace(board.clock, accelerator_hz=81_000_000))
    system = next(step for step in gateware_steps(crossed, tiny) if step.name == "system")
    system.run(tmp_path, 1, 1)
    constraints = (tmp_path / PINS[board.flow]).read_text()
    clock, = re.findall(rf'FREQUENCY NET "(\w*{CLOCK}\w*)" [\d.]+ MHz', constraints)
    verilog = (tmp_path / "soc.v").read_text()
    name = verilog.index(f") {CELL} (")
    pll = verilog[verilog.rindex("EHXPLLL", 0, name):verilog.index(");", name)]
    assert re.search(rf"\.CLKOP\s*\({clock}\)", pll)
    settings = choose_settings(board.clock.hz, 81e6)
    assert settings.hz == pytest.approx(80.56e6, rel=1e-3)
    assert re.search(rf"\.CLKOP_DIV\s*\(\S*{settings.output_divider}\)", pll)
    assert re.search(rf"\.accelerator_clk\s*\({clock}\)", verilog)
    assert "accelerator_clk" in (tmp_path / "microtron_bridge.v").read_text()


def test_memory_at_twice_the_clock_has_a_constraint_of_its_own(tmp_path):
    """nextpnr would take the system's frequency for it. Its net has other names, of which Yosys
    keeps one."""
    board = board_of("ulx3s")
    twice = replace(board, memory=replace(board.memory, rate="1:2"))
    system = next(step for step in gateware_steps(twice, tiny) if step.name == "system")
    system.run(tmp_path, 1, 1)
    pins = (tmp_path / PINS[board.flow]).read_text()
    clock, = re.findall(r'FREQUENCY NET "(\w+)" 100.0000 MHz;', pins)
    verilog = (tmp_path / "soc.v").read_text()
    assert re.search(rf"@\(posedge {clock}\)", verilog)
    assert re.search(rf'\(\* keep = "true" \*\)\s*wire\s+{clock};', verilog)


def test_the_simulation_has_the_memory_itself_and_no_pins(tmp_path):
    board = board_of("ulx3s")
    _, system, _ = gateware_steps(board, tiny, simulated=True)
    system.run(tmp_path, 1, 1)
    verilog = (tmp_path / "soc.v").read_text()
    ports = verilog[verilog.index("module soc"):verilog.index(");")]
    assert set(re.findall(r"(?:input|output)\s+\w+\s+(?:\[.*?\]\s+)?(\w+)", ports)) == {
        "clock", "reset", "serial_source_valid", "serial_source_ready", "serial_source_data",
        "serial_sink_valid", "serial_sink_ready", "serial_sink_data"}
