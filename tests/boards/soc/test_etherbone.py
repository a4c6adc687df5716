"""The bridge over Ethernet without a system around it: a memory is on its bus. Frames go in, and
come out; the driver's own link and LiteX's have it, too."""

from __future__ import annotations

import re
import socket
import struct

import numpy as np
import pytest
from litex.gen import LiteXModule
from litex.soc.interconnect import wishbone
from litex.tools.remote.comm_udp import CommUDP

from microtron.boards.facts.board import PARTS, load_board
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.errors import BoardError
from microtron.boards.facts.ethernet import Ethernet
from microtron.boards.soc import platforms
from microtron.boards.soc.etherbone import RECORD_WORDS, Network, SimulatedPhy
from microtron.boards.soc.generate import COMMENTS
from microtron.boards.soc.simulation.ethernet_cable import CabledBoard
from microtron.boards.soc.simulation.simulated_board import TOP, compile_model
from microtron.isa.config import tiny
from microtron.runtime.board.etherbone import EtherboneLink
from microtron.runtime.board.link import LinkError
from microtron.runtime.devices.rtl_build import QUICK_TO_COMPILE

from .ethernet_host import (
    HOST_IP,
    ICMP,
    IPV4,
    PREAMBLE,
    UDP,
    Host,
    frame,
    ip,
    relay,
    summed,
    udp,
    udp_opened,
)

MEMORY = range(0x4000_0000, 0x4000_2000)
WHERE = Ethernet(phy="rgmii", ip="10.0.7.9", port=4321, mac="02:00:00:00:be:ef")
IP = bytes([10, 0, 7, 9])
ASKER = 50_123                      # a port of the host
SILENCE = 3_000                     # cycles in which any answer would have come
HEADER, PROBED = bytes.fromhex("4e6f104400000000"), bytes.fromhex("4e6f114400000000")


class Alone(LiteXModule):
    """The bridge, and a memory that is everywhere."""

    def __init__(self, board, platform):
        self.crg = platforms.SimulatedClocks(board, platform)
        self.phy = SimulatedPhy(platform)
        self.network = Network(self.phy, WHERE, 50_000_000)
        self.memory = wishbone.SRAM(len(MEMORY), bus=self.network.bus)
        line = platform.request("serial")
        self.comb += [line.source_valid.eq(0), line.source_data.eq(0), line.sink_ready.eq(0)]


class Cable(CabledBoard):
    """The model of that, in place of a board's."""

    @staticmethod
    def _model(board, config):
        platform = platforms.Simulation()
        alone = Alone(board, platform)
        text = str(platform.get_verilog(alone, name=TOP))
        text = re.sub(COMMENTS, "", text, flags=re.MULTILINE | re.DOTALL)
        return compile_model("network", {"soc.v": text}, QUICK_TO_COMPILE, ("-DETHERNET",)), {}


@pytest.fixture(scope="module")
def host():
    found = Host(Cable(board_of("ulx3s"), tiny), IP)
    found.find()
    return found


def ask(host: Host, packet: bytes, port: int = WHERE.port) -> bytes | None:
    """What Etherbone answers, to the port that asked; None if it does not."""
    host.send(UDP, udp(ASKER, port, packet))
    found = host.receive(SILENCE)
    if found is None:
        return None
    protocol, content = found
    sender, target, answer = udp_opened(content)
    assert (protocol, sender, target) == (UDP, WHERE.port, ASKER)
    return answer


def record(writes: list[int] = (), reads: list[int] = (), base: int = MEMORY.start) -> bytes:
    """A packet that writes from a base on, and reads from addresses; its number is 7."""
    words = [base, *writes] if writes else []
    words += [7, *reads] if reads else []
    return HEADER + struct.pack(f">BBBB{len(words)}I", 0, 0x0F, len(writes), len(reads), *words)


def answered(*words: int) -> bytes:
    return HEADER + struct.pack(f">BBBBI{len(words)}I", 0, 0x0F, len(words), 0, 7, *words)


def places(count: int) -> list[int]:
    return [MEMORY.start + 4 * number for number in range(count)]


def test_the_board_is_found_under_its_address_and_answers_a_ping(host):
    assert host.board_mac == bytes.fromhex("02000000beef")
    for size in (1, 8, 18, 19, 56, 100):
        echo = struct.pack(">BBHHH", 8, 0, 0, 1, 2) + bytes(range(size))
        host.send(ICMP, echo[:2] + struct.pack(">H", summed(echo)) + echo[4:])
        protocol, content = host.receive()
        assert (protocol, content[:2], content[4:]) == (ICMP, bytes(2), echo[4:])
        assert summed(content) == 0


def test_a_probe_is_answered(host):
    assert ask(host, PROBED + bytes(4)) == bytes.fromhex("4e6f124400000000") + bytes(4)


@pytest.mark.parametrize("count", [1, 2, 31, 32, 255])
def test_records_write_and_read_up_to_255_words(host, count):
    words = [number * 0x0101_0101 & 0xFFFF_FFFF for number in range(count, 0, -1)]
    assert ask(host, record(writes=words)) is None
    assert ask(host, record(reads=places(count))) == answered(*words)


@pytest.mark.parametrize(("writes", "reads"), [(1, 1), (3, 2), (32, 1), (127, 127)])
def test_a_record_that_writes_may_read_as_well(host, writes, reads):
    """LiteEth alone reads at the number of the answer, and writes what follows anywhere."""
    words = list(range(1000 + writes, 1000 + 2 * writes))
    assert ask(host, record(writes=words, reads=places(reads))) == answered(*words[:reads])
    assert ask(host, record(reads=places(writes))) == answered(*words)


def test_what_would_get_stuck_is_dropped_and_the_next_packet_is_answered(host):
    right = record(writes=[5], reads=places(1))
    half = RECORD_WORDS // 2
    for wrong in (record(writes=[1] * half, reads=places(half)), b"", HEADER[:4], HEADER,
                  b"\0" * 1400, b"other magic, and long enough", PROBED + b"and on and on"):
        assert ask(host, wrong) is None
        assert ask(host, right) == answered(5)
    assert ask(host, record(writes=[1] * (half - 1), reads=places(half - 1))) is not None


def test_what_is_for_others_changes_nothing(host):
    assert ask(host, record(writes=[5], reads=places(1))) == answered(5)
    change = udp(ASKER, WHERE.port, record(writes=[6], reads=places(1)))
    for target in (bytes([10, 0, 7, 10]), bytes([10, 0, 7, 255]), HOST_IP):
        host.send(UDP, change, to=target)
        assert host.receive(SILENCE) is None
    assert ask(host, record(writes=[6]), port=WHERE.port + 1) is None
    assert ask(host, record(reads=places(1))) == answered(5)


def whole(host: Host, *writes: int, place: int = MEMORY.start) -> bytes:
    """A frame that writes words."""
    packet = udp(ASKER, WHERE.port, record(writes=list(writes), base=place))
    return frame(host.board_mac, IPV4, ip(UDP, IP, packet))


@pytest.mark.parametrize("words", [1, 3, 60, 255])
def test_a_frame_that_is_damaged_changes_nothing(host, words):
    assert ask(host, record(writes=[5], reads=places(1))) == answered(5)
    right = whole(host, *[6] * words)
    body = range(len(PREAMBLE), len(right))
    for place in (*body[:60:7], body[-5], body[-1]):
        damaged = bytearray(right)
        damaged[place] ^= 0x10
        host.board.send_frame(bytes(damaged))
    for size in (0, 1, 7, 8, 9, 12, 13, 30, 50, len(right) - 20, len(right) - 1):
        host.board.send_frame(right[:size])         # cut short
    assert host.receive(20 * len(right) + SILENCE) is None
    assert ask(host, record(reads=places(1))) == answered(5)
    host.board.send_frame(right)
    assert ask(host, record(reads=places(1))) == answered(6)


def test_frames_that_come_faster_than_they_are_done_with_are_taken_or_dropped_as_a_whole(host):
    """Here the bus is fast, so what holds them up are answers: the cable takes a byte at a time."""
    reads, changes = places(255), range(0, 1000, 50)
    ask(host, record(writes=[0] * 255))
    packet = udp(ASKER, WHERE.port, record(reads=reads))
    for number, change in enumerate(changes):
        host.send(UDP, packet)
        host.board.send_frame(whole(host, *range(change + 1, change + 51),
                                    place=MEMORY.start + 4 * 50 * (number % 5)))
    while host.receive(SILENCE):
        pass
    found = struct.unpack(">255I", ask(host, record(reads=reads))[16:])
    for first in range(0, 250, 50):
        assert found[first] % 50 == 1
        assert found[first:first + 50] == tuple(range(found[first], found[first] + 50))
    assert found[0] > 1                             # what came later found room again


def test_each_of_several_programs_gets_its_own_answers(host):
    asked = [(ASKER + number % 3, 1 + 9 * number) for number in range(6)]
    for port, count in asked:
        host.send(UDP, udp(port, WHERE.port, record(reads=places(count))))
    for port, count in asked:
        _, target, answer = udp_opened(host.receive()[1])
        assert (target, answer[10]) == (port, count)


# Programs with sockets.

def linked(other, seconds=30.0):
    return EtherboneLink(other.address, MEMORY.start, MEMORY, seconds=seconds)


def test_the_driver_s_link_reads_and_writes_bytes_and_leaves_their_neighbours(host):
    rng = np.random.default_rng(3)
    known = rng.integers(0, 256, 1000, np.uint8)
    with relay(host, WHERE.port) as other:
        link = linked(other)
        link.write(MEMORY.start, known)
        for first, size in ((0, 0), (1, 1), (2, 5), (4, 128), (127, 130), (993, 7)):
            known[first:first + size] = data = rng.integers(0, 256, size, np.uint8)
            link.write(MEMORY.start + first, data)
            assert (link.read(MEMORY.start + first, size) == data).all()
        assert (link.read(MEMORY.start, len(known)) == known).all()
        link.close()


def test_a_packet_that_gets_lost_is_sent_again(host):
    for lost in (0, 1, 2, 3):                       # the questions and the answers of two packets
        with relay(host, WHERE.port) as other:
            passing = iter(range(100))
            other.loses = lambda passing=passing, lost=lost: next(passing) == lost
            link = linked(other, seconds=0.5)
            link.write_words(MEMORY.start, [lost, 1, 2], repeatable=True)
            assert link.read_words(MEMORY.start, 3) == [lost, 1, 2]
            link.close()


def test_a_cable_that_is_cut_is_one_clear_error(host):
    with relay(host, WHERE.port) as other:
        other.loses = lambda: True
        link = linked(other, seconds=0.02)
        with pytest.raises(LinkError, match=r"the board has not answered for 0\.1 s; is it swi"):
            link.read_words(MEMORY.start, 1)
        with pytest.raises(LinkError, match=r"has not answered for 0\.02 s"):
            link.write_words(MEMORY.start, [1], repeatable=False)
        link.close()


def test_litex_s_own_tools_find_the_same_words(host):
    """They answer to the port that they ask; ours is another one, since both are this machine."""
    with relay(host, WHERE.port) as other:
        name, number = other.address.split(":")
        tool = CommUDP(name, int(number), timeout=30)
        tool.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        tool.socket.settimeout(30)
        assert tool.probe(name, int(number)) == 1
        tool.write(MEMORY.start, [0x12345678, 0x9ABCDEF0])
        link = linked(other)
        assert link.read_words(MEMORY.start, 2) == [0x12345678, 0x9ABCDEF0]
        link.write_words(MEMORY.start, [3, 4, 5], repeatable=True)
        assert tool.read(MEMORY.start, 3) == [3, 4, 5]
        link.close()
        tool.close()


# What a board's file says.

def file_with(tmp_path, text: str, name: str = "ecpix5"):
    """A board's file with other lines in [ethernet]."""
    lines = (PARTS.parent / "files" / f"{name}.toml").read_text()
    head, _, tail = lines.partition("[ethernet]\n")
    path = tmp_path / "board.toml"
    path.write_text(f"{head}\n[ethernet]\n{text}\n\n{tail[tail.find('[pins'):] if tail else ''}")
    return path


def test_a_file_says_where_a_board_answers(tmp_path):
    assert load_board(file_with(tmp_path, 'phy = "rgmii"')).ethernet == Ethernet(phy="rgmii")
    given = load_board(file_with(tmp_path, """phy = "rgmii"
ip = "10.0.7.9"
port = 4321
mac = "02:00:00:00:be:ef"
""")).ethernet
    assert given == WHERE
    assert given.mac_number == 0x0200_0000_BEEF


@pytest.mark.parametrize(("text", "words"), [
    ("", "ethernet: phy is missing"),
    ('phy = "sgmii"', "ethernet: phy is 'sgmii'"),
    ('phy = "rgmii"\nip = "10.0.7"', r"ip is '10\.0\.7', but must be as 192\.168\.1\.50"),
    ('phy = "rgmii"\nip = "10.0.7.256"', "ip is '10.0.7.256', but must be as"),
    ('phy = "rgmii"\nmac = "01:00:00:00:00:01"', "mac is '01:.*', but must be of one board"),
    ('phy = "rgmii"\nport = 0', "port is 0, but must be an integer from 1 to 65,535"),
    ('phy = "rgmii"\nspeed = 100', "ethernet: there is no 'speed'"),
])
def test_a_wrong_place_is_refused(tmp_path, text, words):
    with pytest.raises(BoardError, match=words):
        load_board(file_with(tmp_path, text))


def test_a_board_whose_system_cannot_have_it_is_refused(tmp_path):
    with pytest.raises(BoardError, match="there is \\[ethernet\\], but flow is 'gowin', and only"):
        load_board(file_with(tmp_path, 'phy = "rgmii"', "tang_nano_20k"))

