"""Cycles and milliseconds with a board's memory and clock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from microtron.boards.facts.catalogue import FILES, find_board
from microtron.boards.facts.speed import memory_option, processor_mhz, speed_of
from microtron.isa.config import base, small, tiny
from microtron.isa.memory_timing import MemoryTiming, parse_timing

from ...command import bad, good

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE, DIGITS = EXAMPLES / "matmul.asm", EXAMPLES / "digits" / "digits.onnx"


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    text = (FILES / "kv260.toml").read_text()
    path.write_text(f"{text}\n[memory.timing]\nread_latency = 77\ncycles_per_beat = 3\n"
                    "shared = false\n\n[routed]\nbase = 125.5\n")
    return path


def test_the_clock_is_the_boards_or_the_routed_one_if_that_is_lower():
    kv260 = replace(find_board("kv260"), routed={"base": 125.5, "small": 500.0})
    assert [speed_of(kv260, config).mhz for config in (base, small, tiny)] == [125.5, 200, 200]
    assert speed_of(kv260, base).milliseconds(251_000) == 2


def test_an_accelerator_with_a_clock_of_its_own_has_the_one_that_was_routed():
    """A build chooses it; the processor keeps that of the system."""
    ulx3s = find_board("ulx3s")
    crossed = replace(ulx3s, routed={"tiny": 91.25}, clock=replace(
        ulx3s.clock, system_hz=50_000_000, accelerator_hz=80_000_000))
    assert [speed_of(crossed, config).mhz for config in (tiny, small)] == [91.25, 80]
    assert processor_mhz(crossed, 91.25) == 50


def test_the_memory_of_a_board_is_what_its_file_says(mine):
    assert parse_timing(memory_option(find_board(str(mine)))) == MemoryTiming(
        read_latency=77, cycles_per_beat=3, shared=False)


def test_a_profile_tells_cycles_and_milliseconds_on_a_board(mine):
    plain = json.loads(good("profile", EXAMPLE, "--json", "--memory",
                            "read_latency=77,cycles_per_beat=3,shared=0"))
    found = json.loads(good("profile", EXAMPLE, "--json", "--board", mine))
    assert found["cycles"] == plain["cycles"]
    assert found["milliseconds"] == pytest.approx(plain["cycles"] / 125.5e3)
    assert " ms at 125.5 MHz on mine" in good("profile", EXAMPLE, "--board", mine)
    assert " ms at 100 MHz (assumed; --clock sets it)" in good("profile", EXAMPLE)


def test_a_profile_of_what_does_not_fit_is_refused_as_a_build_is(tmp_path):
    program = tmp_path / "base.mt"
    good("asm", EXAMPLE, "-o", program)
    for name in ("ulx3s", "tang_nano_20k"):
        line = bad("build", "--board", name, "--config", "base", "--dry-run")
        assert f"{name}: the configuration does not fit: " in line
        assert bad("profile", EXAMPLE, "--board", name) == line
        assert bad("profile", program, "--board", name, "--json") == line


def test_a_network_that_does_not_fit_is_refused_before_it_is_simulated(monkeypatch):
    def simulate(*_arguments, **_options):
        raise AssertionError("simulated")

    monkeypatch.setattr("microtron.runtime.reports.profile.profile", simulate)
    assert "ulx3s: the configuration does not fit: it takes 244 multipliers" in bad(
        "profile", DIGITS, "--board", "ulx3s", "--config", "base")


def test_firmware_for_what_does_not_fit_is_refused(tmp_path):
    line = bad("build", "--board", "ulx3s", "--config", "base", "--dry-run")
    assert line == bad("firmware", DIGITS, "--board", "ulx3s", "--config", "base",
                       "-o", tmp_path / "digits.elf")
    assert not (tmp_path / "digits.elf").exists()


def test_a_wrong_board_gets_one_line(mine):
    assert "leave out --memory" in bad("profile", EXAMPLE, "--board", mine, "--memory", "stalls=1")
    assert "did you mean kv260?" in bad("profile", EXAMPLE, "--board", "kv26")
    mine.write_text((FILES / "kv260.toml").read_text())
    assert "has not been measured" in bad("profile", EXAMPLE, "--board", mine)
