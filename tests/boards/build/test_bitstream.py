"""Bitstreams are read back: the part that they are for, and whether there is a design."""

from __future__ import annotations

import json

import pytest

from microtron.boards.build.bitstream import Bitstream
from microtron.boards.ecp5 import ecp5_bitstream
from microtron.boards.facts.errors import BoardError
from microtron.boards.gowin import gowin_bitstream

PREAMBLE = b"a comment\0\xff\xff\xff\xbd\xb3\xff\xff\xff\xff"
RESET, IDENTITY = b"\x3b\0\0\0", b"\xe2\0\0\0\x41\x11\x30\x43"
CONTROL, ADDRESS = b"\x22\0\0\0\x40\0\0\0", b"\x46\0\0\0"
FRAMES = b"\x82\x91\x00\x02" + b"\0\7\0" * 4
ECP5 = PREAMBLE + RESET + IDENTITY + CONTROL + ADDRESS + FRAMES


def line(*values):
    return "".join(f"{value:08b}" for value in values) + "\n"


GOWIN = ("//Part: GW2AR\n" + line(255, 255) + line(0xA5, 0xC3) + line(6, 0, 0, 0, 0, 0, 8, 0x1B)
         + line(0x3B, 0x80, 0, 2) + line(0, 1, *[255] * 8) + line(0, 0, *[255] * 8) + line(9)
         ).encode()


def test_the_part_and_the_frames_are_found():
    assert ecp5_bitstream.read_bitstream(ECP5) == Bitstream(0x41113043, 2, 12)
    assert gowin_bitstream.read_bitstream(GOWIN) == Bitstream(0x81B, 2, 1)


@pytest.mark.parametrize(("data", "complaint"), [
    (b"", "no preamble"),
    (PREAMBLE, "ends before it writes frames"),
    (PREAMBLE + RESET + b"\x99\0\0\0", "has 0x99 at 23"),
    (PREAMBLE + FRAMES, "has 0x82 at 19"),
    (ECP5[:-len(FRAMES)], "ends before it writes frames"),
])
def test_what_is_no_bitstream_for_ecp5_is_refused(data, complaint):
    with pytest.raises(BoardError, match=complaint):
        ecp5_bitstream.read_bitstream(data)


@pytest.mark.parametrize(("data", "complaint"), [
    (b"", "ends before its frames"),
    (b"0101", "not lines of binary digits"),
    (b"hello world \n", "not lines of binary digits"),
    (GOWIN.rsplit(b"\n", 3)[0], "ends before its frames"),
])
def test_what_is_no_bitstream_for_gowin_is_refused(data, complaint):
    with pytest.raises(BoardError, match=complaint):
        gowin_bitstream.read_bitstream(data)


def test_a_bitstream_for_another_part_or_without_a_design_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.bit").write_bytes(ECP5)
    ecp5_bitstream.check("a.bit", 0x41113043)
    assert json.loads((tmp_path / "bitstream.json").read_text())["frames"] == 2
    with pytest.raises(BoardError, match=r"a.bit is for a part with the code 0x41113043, but the "
                                         r"board has 0x41112043"):
        ecp5_bitstream.check("a.bit", 0x41112043)
    (tmp_path / "a.bit").write_bytes(ECP5.replace(b"\7", b"\0"))
    with pytest.raises(BoardError, match=r"a.bit holds no design"):
        ecp5_bitstream.check("a.bit", 0x41113043)
    (tmp_path / "a.fs").write_bytes(GOWIN)
    gowin_bitstream.check("a.fs", 0x81B)
