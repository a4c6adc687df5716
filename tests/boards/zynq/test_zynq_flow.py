"""The steps of a build for a Zynq-7000, as far as no tool of others is needed."""

import json
import re
from dataclasses import replace

import pytest

from microtron.base.errors import ConfigError
from microtron.boards.build.flow import flow_of
from microtron.boards.build.report import read_nextpnr_report
from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.errors import BoardError
from microtron.boards.zynq import zynq_flow
from microtron.boards.zynq.device_tree import fabric_hz, format_overlay
from microtron.isa.config import small, tiny

from .small_database import PART, write_database
from .test_xilinx_bitstream import FRAMES, IDCODE, bit_file, design

ZYNQ = ("pynq_z1", "pynq_z2", "arty_z7_20", "zybo_z7_10")


@pytest.mark.parametrize("name", ZYNQ)
def test_every_step_finds_its_inputs_and_the_last_file_is_the_product(name):
    found = flow_of(find_board(name)).plan(find_board(name), tiny)
    made = set()
    for step in found.steps:
        assert set(step.inputs) <= made, step.name
        made |= set(step.outputs)
    assert {found.product, found.timing, found.features, found.facts["linux_image"],
            found.facts["device_tree"]} <= made
    route = next(step for step in found.steps if step.name == "route")
    assert find_board(name).part.name in str(route.work)


@pytest.mark.parametrize("name", ZYNQ)
def test_the_part_s_code_is_the_one_that_a_bitstream_names(name):
    """As the database of Project X-Ray has them, without the four bits of the revision."""
    device = find_board(name).part.device
    assert find_board(name).part.idcode == {"xc7z010": 0x0372_2093, "xc7z020": 0x0372_7093}[device]


def test_an_accelerator_with_a_wider_bus_is_refused_before_anything_is_done():
    with pytest.raises(ConfigError, match="bus_bits is 128, but the memory port of a Zynq"):
        zynq_flow.plan(find_board("pynq_z2"), replace(small, bus_bits=128))


def test_a_bitstream_is_read_back_and_turned_around_for_linux(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = design(FRAMES)
    (tmp_path / "a.bit").write_bytes(bit_file(words))
    zynq_flow.check("a.bit", "a.bit.bin", IDCODE)
    assert json.loads((tmp_path / "bitstream.json").read_text())["frames"] == 3
    assert len((tmp_path / "a.bit.bin").read_bytes()) == 4 * len(words)


@pytest.mark.parametrize(("frames", "idcode", "message"), [
    (FRAMES, 0x0372_2093, "is for a part with the code 0x03727093, but the board has 0x03722093"),
    ([[0] * 101] * 2, IDCODE, "a.bit holds no design"),
])
def test_a_bitstream_for_another_part_or_without_a_design_is_refused(
        tmp_path, monkeypatch, frames, idcode, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.bit").write_bytes(bit_file(design(frames)))
    with pytest.raises(BoardError, match=message):
        zynq_flow.check("a.bit", "a.bit.bin", idcode)


def test_features_become_frames_by_the_database_that_is_installed(tmp_path, monkeypatch):
    family = write_database(tmp_path / "zynq7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(zynq_flow, "family_folder", lambda: family)
    (tmp_path / "design.fasm").write_text("CLB_X0Y0.FF\n")
    zynq_flow.write_frames(PART)
    assert (tmp_path / "design.frm").read_text().count("\n") == 11


@pytest.mark.parametrize(("most", "found"), [
    (100e6, 100_000_000), (99.9e6, 90_909_090), (57.3e6, 55_555_555), (142.86e6, 142_857_142),
    (33.1e6, 32_258_064)])
def test_the_clock_is_one_that_the_processors_have_and_the_design_bears(most, found):
    assert fabric_hz(most) == found <= most


def test_a_design_gets_the_clock_it_was_routed_for_if_that_is_slower_than_the_board_s(
        tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for reached, rate in ((57.3, 55_555_555), (140, 100_000_000)):
        (tmp_path / zynq_flow.PROVEN).write_text(json.dumps(
            {"fmax": {"clk": {"achieved": reached, "constraint": 100}}, "utilization": {}}))
        zynq_flow.write_overlay("a.dtso", "a.bit.bin", 100_000_000)
        assert f"assigned-clock-rates = <{rate}>;" in (tmp_path / "a.dtso").read_text()
        assert json.loads((tmp_path / "clock.json").read_text())["hz"] == rate


def test_a_lut_with_two_outputs_is_one(tmp_path):
    (tmp_path / "timing.json").write_text(json.dumps({
        "fmax": {"clk": {"achieved": 60}}, "utilization": {
            "SLICE_LUTX": {"used": 4, "available": 9}, "SLICE_FFX": {"used": 3, "available": 9}}}))
    features = tmp_path / "design.fasm"
    features.write_text("".join(f"{each}\n" for each in (
        "CLBLM_R_X1Y99.SLICEM_X0.ALUT.INIT[63:0] = 64'b1", "CLBLM_R_X1Y99.SLICEM_X0.ALUT.RAM",
        "CLBLM_R_X1Y99.SLICEM_X0.BLUT.INIT[31:0] = 32'b1", "CLBLM_R_X1Y99.SLICEM_X0.AFF.ZINI",
        "CLBLM_R_X1Y99.SLICEL_X1.ALUT.INIT[63:0] = 64'b1")))
    placed = read_nextpnr_report(tmp_path / "timing.json", "zynq", "", features)
    assert placed.used == {"lut": 3, "register": 3}


def test_the_overlay_says_what_linux_must_know():
    text = format_overlay("pynq_z2.bit.bin", 75_000_000)
    for fact in ('firmware-name = "pynq_z2.bit.bin";', "assigned-clock-rates = <75000000>;",
                 "reg = <0x40000000 0x1000>;", "interrupts = <0 29 4>;", '"generic-uio"'):
        assert fact in text
    assert text.count("{") == text.count("}")
    assert not re.search(r"\{[a-z]+", text)


def test_yosys_knows_the_processors_that_the_script_finds(tmp_path):
    (tmp_path / "top.v").write_text("module microtron_zynq(); wire clk; reg [3:0] count;\n"
                                    "(* keep *) PS7 ps7(.FCLKCLK(clk));\n"
                                    "always @(posedge clk) count <= count + 1; endmodule\n")
    script, synthesis = [step for step in flow_of(find_board("pynq_z2")).plan(
        find_board("pynq_z2"), tiny).steps if step.name in ("script", "synthesis")]
    script.run(tmp_path, 1, 2)
    synthesis.run(tmp_path, 2, 2)
    cells = json.loads((tmp_path / "cells.json").read_text())["design"]["num_cells_by_type"]
    assert cells["PS7"] == 1


REGISTERS = """
module microtron_zynq(input clk, input [7:0] enable, input [7:0] clear, input [63:0] d,
                      output reg [63:0] q);
    integer i;
    always @(posedge clk)
        for (i = 0; i < 64; i = i + 1)
            if (clear[i / 8]) q[i] <= i[0];
            else if (enable[i / 8]) q[i] <= d[i];
endmodule
"""


def test_registers_share_slices_whatever_enables_and_clears_them(tmp_path):
    """Each wire that does so on its own would keep them from places that they fit."""
    (tmp_path / "top.v").write_text(REGISTERS)
    steps = {step.name: step for step in zynq_flow.plan(find_board("pynq_z2"), tiny).steps}
    for name in ("script", "synthesis"):
        steps[name].run(tmp_path, 1, 2)
    netlist = json.loads((tmp_path / "design.json").read_text())["modules"]["microtron_zynq"]
    registers = [cell["connections"] for cell in netlist["cells"].values()
                 if re.fullmatch("FD[RS]E", cell["type"])]
    assert len(registers) == 64
    assert {(*each["CE"], *each.get("R", each.get("S", ()))) for each in registers} == {("1", "0")}
