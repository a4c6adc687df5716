"""The host's end of the monitor's line, against a monitor in Python that damages what it likes."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from microtron.isa.errors import ExecutionError, ImageError
from microtron.runtime.monitor.client import Monitor, RefusedError
from microtron.runtime.monitor.network import NetworkImage, reason
from microtron.runtime.monitor.protocol import ANSWER, MARK, Frame, Kind, Outcome, Status

BASE, SIZE = 0x4000_0000, 4096


class Fake:
    """A monitor with some memory. `damage` says what becomes of the next answers."""

    def __init__(self, damage=()):
        self.memory = bytearray(range(256)) * (SIZE // 256)
        self.damage = list(damage)
        self.said = b"text \xa5 for people\r\n"
        self.frames = []

    def write(self, data):
        assert data.startswith(MARK)
        assert crc32(data[2:-4]) == int.from_bytes(data[-4:], "little")
        kind, number, length = struct.unpack("<BBH", data[2:6])
        self.frames.append(Kind(kind))
        answer = Frame(kind + ANSWER, number, self.answer(kind, data[6:6 + length])).encode()
        damage = self.damage.pop(0) if self.damage else None
        self.said += damage(answer) if damage else answer

    def answer(self, kind, payload):
        done = bytes(4)
        if kind == Kind.HELLO:
            return done + struct.pack("<5I", 1, 50_000_000, BASE, SIZE, 0x9000_0000)
        address = int.from_bytes(payload[:4], "little") - BASE
        if kind == Kind.READ:
            size = int.from_bytes(payload[4:], "little")
            if not 0 <= address <= SIZE - size:
                return struct.pack("<I", Status.BAD_ADDRESS)
            return done + self.memory[address:address + size]
        if kind == Kind.WRITE:
            assert (address | len(payload)) % 4 == 0
            self.memory[address:address + len(payload) - 4] = payload[4:]
            return done
        return struct.pack("<II", Status.TOO_LARGE, SIZE)

    def read(self, count, patience):
        data, self.said = self.said[:count], self.said[count:]
        return data


def flipped(answer):
    return answer[:7] + bytes([answer[7] ^ 4]) + answer[8:]


def test_what_is_written_is_read_at_any_offset_and_nothing_else_changes():
    fake = Fake()
    monitor = Monitor(fake)
    right = bytearray(fake.memory)
    for address, data in ((0, b"abcd"), (5, b"x"), (1021, bytes(1500)), (3, b""), (4090, b"end")):
        monitor.write(BASE + address, data)
        right[address:address + len(data)] = data
        assert fake.memory == right
        assert monitor.read(BASE + address, len(data)) == data


def test_text_between_frames_is_kept_for_people():
    fake = Fake()
    monitor = Monitor(fake)
    assert monitor.hello().memory_bytes == SIZE
    assert bytes(monitor.text) == b"text \xa5 for people\r\n"


@pytest.mark.parametrize("damage", [flipped, lambda answer: b"", lambda answer: answer[:-1],
                                    lambda answer: b"\xa5" + answer])
def test_a_damaged_answer_is_asked_for_again(damage):
    assert Monitor(Fake([damage])).hello().clock_hz == 50_000_000


def test_a_board_that_never_answers_is_given_up():
    fake = Fake([flipped] * 9)
    with pytest.raises(ExecutionError, match="the board does not answer hello; it said"):
        Monitor(fake).hello()
    assert len(fake.frames) == 3


def test_what_the_monitor_refuses_is_an_error_with_its_reason():
    monitor = Monitor(Fake())
    with pytest.raises(RefusedError, match=r"refused to read at 0x40001000: bad_address"):
        monitor.read(BASE + SIZE, 4)
    with pytest.raises(RefusedError, match=r"needs 9,999 bytes of memory, but the board has 4,096"):
        monitor.load(b"image", 9999, BASE)


@pytest.mark.parametrize("content", [b"", bytes(32), b"MTIM" + bytes(28)])
def test_what_is_no_image_is_refused(content):
    with pytest.raises(ImageError):
        NetworkImage(content, BASE)


@pytest.mark.parametrize("status", Status)
def test_every_status_has_words(status):
    outcome = Outcome(status, 0, (5, 2, 3, 0), 0, 0)
    assert Outcome.decode(Outcome.FORMAT.pack(status, 0, 5, 2, 3, 0, 0, 0)) == outcome
    assert reason(outcome, "stage 0").isprintable()
