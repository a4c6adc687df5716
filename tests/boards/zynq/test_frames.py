"""FASM to frames, with a made-up database in the format of Project X-Ray."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import MicrotronError
from microtron.boards.zynq.fasm import parse_fasm
from microtron.boards.zynq.frames import FRAME_WORDS, build_frames, format_frames, write_frames
from microtron.boards.zynq.xray import open_xray

from .small_database import PART, write_database


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return open_xray(write_database(tmp_path_factory.mktemp("database")), PART)


def bits(database, text):
    """The bits that some FASM sets, as (frame, place)."""
    return {(address, 32 * word + place)
            for address, words in build_frames(database, parse_fasm(text, "a.fasm")).items()
            for word, value in enumerate(words) for place in range(32) if value >> place & 1}


@pytest.mark.parametrize(("text", "found"), [
    ("", set()),
    ("# nothing\n\n{ .annotation = \"x\" }\n", set()),
    ("CLB_X0Y0.FF", {(0x102, 31), (0x102, 32)}),
    ("CLB_X0Y1.FF", {(0x102, 95), (0x102, 96)}),                # two words further
    ("CLB_X0Y0.FF = 0", set()),
    ("CLB_X0Y0.FF = 1 # yes", {(0x102, 31), (0x102, 32)}),
    ("CLB_X0Y0.LUT.INIT[2]", {(0x103, 63)}),
    ("CLB_X0Y0.LUT.INIT[2:0] = 3'b101", {(0x100, 0), (0x103, 63)}),
    ("CLB_X0Y0.LUT.INIT[2:1] = 2'h2", {(0x103, 63)}),
    ("CLB_X0Y0.LUT.INIT[1:0] = 3", {(0x100, 0), (0x100, 1)}),
    ("CLB_X0Y0.LUT.INIT", {(0x100, 0)}),                        # bit 0 unless told otherwise
    ("CLB_X0Y0.MUX.A", {(0x101, 6)}),
    ("CLB_X0Y0.MUX.A\nCLB_X0Y1.MUX.B", {(0x101, 6), (0x101, 69)}),
    ("CLB_X0Y0.OUT.IN\nCLB_X0Y0.OUT.OTHER\nWIRES_X3Y0.A.B", set()),
    ("BRAM_X1Y0.RAM_Y0.IN_USE", {(0x201, 1610)}),
    ("BRAM_X1Y0.RAM_Y0.INIT_00[255:0] = 256'h8" + 62 * "0" + "1",
     {(0x800000, 1600), (0x800002, 1919)}),
    ("HALF_X2Y0.SITE_Y0.ON", {(0x300, 97 * 32 + 70)}),          # as the other site of a whole one
])
def test_features_set_the_bits_the_database_says(database, text, found):
    assert bits(database, text) == found


@given(st.sets(st.integers(0, 2)), st.sampled_from("bdh"))
def test_a_value_sets_its_bits_whatever_its_base(database, wanted, base):
    value = sum(1 << number for number in wanted)
    digits = {"b": f"{value:b}", "d": f"{value}", "h": f"{value:X}"}[base]
    places = {0: (0x100, 0), 1: (0x100, 1), 2: (0x103, 63)}
    assert bits(database, f"CLB_X0Y0.LUT.INIT[2:0] = 3'{base}{digits}") == {
        places[number] for number in wanted}


def test_all_frames_of_the_part_are_there_even_empty(database):
    frames = build_frames(database, ())
    assert sorted(frames) == [*range(0x100, 0x104), 0x200, 0x201, 0x300, 0x400,
                              *range(0x800000, 0x800003)]
    assert all(len(words) == FRAME_WORDS and not words.any() for words in frames.values())


@pytest.mark.parametrize(("text", "message"), [
    ("CLB_X0Y0.FG", r"the database of xc7z999clg1-1 does not know CLB_X0Y0.FG \(line 1\)"),
    ("CLB_X9Y9.FF", r"does not know CLB_X9Y9.FF \(line 1\)"),
    ("CLB_X0Y0.LUT.INIT[3]", r"does not know CLB_X0Y0.LUT.INIT\[3\] \(line 1\)"),
    ("WIRES_X3Y0.B.A", r"does not know WIRES_X3Y0.B.A"),
    ("\n".join(f"CLB_X0Y0.A{number}" for number in range(9)),
     r"know CLB_X0Y0.A0 \(line 1\), .*A4 \(line 5\) and 4 more"),
    ("CLB_X0Y0.MUX.A\nCLB_X0Y0.MUX.B",
     "CLB_X0Y0.MUX.A and CLB_X0Y0.MUX.B contradict each other: bit 5 of frame 0x00000101"),
    ("LIOB33_X0Y1.IOB_Y0.PULLTYPE.PULLUP", r"PULLUP \(line 1\): designs with pins of their own"),
    ("CLB_X0Y0.FF = 2", "a.fasm:1: a value of 2 bits for 1"),
    ("CLB_X0Y0.LUT.INIT[1:0] = 3'b100", "a.fasm:1: a value of 3 bits for 2"),
    ("CLB_X0Y0.LUT.INIT[1:0] = 2'b12", "a.fasm:1: '12' is no number of base 2"),
    ("CLB_X0Y0.LUT.INIT[1:0] = 2'b_", "a.fasm:1: '_' is no number of base 2"),
    ("\nCLB_X0Y0", "a.fasm:2: 'CLB_X0Y0' is no line of FASM"),
    ("CLB_X0Y0.FF == 1", "a.fasm:1: 'CLB_X0Y0.FF == 1' is no line of FASM"),
    ("CLB_X0Y0.LUT.INIT[0:2] = 1", "a.fasm:1: a value of 1 bits for -1"),
])
def test_what_cannot_be_done_is_said_and_nothing_is_left_out(database, text, message):
    with pytest.raises(MicrotronError, match=message):
        build_frames(database, parse_fasm(text, "a.fasm"))


def test_a_file_becomes_frames_with_what_the_part_requires(tmp_path, monkeypatch):
    family = write_database(tmp_path / "zynq7")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fasm").write_text("CLB_X0Y0.FF\n")
    write_frames("a.fasm", "a.frm", str(family), PART)
    lines = (tmp_path / "a.frm").read_text().splitlines()
    assert len(lines) == 11
    assert lines[2] == "0x00000102 " + ",".join(
        ["0x80000000", "0x00000001", *["0x00000000"] * 99])
    assert lines[7] == "0x00000400 0x00000080," + ",".join(["0x00000000"] * 100)


def test_another_grade_of_the_same_die_requires_the_same(tmp_path):
    assert open_xray(write_database(tmp_path), "xc7z999clg1-2").required == "CENTER_X4Y0.ALWAYS\n"


@pytest.mark.parametrize(("part", "changes", "message"), [
    ("xc7z998clg1-1", {}, "there is no part xc7z998clg1-1; there are xc7z999clg1-1, xc7z999clg1-2"),
    ("zynq", {}, "there is no part zynq"),
    (PART, {"xc7z999/tilegrid.json": "[1]"}, "tilegrid.json: not a grid of tiles"),
    (PART, {"xc7z999/tilegrid.json": '{"a": {"type": "A"}}'}, "not a grid of tiles"),
    (PART, {f"{PART}/required_features.fasm": None}, "does not say what every design for xc7z999"),
])
def test_a_database_without_the_part_or_damaged_is_refused(tmp_path, part, changes, message):
    with pytest.raises(MicrotronError, match=message):
        open_xray(write_database(tmp_path, **changes), part)


def test_a_damaged_list_of_bits_is_refused_when_it_is_needed(tmp_path):
    damaged = open_xray(write_database(tmp_path, **{"segbits_clb.db": "\nCLB.FF 1-2\n"}), PART)
    assert bits(damaged, "BRAM_X1Y0.RAM_Y0.IN_USE")
    with pytest.raises(MicrotronError, match=r"segbits_clb\.db: not a list of features and bits"):
        bits(damaged, "CLB_X0Y0.FF")


def test_frames_are_written_in_order_of_their_addresses(database):
    addresses = [int(line.split()[0], 16)
                 for line in format_frames(build_frames(database, ())).splitlines()]
    assert addresses == sorted(addresses)
