"""A memory on the bus that notes what is touched and fails where it is told to."""

from cocotbext.axi import AxiResp, AxiSlave


class Memory:
    """Bytes, which a test sees as they are and the accelerator through a `Port`.

    A test counts addresses from 0; on the bus, memory lies at `start`.
    """

    def __init__(self, size, start=0):
        self.content, self.start = bytearray(size), start
        self.beats_read = []            # as ranges of addresses
        self.touched = 0                # beats read or written
        self.fail()

    def read(self, address, size):
        return bytes(self.content[address:address + size])

    def write(self, address, data):
        assert address + len(data) <= len(self.content)
        self.content[address:address + len(data)] = data

    def clear(self, rng):
        """Fill with noise, forget what happened, and let nothing fail any more."""
        self.content[:] = rng.randbytes(len(self.content))
        self.beats_read.clear()
        self.fail()

    def fail(self, *, reads=range(0), writes=range(0), response=AxiResp.SLVERR):
        """Let reads and writes that touch these addresses meet an error."""
        self.failing_reads, self.failing_writes, self.response = reads, writes, response


class Port:
    """What the bus sees of a memory: an exception becomes an error response."""

    def __init__(self, memory):
        self.memory = memory

    async def read(self, address, size):
        address -= self.memory.start
        beat = range(address, address + size)
        self.memory.touched += 1
        self.memory.beats_read.append(beat)
        _check(beat, self.memory.failing_reads, self.memory)
        return self.memory.read(address, size)

    async def write(self, address, data):
        address -= self.memory.start
        self.memory.touched += 1
        _check(range(address, address + len(data)), self.memory.failing_writes, self.memory)
        self.memory.write(address, data)


def _check(beat, failing, memory):
    if beat.start < failing.stop and failing.start < beat.stop:
        raise OSError(f"{beat.start:#x} fails because it was told to")
    if beat.start < 0 or beat.stop > len(memory.content):
        raise OSError(f"there is no memory at {beat.start:#x}")


def connect(bus, dut, memory):
    """A slave on the bus. It answers errors with SLVERR, so others are put in on the way."""
    slave = AxiSlave(bus, dut.clk, dut.rst, target=Port(memory))
    for channel, field in ((slave.read_if.r_channel, "rresp"),
                           (slave.write_if.b_channel, "bresp")):
        channel.send = _answering(channel.send, field, memory)
    return slave


def _answering(send, field, memory):
    async def answer(message):
        if getattr(message, field) == AxiResp.SLVERR:
            setattr(message, field, memory.response)
        await send(message)
    return answer
