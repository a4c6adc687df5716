"""Boards are facts in a file; what is wrong with one is said in a line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.build.plan import load_command, make_plan
from microtron.boards.facts.board import PARTS, RESOURCES, load_board
from microtron.boards.facts.catalogue import FILES, board_names, find_board, load_boards
from microtron.boards.facts.errors import BoardError
from microtron.boards.facts.toml_table import read_toml
from microtron.isa.config import PRESETS

GOOD = (FILES / "ulx3s.toml").read_text()


def write(tmp_path, text, name="mine.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_every_board_that_comes_with_the_kit_can_be_read():
    found = {each.name: each for each in load_boards()}
    assert {"ulx3s", "ecpix5", "colorlight_i9", "pynq_z1", "pynq_z2", "arty_z7_20", "zybo_z7_10",
            "tang_nano_20k", "kv260", "zcu104", "ultra96", "de10_nano"} <= set(found)
    for each in found.values():
        assert each.preset in PRESETS
        assert all(each.part.resources.values())
        assert each.memory.bytes >= 8 << 20
        assert each.memory.kind == "processor" or (each.clock.pin and each.memory.chip)


def test_no_pin_of_a_board_is_used_twice():
    for each in load_boards():
        places = [place for group in each.pins.values() for wire in group.values()
                  for place in wire.places]
        assert sorted({*places, each.clock.pin}) == sorted([*places, each.clock.pin]), each.name


def test_memory_chips_have_as_many_pins_as_their_controllers_drive():
    ulx3s, ecpix5, i9 = (find_board(name).pins for name in ("ulx3s", "ecpix5", "colorlight_i9"))
    assert [len(each["sdram"]["dq"].places) for each in (ulx3s, i9)] == [16, 32]
    assert [len(ecpix5["ddram"][name].places) for name in ("a", "dq", "dqs_p", "dm")] == [
        15, 16, 2, 2]


def test_a_wire_takes_what_its_group_says_unless_it_says_otherwise():
    pins = find_board("ecpix5").pins["ddram"]
    assert pins["ba"].standard == "SSTL15_I"
    assert pins["clk_p"].standard == "SSTL15D_I"
    assert pins["dqs_p"].options == ("SLEWRATE=FAST", "TERMINATION=OFF", "DIFFRESISTOR=100")


def test_every_part_has_every_resource():
    for device, facts in read_toml(PARTS).items():
        assert set(RESOURCES) <= set(facts), device


def test_a_board_of_ones_own_is_one_file_and_differs_where_the_file_does(tmp_path):
    text = GOOD
    for old, new in (('title = "Radiona ULX3S 85F"', 'title = "Mine"'),
                     ('preset = "trim"', 'preset = "small"'), ('tx = "L4"', 'tx = "L5"')):
        assert old in text
        text = text.replace(old, new)
    mine, theirs = find_board(str(write(tmp_path, text))), find_board("ulx3s")
    assert mine.pins["serial"]["tx"].places == ("L5",)
    assert replace(mine, pins=theirs.pins) == replace(theirs, name="mine", title="Mine",
                                                      preset="small")


def test_a_board_that_is_like_another_says_only_what_differs(tmp_path):
    """What was measured on the other one is not its own."""
    mine = find_board(str(write(tmp_path, """
like = "ulx3s"
title = "Mine"
[clock]
accelerator_hz = 80_000_000
[pins.serial]
tx = "L5"
""")))
    theirs = find_board("ulx3s")
    assert mine.pins["serial"]["tx"].places == ("L5",)
    assert mine.pins["serial"]["rx"] == theirs.pins["serial"]["rx"]
    assert theirs.routed
    assert theirs.memory.timing is not None
    assert replace(mine, pins=theirs.pins) == replace(
        theirs, name="mine", title="Mine", routed={}, memory=replace(theirs.memory, timing=None),
        clock=replace(theirs.clock, accelerator_hz=80_000_000))


def test_a_board_that_is_like_another_may_be_off_the_network(tmp_path):
    mine = find_board(str(write(tmp_path, 'like = "ecpix5"\nethernet = false\n')))
    theirs = find_board("ecpix5")
    assert theirs.ethernet is not None
    assert mine.ethernet is None
    assert set(theirs.pins) - set(mine.pins) == {"ethernet", "ethernet_clocks"}
    assert find_board("ecpix5n").pins == mine.pins


@pytest.mark.parametrize(("text", "complaint"), [
    ('like = "ulx3"', "mine.toml: like is 'ulx3'; did you mean ulx3s?"),
    ("like = 3", "mine.toml: like is 3, but must be a text"),
    ('lke = "ulx3s"', "mine.toml: there is no 'lke'; did you mean like?"),
    ('like = "ecpix5"\nethernet = false\npins = 3', "mine.toml: pins is 3, but must be a table"),
    ('like = "ulx3s"\nmemory = 5', "mine.toml: memory is 5, but must be a table"),
    ('like = "ulx3s"\n[memory]\nrates = 2', "mine.toml: memory: there is no 'rates'; did you"),
])
def test_a_board_is_like_one_that_there_is(tmp_path, text, complaint):
    with pytest.raises(BoardError, match=re.escape(complaint)):
        load_board(write(tmp_path, text))


def test_only_the_bitstream_is_replaced_in_the_command_that_loads_it(tmp_path):
    """A shell has braces of its own."""
    command = "${HOME}/bin/load --try {1,2} {bitstream} {foo}"
    mine = find_board(str(write(tmp_path, GOOD.replace(
        "openFPGALoader --board ulx3s {bitstream}", command))))
    plan = make_plan(mine, PRESETS["tiny"], "tiny")
    assert load_command(plan) == "${HOME}/bin/load --try {1,2} mine.bit {foo}"


def test_a_part_that_nobody_knows_is_described_in_the_file(tmp_path):
    text = GOOD.replace("LFE5U-85F-6BG381C", "UP5K-B-EVN")
    with pytest.raises(BoardError, match=r"mine.toml: part is 'UP5K-B-EVN', which is none of .*"
                                         r"describe it in \[resources\]$"):
        load_board(write(tmp_path, text))
    resources = ("[resources]\nlut = 5280\nregister = 5280\ndsp = 8\nbram = 30\n"
                 "bram_bits = 4096\n")
    found = load_board(write(tmp_path, text + resources)).part
    assert (found.device, found.resources["lut"], found.idcode) == ("UP5K-B-EVN", 5280, 0)


@pytest.mark.parametrize(("old", "new", "complaint"), [
    ("title =", "titel =", "there is no 'titel'; did you mean title?"),
    ('flow = "ecp5"', 'flow = "ecp6"', "flow is 'ecp6'; did you mean ecp5?"),
    ('flow = "ecp5"', "flow = 5", "flow is 5, but must be a text"),
    ('preset = "trim"', 'preset = "tirm"', "preset is 'tirm'; did you mean trim?"),
    ('cpu = "VexRiscv"', "", "cpu is missing"),
    ("{bitstream}", "it", "load is 'openFPGALoader --board ulx3s it', but must be a command with "
                          "{bitstream} where the file comes"),
    ("hz = 25_000_000", "hz = 25e6", "clock: hz is 25000000.0, but must be an integer from "
                                     "1,000,000 to 1,000,000,000"),
    ("hz = 25_000_000", "hz = true", "clock: hz is True, but must be an integer from"),
    ('kind = "sdr"', 'kind = "sdram"', "memory: kind is 'sdram'; did you mean sdr?"),
    ('chip = "MT48', 'chips = "MT48', "memory: there is no 'chips'; did you mean chip?"),
    ('tx = "L4"', "tx = 4", "pins: serial: tx is 4, but must be a table"),
    ('tx = "L4"', 'tx = { place = "L4" }', "pins: serial: tx: there is no 'place'"),
    ('tx = "L4"', "tx = { standard = 'LVCMOS33' }", "pins: serial: tx: at is missing"),
    ('options = ["SLEWRATE=FAST"]', 'options = "FAST"', "options is 'FAST', but must be a list"),
    ("[clock]", "clock = 3\n[other]", "there is no 'other'"),
    ("[routed]", "[routed]\nsmall = -1", "routed: small is -1, but must be a number above"),
    ("read_latency = 15", "read_latency = 0",
     "memory: read_latency is 0, but must be an integer from 1 to 10000"),
    ("read_latency = 15", "latency = 9", "there is no 'latency'"),
    ("[clock]", "[clock", "not TOML"),
])
def test_a_wrong_fact_is_named_with_its_file(tmp_path, old, new, complaint):
    assert old in GOOD
    with pytest.raises(BoardError, match=re.escape(complaint)) as caught:
        load_board(write(tmp_path, GOOD.replace(old, new, 1)))
    assert str(tmp_path / "mine.toml") in str(caught.value)


@pytest.mark.parametrize(("name", "complaint"), [
    ("ulx3", "there is no board 'ulx3'; there are arty_z7_20, .*; did you mean ulx3s\\?$"),
    ("", "there is no board ''"),
    ("missing.toml", "missing.toml: cannot be read: No such file"),
    ("Bad Name.toml", "a board is named by its file"),
])
def test_an_unknown_board_is_refused(name, complaint):
    with pytest.raises(MicrotronError, match=complaint):
        find_board(name)


def test_names_are_those_of_the_files():
    assert board_names() == sorted(path.stem for path in FILES.iterdir())
