"""A monitor in Python, on a line of its own or on a pseudo terminal, and an image for it to run."""

import os
import select
import struct
import threading
import tty
from contextlib import contextmanager
from zlib import crc32

import numpy as np

from microtron.runtime.monitor.image import HEADER, MAGIC, NETWORK, TENSOR, VERSION, NetworkImage
from microtron.runtime.monitor.protocol import ANSWER, MARK, Frame, Kind, Outcome, Status

BASE, SIZE = 0x4000_0000, 4096
CYCLES, ACCELERATOR_CYCLES = 150_000, 1000


class Fake:
    """A monitor with some memory, which computes y = x + 7 and remembers x as s. `damage` says what
    becomes of the next answers; `says` what a run ends with instead of being done; `version` is of
    its services."""

    def __init__(self, damage=(), *, says=None, version=VERSION):
        self.memory = bytearray(range(256)) * (SIZE // 256)
        self.damage, self.says, self.version = list(damage), says, version
        self.said = b"text \xa5 for people\r\n"
        self.frames, self.announced, self.timeout = [], None, None

    def write(self, data):
        """A whole question."""
        assert data.startswith(MARK)
        kind, number, length = struct.unpack("<BBH", data[2:6])
        if crc32(data[2:-4]) != int.from_bytes(data[-4:], "little"):
            answer = Frame(ANSWER, number, struct.pack("<I", Status.BAD_FRAME)).encode()
        else:
            self.frames.append(Kind(kind))
            answer = Frame(kind + ANSWER, number, self.answer(kind, data[6:6 + length])).encode()
        damage = self.damage.pop(0) if self.damage else None
        self.said += damage(answer) if damage else answer

    def read(self, count, patience):
        data, self.said = self.said[:count], self.said[count:]
        return data

    def answer(self, kind, payload):
        done = bytes(4)
        if kind == Kind.HELLO:
            return done + struct.pack("<5I", self.version, 50_000_000, BASE, SIZE, 0x9000_0000)
        if kind == Kind.LOAD:
            size, needed, crc = struct.unpack("<3I", payload)
            if needed > SIZE:
                return struct.pack("<II", Status.TOO_LARGE, SIZE)
            self.announced = size, crc
            return done
        if kind == Kind.RUN:
            self.timeout, = struct.unpack("<I", payload)
            return self.run()
        address = int.from_bytes(payload[:4], "little") - BASE
        if kind == Kind.READ:
            size = int.from_bytes(payload[4:], "little")
            if not 0 <= address <= SIZE - size:
                return struct.pack("<I", Status.BAD_ADDRESS)
            return done + self.memory[address:address + size]
        assert (address | len(payload)) % 4 == 0
        self.memory[address:address + len(payload) - 4] = payload[4:]
        return done

    def run(self):
        size, crc = self.announced
        if crc32(self.memory[:size]) != crc:
            return ended(Status.BAD_IMAGE)
        if self.says is not None:
            return ended(*self.says)
        image = NetworkImage(bytes(self.memory[:size]), BASE)
        x, y = (places.popitem()[1].address - BASE
                for places in (dict(image.inputs), dict(image.outputs)))
        self.memory[y:y + 8] = bytes((each + 7) % 256 for each in self.memory[x:x + 8])
        if "s" in image.states:
            s = image.states["s"].address - BASE
            self.memory[s:s + 8] = self.memory[x:x + 8]
        return ended(Status.DONE)


def ended(status, *details):
    return Outcome.FORMAT.pack(status, 0, *details, *[0] * (4 - len(details)),
                               ACCELERATOR_CYCLES, CYCLES)


def image_bytes(needed=2048, scale=0.5, dtype=b"int8"):
    """An image without code: x, y and the state s, which is BEFORE at first, are int8 of shape
    2 × 4, real = scale × (stored − 3)."""
    texts = {text: 0 for text in (b"plus", b"x", b"y", b"s", dtype, b"program 0")}
    tables = HEADER.size + NETWORK.size
    shape = tables + 3 * TENSOR.size
    stages, initials, place = shape + 8, shape + 20, shape + 32
    for text in texts:
        texts[text], place = place + BASE, place + len(text) + 1
    size = -(-place // 4) * 4
    content = HEADER.pack(MAGIC, VERSION, size, needed, 0, 0, BASE + HEADER.size, BASE + 1024)
    content += NETWORK.pack(texts[b"plus"], texts[b"plus"], 64, BASE + tables, 1,
                            BASE + tables + TENSOR.size, 1, BASE + stages, 1,
                            BASE + tables + 2 * TENSOR.size, BASE + initials, 1)
    for name, offset in ((b"x", 0), (b"y", 16), (b"s", 32)):
        content += TENSOR.pack(texts[name], texts[dtype], offset, 8, 2, BASE + shape, scale, 3)
    content += struct.pack("<2I", 2, 4) + struct.pack("<3I", texts[b"program 0"], 0, 0)
    content += struct.pack("<I", BASE + initials + 4) + BEFORE.tobytes()
    content += b"".join(text + b"\0" for text in texts)
    return content.ljust(size, b"\0")


X = np.arange(8, dtype=np.int8).reshape(2, 4)
BEFORE = X * 3 - 9


@contextmanager
def on_a_terminal(fake, questions=()):
    """The address of a pseudo terminal at whose other end the monitor is. `questions` says what
    becomes of the next ones on their way to it."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    stop, stopper = os.pipe()
    changes = list(questions)

    def serve():
        data = b""
        while True:
            os.write(ours, fake.read(1 << 16, 0))
            ready, _, _ = select.select([ours, stop], [], [])
            if stop in ready:
                return
            data += os.read(ours, 4096)
            while len(data) >= 6 and len(data) >= (size := 10 + int.from_bytes(data[4:6],
                                                                              "little")):
                question, data = data[:size], data[size:]
                change = changes.pop(0) if changes else None
                if question := change(question) if change else question:
                    fake.write(question)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield os.ttyname(theirs)
    finally:
        os.write(stopper, b"!")
        thread.join()
        for each in (ours, theirs, stop, stopper):
            os.close(each)
