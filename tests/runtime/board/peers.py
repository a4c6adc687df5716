"""The other ends of links: boards that speak LiteX's wire formats, and misbehave on request."""

import os
import select
import socket
import struct
import threading
import tty
from contextlib import contextmanager, suppress


class Noise:
    """Flips bits on the way: those with these numbers, counted from the first of both ways."""

    def __init__(self, *bits):
        self.bits, self.passed = set(bits), 0
        self.log = []                   # way, its first bit, and the bytes as they were sent

    def through(self, way, data):
        first, self.passed = self.passed, self.passed + 8 * len(data)
        self.log.append((way, first, data))
        changed = bytearray(data)
        for bit in self.bits & set(range(first, self.passed)):
            changed[(bit - first) // 8] ^= 1 << (bit - first) % 8
        return bytes(changed)


class SerialPeer:
    """A board on a pseudo terminal. `budget` is the number of bytes it sends before it goes,
    `skips` how many come after a command that it does not know: 0 as to the monitor, or 5 as to
    bridges in hardware."""

    patience = 0.02                     # seconds without a byte after which it gives up a command

    def __init__(self, board, budget=None, noise=None, skips=0):
        self.board, self.budget, self.skips = board, budget, skips
        self.noise = noise or Noise()
        self.ours, self.theirs = os.openpty()
        tty.setraw(self.theirs)
        self.stop, self.stopper = os.pipe()
        self.address = os.ttyname(self.theirs)

    def serve(self):
        try:
            while True:
                kind, = self._take(1, None)
                with suppress(TimeoutError):
                    self._command(kind)
        except (OSError, EOFError):
            return

    def _command(self, kind):
        if kind not in (1, 2):
            self._take(self.skips)
            return
        count, word = struct.unpack(">BI", self._take(5))
        for place in range(4 * word, 4 * (word + count), 4):
            if kind == 1:
                self.board.write_word(place, int.from_bytes(self._take(4), "big"))
            else:
                self._give(self.board.read_word(place).to_bytes(4, "big"))

    def _take(self, size, patience=patience):
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self.ours, self.stop], [], [], patience)
            if self.stop in ready:
                raise EOFError
            if not ready:
                raise TimeoutError
            data += self.noise.through("to", os.read(self.ours, size - len(data)))
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
        data = self.noise.through("from", data)
        if self.budget is not None:
            data, self.budget = data[:self.budget], self.budget - len(data)
            if self.budget < 0:
                os.write(self.ours, data)
                raise EOFError
        os.write(self.ours, data)


@contextmanager
def serial_peer(board, **options):
    peer = SerialPeer(board, **options)
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
    lost; `stale` that every answer comes after an old one. What is no packet is not answered."""

    def __init__(self, board, loses=lambda: False, stale=False, noise=None):
        self.board, self.loses, self.stale = board, loses, stale
        self.noise = noise or Noise()
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
            try:
                answer = self._answer(self.noise.through("to", packet))
            except struct.error:
                continue
            if self.stale:
                self.socket.sendto(answer[:12] + b"\0\0\0\0" + answer[16:], sender)
            if not self.loses():
                self.socket.sendto(self.noise.through("from", answer), sender)

    def _answer(self, packet):
        magic, version, sizes, _, flags, enable, writes, reads = struct.unpack_from(">HBBIBBBB",
                                                                                    packet)
        if (magic, version, sizes, flags, enable) != (0x4E6F, 0x10, 0x44, 0, 0x0F):
            raise struct.error("not Etherbone")
        place = 12
        if writes:
            base, *values = struct.unpack_from(f">I{writes}I", packet, place)
            place += 4 + 4 * writes
        number, *addresses = struct.unpack(f">I{reads}I", packet[place:])
        for written in range(writes):
            self.board.write_word(base + 4 * written, values[written])
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
