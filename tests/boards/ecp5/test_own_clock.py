"""An accelerator with a clock of its own: routed, and given the clock that this reached."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from microtron.boards.build.flow import Flow
from microtron.boards.build.plan import Plan, build
from microtron.boards.build.report import (
    ChosenClock,
    RoutedDesign,
    read_nextpnr_report,
    summarize,
    table_rows,
)
from microtron.boards.build.steps import Step, Write
from microtron.boards.build.synthesis import Design
from microtron.boards.ecp5 import ecp5_flow
from microtron.boards.ecp5.set_clock import MARGIN
from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.ecp5_pll import CELL, choose_settings, format_constraint
from microtron.isa.config import tiny

BOARD = find_board("ulx3s")
WANTED = 390_000_000            # more than a sum of 32 bits reaches
# A counter on each clock: the accelerator's is long, so that its carry chain limits it.
DESIGN = """
module top(input clk, output led);
wire accelerator_clk, feedback;
EHXPLLL #({parameters}) {cell} (.CLKI(clk), .RST(1'b0), .STDBY(1'b0), .CLKOP(accelerator_clk),
                               .CLKOS(feedback));
reg [31:0] sum = 0, last = 0;
reg [3:0] count = 0;
always @(posedge accelerator_clk) begin
    last <= {{sum[3:0], sum[31:4]}};
    sum <= sum + last + 32'd77;
end
always @(posedge clk) count <= count + 1;
assign led = ^sum ^ count[3];
endmodule
"""


@pytest.mark.soak
def test_the_accelerator_runs_at_what_its_route_reached(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    board = replace(BOARD, clock=replace(BOARD.clock, accelerator_hz=WANTED))
    parameters = ", ".join(
        f".{name}({value})" if isinstance(value, int) else f'.{name}("{value}")'
        for name, value in choose_settings(board.clock.hz, WANTED).parameters.items())
    texts = {"top.v": DESIGN.format(cell=CELL, parameters=parameters), "pins.lpf": "\n".join((
        f'LOCATE COMP "clk" SITE "{board.clock.pin}";', 'LOCATE COMP "led" SITE "B2";',
        format_constraint(WANTED, "accelerator_clk"), ""))}
    design = Design((Step(name="gateware", doing="writing", outputs=tuple(texts),
                          work=Write(texts)),), "read_verilog top.v", ("top.v",), "top", "pins.lpf")
    plan = Plan(board=board, config=tiny, config_name="tiny",
                build=ecp5_flow.plan_back_end(board, design),
                flow=Flow(name="ecp5", needs=ecp5_flow.FLOW.needs, plan=ecp5_flow.plan))
    folder = tmp_path / "built"
    found = build(plan, folder)
    assert found["target_mhz"] <= (1 - MARGIN) * found["reached_mhz"] < WANTED / 1e6
    assert found["target_mhz"] > 0.9 * found["reached_mhz"]
    timing = json.loads((folder / "timing.json").read_text())["fmax"]
    clock, = (each for name, each in timing.items() if "accelerator_clk" in name)
    assert found["mhz"] == found["reached_mhz"] == round(clock["achieved"], 2)
    settings = choose_settings(board.clock.hz, found["target_mhz"] * 1e6)
    assert f"word: CLKOP_DIV {settings.output_divider - 1:07b}\n" in (
        folder / "design.config").read_text()
    driver = json.loads((folder / "device.json").read_text())
    assert driver["accelerator_hz"] == round(1e6 * found["target_mhz"])
    assert driver["clock_hz"] == board.clock.system_hz


def test_a_report_says_that_routing_reached_the_clock():
    placed = RoutedDesign(mhz=93.1, used={}, missed={})
    found = summarize(BOARD, tiny, "tiny", placed, {}, ChosenClock(85_000_000, 0.0, 93.1))
    assert (found["target_mhz"], found["meets_timing"]) == (85, True)
    assert dict(table_rows(found))["margin"] == (
        "none: routing reached it; the system runs at 50 MHz")


@pytest.mark.parametrize(("system", "met"), [(50.5, True), (49.5, False)])
def test_a_system_that_is_too_slow_beside_its_accelerator_is_told(tmp_path, system, met):
    report = tmp_path / "timing.json"
    report.write_text(json.dumps({"utilization": {}, "fmax": {
        "$glbnet$accelerator_clk": {"achieved": 80.2, "constraint": 78.75},
        "$glbnet$sys_clk": {"achieved": system, "constraint": 50}}}))
    placed = read_nextpnr_report(report, "ecp5", "accelerator_clk")
    found = summarize(BOARD, tiny, "tiny", placed, {}, ChosenClock(78_750_000, 0.03, 81.5))
    assert (found["mhz"], found["target_mhz"], found["meets_timing"]) == (80.2, 78.75, met)
    lines = dict(table_rows(found))
    assert lines["margin"] == ("3% below the 81.5 MHz that routing reached; the system runs at "
                               "50 MHz")
    assert ("too slow: $glbnet$sys_clk" in lines) != met
