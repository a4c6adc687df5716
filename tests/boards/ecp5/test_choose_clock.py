"""The accelerator's own clock on an ECP5: settings of its PLL, and the step between two routes."""

from __future__ import annotations

import json

import pytest

from microtron.boards.ecp5.choose_clock import MARGIN, choose_clock
from microtron.boards.facts.clocks import PHASE_HZ, VCO_HZ
from microtron.boards.facts.ecp5_pll import CELL, choose_settings, format_constraint
from microtron.boards.facts.errors import BoardError

MHZ = 1_000_000
NET = "accelerator_clk"


@pytest.mark.parametrize("oscillator", [10, 12, 25, 27, 48, 100, 125])
@pytest.mark.parametrize("most", [3.2, 50, 66.8, 83.3, 113, 399])
def test_a_pll_makes_the_fastest_clock_below_a_limit(oscillator, most):
    found = choose_settings(oscillator * MHZ, most * MHZ)
    phase = oscillator * MHZ / found.input_divider
    vco = phase * found.feedback_divider * found.second_divider
    assert PHASE_HZ[0] <= phase <= PHASE_HZ[1]
    assert VCO_HZ[0] <= vco <= VCO_HZ[1]
    assert found.hz == pytest.approx(vco / found.output_divider)
    assert 0.95 * most * MHZ <= found.hz <= most * MHZ
    assert all(1 <= value <= 128 for name, value in found.parameters.items()
               if name.endswith("_DIV"))


def test_what_no_pll_makes_is_refused():
    with pytest.raises(BoardError, match=r"makes no clock up to 1,000,000 Hz of 25,000,000 Hz"):
        choose_settings(25 * MHZ, MHZ)


KEPT = ("kept.config", "kept.json")


def files(folder, *, reached=81.5, cells=(CELL,), constraint=True):
    parameters = {"CLKOP_DIV": f"{7:032b}", "CLKI_DIV": f"{1:032b}", "FEEDBK_PATH": "CLKOP"}
    (folder / "first.json").write_text(json.dumps({
        "fmax": {f"$glbnet${NET}": {"achieved": reached, "constraint": 90},
                 "$glbnet$sys_clk": {"achieved": 61.0, "constraint": 50}}, "utilization": {}}))
    (folder / "in.json").write_text(json.dumps({"modules": {"soc": {"cells": {
        name: {"type": "EHXPLLL", "parameters": dict(parameters)} for name in ("pll", *cells)}}}}))
    (folder / "in.lpf").write_text(
        f"BLOCK ASYNCPATHS;\n{format_constraint(90 * MHZ, NET) if constraint else ''}\n")
    (folder / "first.config").write_text("routed")


def choose():
    choose_clock("first.json", "first.config", "in.json", "in.lpf", 25 * MHZ, "out.json", "out.lpf",
                 "clock.json", KEPT)


def test_the_second_route_is_for_what_the_first_one_reached_less_the_margin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    choose()
    settings = choose_settings(25 * MHZ, 81.5 * MHZ * (1 - MARGIN))
    assert json.loads((tmp_path / "clock.json").read_text()) == {
        "hz": round(settings.hz), "margin": MARGIN, "first_mhz": 81.5}
    assert format_constraint(settings.hz, NET) in (tmp_path / "out.lpf").read_text()
    cells = json.loads((tmp_path / "out.json").read_text())["modules"]["soc"]["cells"]
    assert int(cells[CELL]["parameters"]["CLKOP_DIV"], 2) == settings.output_divider
    assert cells[CELL]["parameters"]["FEEDBK_PATH"] == "INT_OS"
    assert int(cells["pll"]["parameters"]["CLKOP_DIV"], 2) == 7, "the system's PLL is another"
    assert [(tmp_path / name).read_bytes() for name in KEPT] == [b"", b""]


@pytest.mark.parametrize(("reached", "kept"), [(89.99, False), (90.0, True), (97.2, True)])
def test_a_first_route_that_is_fast_enough_is_the_only_one(reached, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files(tmp_path, reached=reached)
    choose()
    chosen = json.loads((tmp_path / "clock.json").read_text())
    assert (chosen["margin"], chosen["first_mhz"]) == (0 if kept else MARGIN, reached)
    assert (chosen["hz"] == 90 * MHZ) == kept
    config, timing = ((tmp_path / name).read_text() for name in KEPT)
    assert (config, timing) == (
        ("routed", (tmp_path / "first.json").read_text()) if kept else ("", ""))


@pytest.mark.parametrize(("wrong", "complaint"), [
    ({"cells": ()}, "has 0 PLLs named accelerator_pll, but must have one"),
    ({"constraint": False}, "0 lines say how fast accelerator_clk is to be, but one must"),
])
def test_a_design_without_that_clock_is_refused(wrong, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files(tmp_path, **wrong)
    with pytest.raises(BoardError, match=complaint):
        choose()
