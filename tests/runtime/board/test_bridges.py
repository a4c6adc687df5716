"""LiteX's bridges over a serial line and over Ethernet, with boards in software behind them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.isa.config import tiny
from microtron.runtime.board import uart
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.etherbone import MOST_WORDS, EtherboneLink
from microtron.runtime.board.link import LinkError
from microtron.runtime.board.places import LITEX_REGISTERS
from microtron.runtime.board.uart import UartLink
from microtron.runtime.devices.device import run

from ..devices.test_device import plus_seven
from .fake_board import FakeBoard
from .peers import network_peer, serial_peer

MEMORY = range(0x4001_0000, 0x4003_0000)
PLACE = "board:ulx3s@/dev/null"
QUIET = 0.02                    # seconds: less than on a real line, where bytes take their time


def board():
    return FakeBoard(tiny, MEMORY, LITEX_REGISTERS)


def serial(peer, seconds=60.0):
    return UartLink(peer.address, LITEX_REGISTERS, MEMORY, speed=115200, seconds=seconds,
                    quiet=QUIET)


def network(peer, seconds=60.0):
    return EtherboneLink(peer.address, LITEX_REGISTERS, MEMORY, seconds=seconds)


BRIDGES = pytest.mark.parametrize(("peer", "link"), [
    (serial_peer, serial), (network_peer, network)], ids=["serial", "network"])


@BRIDGES
def test_a_program_runs_behind_a_bridge(peer, link):
    fake = board()
    with peer(fake) as other:
        device = BoardDevice(tiny, place=PLACE, link=link(other))
        outputs, _ = run(plus_seven(), {"x": np.full((2, 4), 5, np.int8)}, device)
        assert outputs["y"].tolist() == [[12] * 4] * 2
        assert not fake.strays


@BRIDGES
def test_bytes_come_back_as_they_were_written_and_their_neighbours_stay(peer, link):
    fake = board()
    with peer(fake) as other:
        opened = link(other)

        @settings(max_examples=30)
        @given(st.integers(0, 600), st.binary(max_size=700))
        def check(offset, data):
            before = fake.data.copy()
            opened.write(MEMORY.start + offset, np.frombuffer(data, np.uint8))
            assert opened.read(MEMORY.start + offset, len(data)).tobytes() == data
            before[offset:offset + len(data)] = list(data)
            assert (fake.data == before).all()

        check()
        opened.close()
    assert not fake.strays


def test_the_wire_formats_are_litex_s():
    """As its own tools write them: `litex.tools.remote`, version 2024.12."""
    with network_peer(board()) as other:
        opened = network(other)
        opened.write_words(0x4001_0000, [0x12345678, 0x9ABCDEF0], repeatable=True)
        opened.read_words(0x4001_0000, 2)
        opened.close()
    assert [packet.hex() for packet in other.packets] == [
        "4e6f104400000000" "000f0201" "40010000" "12345678" "9abcdef0" "00000001" "40010004",
        "4e6f104400000000" "000f0002" "00000002" "40010000" "40010004"]
    assert uart._command(uart.READ, 3, 0x4001_0000).hex() == "0203" "10004000"


def test_what_the_board_said_unasked_is_no_answer():
    fake = board()
    with serial_peer(fake) as other:
        opened = serial(other)
        other.say(b"Microtron on ULX3S\r\n")
        assert opened.read_registers(0, 1)[0] == fake.registers["identity"]
        opened.close()


# A link that drops.

def test_a_board_that_says_nothing_is_given_up():
    with serial_peer(board(), budget=0) as other, pytest.raises(
            LinkError, match=r"the board sent 0 of 4 bytes, then nothing for 0\.05 s; is the"):
        BoardDevice(tiny, place=PLACE, link=serial(other, seconds=0.05))


def test_a_short_read_says_how_much_came():
    with serial_peer(board()) as other:
        device = BoardDevice(tiny, place=PLACE, link=serial(other, seconds=1))
        other.budget = 2
        with pytest.raises(LinkError, match=r"the board sent 2 of \d+ bytes, then nothing for 1 s"):
            run(plus_seven(), {}, device)


def test_a_line_that_is_pulled_out_is_said_to_be_gone():
    with serial_peer(board()) as other:
        opened = serial(other)
        opened.read_registers(0, 1)
        other.pull()
        with pytest.raises(LinkError, match="the link is gone: Input/output error"):
            opened.read_registers(0, 1)
        opened.close()


def test_lost_datagrams_are_sent_again_and_nothing_is_missing():
    fake, passing = board(), itertools.count()
    with network_peer(fake, loses=lambda: next(passing) % 7 == 3) as other:
        opened = network(other, seconds=0.2)
        data = np.random.default_rng(1).integers(0, 256, 4 * 5 * MOST_WORDS, np.uint8)
        opened.write(MEMORY.start, data)
        assert (opened.read(MEMORY.start, len(data)) == data).all()
        assert (fake.data[:len(data)] == data).all()
        opened.close()
    assert next(passing) > 20           # more than the 20 that would do if none got lost


def test_a_lost_register_write_is_not_repeated():
    """A start that is sent twice would be a fault."""
    fake = board()
    with network_peer(fake) as other:
        opened = network(other, seconds=0.02)
        other.loses = lambda: len(other.packets) > 0        # the answer, not the request
        with pytest.raises(LinkError, match=r"has not answered for 0\.02 s; is it switched on"):
            opened.write_register(0x20, 5)
        opened.close()
    assert len(other.packets) == 1
    assert fake.registers["program_low"] == 5


def test_an_answer_to_an_earlier_question_is_passed_over():
    fake = board()
    with network_peer(fake, stale=True) as other:
        opened = network(other)
        assert opened.read_words(LITEX_REGISTERS, 1) == [0x4D54524E]
        assert opened.read_words(LITEX_REGISTERS + 4, 1) == [fake.registers["isa_version"]]
        opened.close()


def test_a_board_that_is_off_is_given_up_after_some_attempts():
    with network_peer(board(), loses=lambda: True) as other:
        opened = network(other, seconds=0.01)
        with pytest.raises(LinkError, match=r"has not answered for 0\.05 s"):
            opened.read_registers(0, 1)
        opened.close()


def test_nobody_on_the_port_is_said_at_once():
    with network_peer(board()) as other:
        address = other.address
    opened = EtherboneLink(address, LITEX_REGISTERS, MEMORY)
    with pytest.raises(LinkError, match=r"the link is gone: Connection refused|not answered"):
        opened.read_registers(0, 1)
    opened.close()
