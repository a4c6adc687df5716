"""Bitstreams of Xilinx 7: read back, and made ready for Linux."""

import struct

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.zynq.frames import FRAME_WORDS
from microtron.boards.zynq.xilinx_bitstream import SYNC, Bitstream, read_bitstream, to_linux_image

IDCODE = 0x0372_7093
NOTHING, DUMMY = 0x2000_0000, 0xFFFF_FFFF


def write(register, *words):
    return (1 << 29 | 2 << 27 | register << 13 | len(words), *words)


def design(frames):
    """The words of a bitstream that writes some frames, the second half in a long packet."""
    data = [word for frame in frames for word in frame]
    return [DUMMY, 0xBB, 0x1122_0044, DUMMY, SYNC, NOTHING, *write(4, 7), *write(12, IDCODE),
            *write(2, *data[:FRAME_WORDS]), *write(2), 2 << 29 | 2 << 27 | len(data) - FRAME_WORDS,
            *data[FRAME_WORDS:], 1 << 29 | 1 << 27 | 7 << 13, *write(4, 13)]


def bit_file(words, part=b"7z020clg400\0", size=None):
    body = struct.pack(f">{len(words)}I", *words)
    fields = b"".join(struct.pack(">BH", letter, len(text)) + text for letter, text in zip(
        b"abcd", (b"top;UserID=1\0", part, b"2026/01/01\0", b"00:00:00\0"), strict=True))
    return (b"\0\x09" + b"\x0f\xf0" * 4 + b"\0" + b"\0\x01" + fields
            + struct.pack(">BI", ord("e"), len(body) if size is None else size) + body)


FRAMES = [[1] * FRAME_WORDS, [0] * FRAME_WORDS, [3, *[0] * (FRAME_WORDS - 1)]]


def test_a_bitstream_says_for_which_part_it_is_and_how_much_is_in_it():
    assert read_bitstream(bit_file(design(FRAMES)), "a.bit") == Bitstream(
        part="7z020clg400", idcode=IDCODE, frames=3, set_bits=FRAME_WORDS + 2)


def test_linux_gets_the_words_without_header_and_turned_around():
    words = design(FRAMES)
    found = to_linux_image(bit_file(words), "a.bit")
    assert struct.unpack(f"<{len(words)}I", found) == tuple(words)
    assert found.index(b"\x66\x55\x99\xaa") == 16


@pytest.mark.parametrize(("data", "message"), [
    (b"", "a.bit: not a .bit file: its header is damaged"),
    (b"\0\x09" + 40 * b"x", "not a .bit file: field a is missing"),
    (bit_file(design(FRAMES))[:-4], "it holds .* bytes, but its header says"),
    (bit_file([1, 2, 3], size=7), "it holds 7 bytes, but its header says 7"),
    (bit_file([1, 2, 3], part=b"\xff"), "its header is damaged"),
    (bit_file([DUMMY, DUMMY]), "there is no synchronization word 0xaa995566"),
    (bit_file([SYNC, DUMMY]), "word 0 after the synchronization, 0xffffffff, is no packet"),
    (bit_file([SYNC, *write(2, 1, 2, 3)[:-1]]), "it ends inside a packet of 3 words"),
])
def test_what_is_no_bitstream_is_refused(data, message):
    with pytest.raises(MicrotronError, match=message):
        read_bitstream(data, "a.bit")
