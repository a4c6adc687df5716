"""The host's end of the monitor's line, against a monitor in Python that damages what it likes."""

from __future__ import annotations

import pytest

from microtron.base.errors import ExecutionError, ImageError
from microtron.runtime.monitor.client import Monitor, RefusedError
from microtron.runtime.monitor.network import NetworkImage, reason
from microtron.runtime.monitor.protocol import Outcome, Status

from .fake_monitor import BASE, SIZE, Fake


def flip(answer):
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


@pytest.mark.parametrize("damage", [flip, lambda answer: b"", lambda answer: answer[:-1],
                                    lambda answer: b"\xa5" + answer])
def test_a_damaged_answer_is_asked_for_again(damage):
    assert Monitor(Fake([damage])).hello().clock_hz == 50_000_000


def test_a_board_that_never_answers_is_given_up():
    fake = Fake([flip] * 9)
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
