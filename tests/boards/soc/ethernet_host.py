"""A host on the network of a simulated board: frames of ARP, IPv4, ICMP and UDP, and a relay that
gives programs with sockets a way to it."""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass

PREAMBLE = bytes([0x55] * 7 + [0xD5])
ARP, IPV4 = 0x0806, 0x0800
ICMP, UDP = 1, 17
LEAST_BYTES = 60                        # of a frame without its checksum
BROADCAST = b"\xFF" * 6
HOST_MAC, HOST_IP = bytes.fromhex("02000000000A"), bytes([192, 168, 1, 10])
ANSWERED = 400_000                      # cycles by which any answer has come


def frame(to: bytes, kind: int, content: bytes, sender: bytes = HOST_MAC) -> bytes:
    data = (to + sender + struct.pack(">H", kind) + content).ljust(LEAST_BYTES, b"\0")
    return PREAMBLE + data + struct.pack("<I", zlib.crc32(data))


def opened(data: bytes) -> tuple[bytes, bytes, int, bytes]:
    """To whom, from whom, of what kind, and what, of a frame that is whole."""
    assert data.startswith(PREAMBLE)
    inside, checksum = data[len(PREAMBLE):-4], data[-4:]
    assert len(inside) >= LEAST_BYTES
    assert struct.unpack("<I", checksum)[0] == zlib.crc32(inside)
    return inside[:6], inside[6:12], struct.unpack(">H", inside[12:14])[0], inside[14:]


def arp(operation: int, sender: tuple[bytes, bytes], target: tuple[bytes, bytes]) -> bytes:
    return struct.pack(">HHBBH", 1, IPV4, 6, 4, operation) + b"".join((*sender, *target))


def summed(data: bytes) -> int:
    """The checksum of IP: zero of what has its own in it."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data[:len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(protocol: int, target: bytes, content: bytes, sender: bytes = HOST_IP) -> bytes:
    def header(checksum: int) -> bytes:
        return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 7, 0x4000, 64, protocol,
                           checksum) + sender + target

    return header(summed(header(0))) + content


def ip_opened(packet: bytes) -> tuple[int, bytes, bytes, bytes]:
    """Protocol, from whom, to whom, and what; without the bytes that fill a frame."""
    assert packet[0] == 0x45
    assert summed(packet[:20]) == 0
    size, = struct.unpack(">H", packet[2:4])
    return packet[9], packet[12:16], packet[16:20], packet[20:size]


def udp(sender: int, target: int, content: bytes) -> bytes:
    return struct.pack(">HHHH", sender, target, 8 + len(content), 0) + content


def udp_opened(packet: bytes) -> tuple[int, int, bytes]:
    sender, target, size, _ = struct.unpack(">HHHH", packet[:8])
    assert size == len(packet)
    return sender, target, packet[8:]


@dataclass
class Host:
    """One computer at the other end of a board's cable."""

    board: object
    board_ip: bytes
    board_mac: bytes = b""

    def find(self) -> None:
        """Ask who has the board's address."""
        self.board.send_frame(frame(BROADCAST, ARP, arp(1, (HOST_MAC, HOST_IP),
                                                        (bytes(6), self.board_ip))))
        to, sender, kind, content = opened(self.board.receive_frame(ANSWERED))
        assert (to, kind) == (HOST_MAC, ARP)
        assert content[:28] == arp(2, (sender, self.board_ip), (HOST_MAC, HOST_IP))
        self.board_mac = sender

    def send(self, protocol: int, content: bytes, to: bytes | None = None) -> None:
        self.board.send_frame(frame(self.board_mac, IPV4,
                                    ip(protocol, to or self.board_ip, content)))

    def receive(self, patience: int = ANSWERED) -> tuple[int, bytes] | None:
        """What protocol brings what; questions of ARP are answered on the way."""
        while data := self.board.receive_frame(patience):
            to, sender, kind, content = opened(data)
            assert sender == self.board_mac
            if kind == ARP:
                assert content[:28] == arp(1, (sender, self.board_ip), (BROADCAST, HOST_IP))
                self.board.send_frame(frame(sender, ARP, arp(2, (HOST_MAC, HOST_IP),
                                                             (sender, self.board_ip))))
                continue
            protocol, source, target, inside = ip_opened(content)
            assert (to, kind, source, target) == (HOST_MAC, IPV4, self.board_ip, HOST_IP)
            return protocol, inside
        return None


class Relay:
    """The board's port of UDP, at an address of this machine. As on a network, what the board sends
    goes to the port that it names, and nowhere else."""

    def __init__(self, host: Host, port: int, patience: int):
        self.host, self.port, self.patience = host, port, patience
        self.loses = lambda: False          # of each packet that comes or goes whether it gets lost
        self.packets: list[bytes] = []      # that the board was sent
        self.error: BaseException | None = None
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.socket.getsockname())

    def serve(self) -> None:
        try:
            while (asked := self.socket.recvfrom(4096))[0]:
                packet, (address, number) = asked
                if not self.loses():
                    self.packets.append(packet)
                    self.host.send(UDP, udp(number, self.port, packet))
                    self._answer(address)
        except BaseException as error:      # the test is told
            self.error = error

    def _answer(self, address: str) -> None:
        found = self.host.receive(self.patience)
        if found is None or self.loses():
            return
        protocol, content = found
        assert protocol == UDP
        sender, number, packet = udp_opened(content)
        assert sender == self.port
        self.socket.sendto(packet, (address, number))


@contextmanager
def relay(host: Host, port: int, patience: int = ANSWERED):
    found = Relay(host, port, patience)
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", found.socket.getsockname())
        thread.join()
        found.socket.close()
    if found.error is not None:
        raise found.error
