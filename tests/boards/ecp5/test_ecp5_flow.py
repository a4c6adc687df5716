"""A unit of the accelerator goes all the way to a bitstream for ECP5, which is read back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from microtron.boards.build.bare import to_rtlil
from microtron.boards.build.constraints import format_lpf
from microtron.boards.build.flow import Flow
from microtron.boards.build.plan import Plan, build, describe
from microtron.boards.build.report import read_nextpnr_report, summarize, table_rows
from microtron.boards.build.seeds import build_with_seeds
from microtron.boards.build.steps import Step, Write
from microtron.boards.build.synthesis import Design
from microtron.boards.ecp5 import ecp5_flow
from microtron.boards.ecp5.ecp5_bitstream import read_bitstream
from microtron.boards.facts.board import Wire
from microtron.boards.facts.catalogue import find_board
from microtron.hw.gemm.mac import MacRow
from microtron.isa.config import tiny

# A board of one's own is one file.
MINE = """\
title = "A bare LFE5U-25F"
flow = "ecp5"
part = "LFE5U-25F-6BG256C"
cpu = "none"
preset = "tiny"
load = "openFPGALoader {bitstream}"

[clock]
pin = "P6"
hz = 25_000_000
system_hz = 25_000_000

[memory]
kind = "none"
bytes = 0

[pins.bare]
data_in = "L14"
data_out = { at = "T14", options = ["DRIVE=4"] }
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "mine.toml"
    path.write_text(MINE)
    return find_board(str(path))


def test_a_row_of_multipliers_becomes_a_bitstream_for_a_board_of_ones_own(mine, tmp_path,
                                                                          monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    wires = {"clk": Wire((mine.clock.pin,), "LVCMOS33", ()), **mine.pins["bare"]}
    texts = {"top.il": to_rtlil(MacRow(tiny)), "pins.lpf": format_lpf(wires)}
    design = Design((Step(name="gateware", doing="writing", outputs=tuple(texts),
                          work=Write(texts)),),
                    "read_rtlil top.il\nmemory_nordff", ("top.il",), "top", "pins.lpf")
    plan = Plan(board=mine, config=tiny, config_name="tiny",
                build=ecp5_flow.plan_back_end(mine, design),
                flow=Flow(name="ecp5", needs=ecp5_flow.FLOW.needs, plan=ecp5_flow.plan))
    folder = tmp_path / "built"
    found = build(plan, folder)

    assert found["used"]["dsp"] == tiny.block_in, "one multiplier for each product"
    assert 0 < found["used"]["register"] < 1000
    assert found["mhz"] > 25
    assert found["meets_timing"]
    assert json.loads((folder / "report.json").read_text()) == found
    assert (folder / "load.sh").read_text().endswith("openFPGALoader mine.bit\n")
    content = read_bitstream((folder / "mine.bit").read_bytes())
    assert content.idcode == mine.part.idcode == 0x41111043
    assert content.set_bits > 1000
    check_unpacked(folder)
    assert sum("(done already)" in line for line in describe(plan, folder)) == len(
        plan.build.steps), "nothing would be done again"

    best = build_with_seeds(plan, tmp_path / "best", 2)
    reached = [each["mhz"] for each in best["seeds"]]
    assert reached[0] == found["mhz"], "the first is nextpnr's own"
    assert best["mhz"] == max(reached)
    assert json.loads((tmp_path / "best" / "report.json").read_text()) == best
    first, other = ((tmp_path / "best" / f"seed_{seed}" / "design.config").read_text()
                    for seed in range(2))
    assert first != other, "another seed, another route"


def check_unpacked(folder: Path) -> None:
    """Trellis's own reader finds the slices and multipliers in the bitstream that nextpnr wrote."""
    program = Path(sys.executable).parent / "yowasp-ecpunpack"
    subprocess.run([program, "--input", "mine.bit", "--textcfg", "again.config"], cwd=folder,
                   check=True, capture_output=True)
    wanted, found = ((folder / name).read_text() for name in ("design.config", "again.config"))
    assert ".device LFE5U-25F" in found
    tiles = [{line for line in text.splitlines()
              if line.startswith(".tile ") and line.endswith((":PLC2", "_DSP"))}
             for text in (wanted, found)]
    assert len(tiles[0]) > 20
    assert tiles[0] <= tiles[1]


def test_the_part_is_told_to_nextpnr_in_its_words():
    assert ecp5_flow.nextpnr_options(find_board("ulx3s")) == (
        "--85k", "--package", "CABGA381", "--speed", "6")
    assert ecp5_flow.nextpnr_options(find_board("ecpix5"))[0] == "--um5g-85k"


def test_a_report_without_the_clock_says_which_there_are(tmp_path):
    report = tmp_path / "timing.json"
    report.write_text(json.dumps({"fmax": {"clk": {"achieved": 51.234}}, "utilization": {
        "TRELLIS_COMB": {"used": 7, "available": 9}, "OTHER": {"used": 1, "available": 1}}}))
    placed = read_nextpnr_report(report, "ecp5", "")
    assert (placed.mhz, placed.used) == (51.23, {"lut": 7})
    with pytest.raises(ValueError, match="no clock 'sys' among clk"):
        read_nextpnr_report(report, "ecp5", "sys")


@pytest.mark.parametrize(("cable", "met", "said"), [
    (125.0, True, []), (124.94, False, [("too slow: cable", "124.9 of 125 MHz")])])
def test_a_clock_that_is_not_the_designs_own_counts_by_its_own_measure(tmp_path, cable, met, said):
    report, ulx3s = tmp_path / "timing.json", find_board("ulx3s")
    reached = {"cable": (cable, 125), "power": (90, 50), "sys": (60.2, 50)}
    report.write_text(json.dumps({"utilization": {}, "fmax": {
        name: {"achieved": achieved, "constraint": constraint}
        for name, (achieved, constraint) in reached.items()}}))
    placed = read_nextpnr_report(report, "ecp5", "", target_mhz=50)
    found = summarize(ulx3s, tiny, "tiny", placed, {})
    assert (found["mhz"], found["meets_timing"]) == (60.2, met)
    lines = table_rows(found)
    assert [line for line in lines if "slow" in line[0]] == said
    assert ("clock", "60.2 MHz, which meets the 50 MHz that it runs at") in lines
    with pytest.raises(ValueError, match="no clock is to run at 48 MHz, but cable, power, sys are"):
        read_nextpnr_report(report, "ecp5", "", target_mhz=48)
