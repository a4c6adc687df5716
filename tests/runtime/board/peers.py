"""The other ends of links: boards that speak LiteX's wire formats, and misbehave on request."""

import os
import select
import socket
import struct
import threading
import tty
from contextlib import contextmanager


class SerialPeer:
    """A board on a pseudo terminal. `budget` is the number of bytes it sends before it goes."""

    def __init__(self, board, budget=None):
        self.board, self.budget = board, budget
        self.ours, self.theirs = os.openpty()
        tty.setraw(self.theirs)
        self.stop, self.stopper = os.pipe()
        self.address = os.ttyname(self.theirs)

    def serve(self):
        try:
            while True:
                kind, count, word = struct.unpack(">BBI", self._take(6))
                places = [4 * (word + number) for number in range(count)]
                if kind == 1:
                    values = struct.unpack(f">{count}I", self._take(4 * count))
                    for place, value in zip(places, values, strict=True):
                        self.board.write_word(place, value)
                else:
                    self._give(struct.pack(f">{count}I", *map(self.board.read_word, places)))
        except (OSError, EOFError):
            return

    def _take(self, size):
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self.ours, self.stop], [], [])
            if self.stop in ready:
                raise EOFError
            data += os.read(self.ours, size - len(data))
        return data

    def say(self, data):
        """Something that nobody asked for; it has arrived when this returns."""
        os.write(self.ours, data)
        select.select([self.theirs], [], [])

    def pull(self):
        """The plug: the board's end of the line is gone."""
        os.write(self.stopper, b"!")
        self.thread.join()
        os.close(self.ours)
        self.ours = os.open(os.devnull, os.O_RDONLY)

    def _give(self, data):
        if self.budget is not None:
            data, self.budget = data[:self.budget], self.budget - len(data)
            if self.budget < 0:
                os.write(self.ours, data)
                raise EOFError
        os.write(self.ours, data)


@contextmanager
def serial_peer(board, budget=None):
    peer = SerialPeer(board, budget)
    peer.thread = threading.Thread(target=peer.serve, daemon=True)
    peer.thread.start()
    try:
        yield peer
    finally:
        os.write(peer.stopper, b"!")
        peer.thread.join()
        for each in (peer.theirs, peer.ours, peer.stop, peer.stopper):
            os.close(each)


class NetworkPeer:
    """A board on the network. `loses` says of each datagram that comes or goes whether it gets
    lost; `stale` that every answer comes after an old one."""

    def __init__(self, board, loses=lambda: False, stale=False):
        self.board, self.loses, self.stale = board, loses, stale
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.packets = []

    def serve(self):
        while True:
            packet, sender = self.socket.recvfrom(4096)
            if not packet:
                return
            if self.loses():
                continue
            self.packets.append(packet)
            answer = self._answer(packet)
            if self.stale:
                self.socket.sendto(answer[:12] + b"\0\0\0\0" + answer[16:], sender)
            if answer and not self.loses():
                self.socket.sendto(answer, sender)

    def _answer(self, packet):
        magic, version, sizes, _, flags, enable, writes, reads = struct.unpack_from(">HBBIBBBB",
                                                                                    packet)
        assert (magic, version, sizes, flags, enable) == (0x4E6F, 0x10, 0x44, 0, 0x0F)
        place = 12
        if writes:
            base, *values = struct.unpack_from(f">I{writes}I", packet, place)
            place += 4 + 4 * writes
            for number, value in enumerate(values):
                self.board.write_word(base + 4 * number, value)
        number, *addresses = struct.unpack_from(f">I{reads}I", packet, place)
        assert len(packet) == place + 4 + 4 * reads
        return packet[:8] + struct.pack(f">BBBBI{reads}I", 0, 0x0F, reads, 0, number,
                                        *map(self.board.read_word, addresses))


@contextmanager
def network_peer(board, **options):
    peer = NetworkPeer(board, **options)
    thread = threading.Thread(target=peer.serve, daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", peer.socket.getsockname())
        thread.join()
        peer.socket.close()
