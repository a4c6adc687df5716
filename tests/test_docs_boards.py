"""docs/boards.md and docs/zynq.md are true: the board of one's own, clocks, commands and steps."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from microtron.boards.build.plan import DRIVER, build, make_plan
from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.pins import GROUPS
from microtron.boards.soc.file_names import FACTS
from microtron.isa.config import PRESETS
from microtron.runtime.board.places import LITEX_MEMORY, LITEX_REGISTERS

from .command import good

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")
ZYNQ_PAGE = (ROOT / "docs" / "zynq.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "docs" / "boards.json").read_text(encoding="utf-8"))
OWN = re.search(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
ROUNDED = 0.1                   # MHz


@pytest.fixture
def own(tmp_path):
    """The board that the page describes, in a file of its own."""
    path = tmp_path / "my_board.toml"
    path.write_text(OWN, encoding="utf-8")
    return path


def until_system(name):
    """The plan for a board as far as its system, which is written in seconds; what comes behind
    places and routes."""
    found = find_board(name)
    plan = make_plan(found, PRESETS[found.preset], found.preset)
    steps = tuple(step for step in plan.build.steps if FACTS in step.outputs)
    return replace(plan, build=replace(plan.build, steps=steps, timing=None))


def test_the_board_of_ones_own_is_planned_as_the_page_says(own):
    text = good("build", "--board", own, "--dry-run")
    assert "--45k --package CABGA381" in text
    assert "my_board.bit" in text


def test_the_board_of_ones_own_has_a_system_with_every_pin(own, tmp_path):
    plan, folder = until_system(str(own)), tmp_path / "built"
    build(plan, folder)
    pins = (folder / "soc.lpf").read_text()
    for wires in plan.board.pins.values():
        for wire in wires.values():
            for place in wire.places:
                assert f'"{place}"' in pins
    assert "module soc" in (folder / "soc.v").read_text()


@pytest.mark.parametrize("name", ["my_board", "tang_nano_20k"])
def test_a_driver_is_told_where_registers_and_memory_are(own, tmp_path, name):
    assert "memory, addresses" in PAGE
    plan, folder = until_system(str(own) if name == own.stem else name), tmp_path / "built"
    build(plan, folder)
    driver = json.loads((folder / DRIVER).read_text())
    assert (driver["registers"], driver["memory"]) == (LITEX_REGISTERS, LITEX_MEMORY)
    assert driver["memory_bytes"] == plan.board.memory.bytes


def test_every_group_of_pins_is_on_the_page_with_its_signals():
    table = PAGE[PAGE.index("| group | signals |"):]
    for name, group in GROUPS.items():
        row = next(line for line in table.splitlines() if f"`{name}`" in line)
        assert set(group.signals) <= set(re.findall(r"`(\w+)`", row)), name


@pytest.mark.parametrize("name", RESULTS)
def test_the_clock_that_a_board_was_routed_for_is_the_one_in_its_file(name):
    """What routing reached; of an accelerator with its own clock, what it was then set to."""
    board, row = find_board(name), RESULTS[name]
    clock = row["target_mhz" if board.clock.is_crossed else "mhz"]
    assert clock <= row["mhz"] + ROUNDED
    assert board.routed[row["config"]] == pytest.approx(clock, abs=ROUNDED)


def test_profiles_on_the_page_are_of_what_fits():
    lines = re.findall(r"^ +microtron (profile .*--board .*)$", PAGE, re.MULTILINE)
    assert lines
    for line in lines:
        assert " ms at " in good(*shlex.split(line), cwd=ROOT)


def test_the_steps_for_a_zynq_are_those_that_the_page_lists():
    rows = re.findall(r"^\| ([a-z, ]+) \| .* \| .* \|$", ZYNQ_PAGE, re.MULTILINE)
    listed = [name for row in rows for name in row.split(", ") if row != "step"]
    plan = make_plan(find_board("pynq_z2"), PRESETS["tiny"], "tiny")
    assert listed == [step.name for step in plan.build.steps]
