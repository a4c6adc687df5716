"""A memory behind AXI4 that is as rude as the standard allows, and checks that its master is not.

Each channel stalls at random, reads of different ids come out of order and interleaved, beats of
writes are taken before or after their address. What a master must not do fails an assertion.
"""

from collections import deque
from dataclasses import dataclass, field

from ..bench import Steady

PAGE = 4096
MOST_BEATS = 64
OKAY, EXOKAY, SLVERR, DECERR = range(4)


@dataclass
class Window:
    """Bytes that may be touched."""

    start: int
    size: int
    writable: bool = False

    def holds(self, address):
        return self.start <= address < self.start + self.size


@dataclass
class Dram:
    """The content, the windows into it, and addresses at which the bus answers with an error."""

    content: bytearray
    windows: list = field(default_factory=list)
    errors: dict = field(default_factory=dict)      # address of a beat: response

    def read(self, address, size):
        touched = range(address, address + size)
        assert any(window.holds(each) for window in self.windows for each in touched), (
            f"a read of {address:#x}, outside of every window")
        return int.from_bytes(self.content[address:address + size], "little")

    def write(self, address, size, value, strobe):
        for number in range(size):
            if strobe >> number & 1:
                assert any(window.holds(address + number) and window.writable
                           for window in self.windows), (
                    f"a write to {address + number:#x}, outside of every window for writing")
                self.content[address + number] = value >> 8 * number & 255


def check_burst(address, beats, size, kind, width):
    """A burst must be whole beats, incrementing, and stay on the grid of 64 beats and of 4 KiB."""
    assert (1 << size, kind) == (width, 1)
    assert address % width == 0
    assert 1 <= beats <= MOST_BEATS
    last = address + beats * width - 1
    for grid in (PAGE, MOST_BEATS * width):
        assert address // grid == last // grid, f"burst from {address:#x} to {last:#x}"


class Reads:
    """The read channels. `stall` is the chance that a channel does nothing in a cycle."""

    def __init__(self, bench, bus, dram, rng, *, stall=0.3, latency=(1, 40), shuffle=True):
        self.bench, self.dram, self.rng = bench, dram, rng
        self.stall, self.latency, self.shuffle = stall, latency, shuffle
        self.width = len(bus.rdata) // 8
        self.arready, self.rvalid, self.rid, self.rdata, self.rresp, self.rlast = map(
            bench.pin, (bus.arready, bus.rvalid, bus.rid, bus.rdata, bus.rresp, bus.rlast))
        self.arvalid, self.arid, self.araddr, self.arlen, self.rready = map(
            bench.probe, (bus.arvalid, bus.arid, bus.araddr, bus.arlen, bus.rready))
        self.arsize, self.arburst = bench.probe(bus.arsize), bench.probe(bus.arburst)
        self.steady = Steady(bench, "AR", self.arvalid, self.arready, bus.arid, bus.araddr,
                             bus.arlen, bus.arsize, bus.arburst)
        self.bursts, self.offered_at, self.taken_at, self.beats_at = [], [], [], []
        self.pending = {0: deque(), 1: deque()}                     # by id: [due, beats left]
        self.order = deque()
        self.most_pending = 0

    def drive(self):
        self.arready.value = self.rng.random() >= self.stall
        if not self.rvalid.value and self.rng.random() >= self.stall:
            self._show()

    def _show(self):
        """Offer a beat of a burst that is due: of any id, or in the order of the addresses."""
        ids = [each for each in self.pending if self.pending[each]
               and self.pending[each][0][0] <= self.bench.cycle]
        if not self.shuffle:
            ids = [each for each in ids if each == self.order[0]]
        if ids:
            self.rid.value = self.rng.choice(ids)
            beats = self.pending[self.rid.value][0][1]
            self.rvalid.value, self.rlast.value = 1, len(beats) == 1
            self.rdata.value = self.dram.read(beats[0], self.width)
            self.rresp.value = self.dram.errors.get(beats[0], OKAY)

    def look(self):
        if self.arvalid.value and self.steady.waiting is None:
            self.offered_at.append(self.bench.cycle)
        self.steady.look(self.arready.value)
        if self.rvalid.value and self.rready.value:
            self.rvalid.value = 0
            self.beats_at.append(self.bench.cycle)
            burst = self.pending[self.rid.value][0]
            burst[1].popleft()
            if not burst[1]:
                self.pending[self.rid.value].popleft()
                self.order.remove(self.rid.value)
        if self.arvalid.value and self.arready.value:
            self._take()

    def _take(self):
        address, beats = self.araddr.value, self.arlen.value + 1
        check_burst(address, beats, self.arsize.value, self.arburst.value, self.width)
        self.bursts.append((address, beats))
        self.taken_at.append(self.bench.cycle)
        due = self.bench.cycle + self.rng.randint(*self.latency)
        self.pending[self.arid.value].append(
            [due, deque(range(address, address + beats * self.width, self.width))])
        self.order.append(self.arid.value)
        self.most_pending = max(self.most_pending, len(self.order))

    @property
    def idle(self):
        return not self.order and not self.arvalid.value


class Writes:
    """The write channels. With `beats_first`, an address is taken only after its first beat."""

    def __init__(self, bench, bus, dram, rng, *, stall=0.3, latency=(1, 40), beats_first=False):
        self.bench, self.dram, self.rng = bench, dram, rng
        self.stall, self.latency, self.beats_first = stall, latency, beats_first
        self.width = len(bus.wdata) // 8
        self.awready, self.wready, self.bvalid, self.bresp = map(
            bench.pin, (bus.awready, bus.wready, bus.bvalid, bus.bresp))
        self.awvalid, self.awaddr, self.awlen, self.awsize, self.awburst = map(
            bench.probe, (bus.awvalid, bus.awaddr, bus.awlen, bus.awsize, bus.awburst))
        self.wvalid, self.wdata, self.wstrb, self.wlast, self.bready = map(
            bench.probe, (bus.wvalid, bus.wdata, bus.wstrb, bus.wlast, bus.bready))
        self.steady = (
            Steady(bench, "AW", self.awvalid, self.awready, bus.awid, bus.awaddr, bus.awlen,
                   bus.awsize, bus.awburst),
            Steady(bench, "W", self.wvalid, self.wready, bus.wdata, bus.wstrb, bus.wlast))
        self.bursts, self.offered_at, self.beats_at, self.answers_at = [], [], [], []
        self.beats = deque()            # taken, but their address is not
        self.addresses = deque()        # taken, but not all their beats: [address, beats left]
        self.answers = deque()          # [due, response]
        self.response = OKAY
        self.most_pending = 0

    def drive(self):
        self.awready.value = self.rng.random() >= self.stall and (
            not self.beats_first or bool(self.beats))
        self.wready.value = self.rng.random() >= self.stall
        if not self.bvalid.value and self.rng.random() >= self.stall and self.answers \
                and self.answers[0][0] <= self.bench.cycle:
            self.bvalid.value, self.bresp.value = 1, self.answers[0][1]

    def look(self):
        if self.awvalid.value and self.steady[0].waiting is None:
            self.offered_at.append(self.bench.cycle)
        self.steady[0].look(self.awready.value)
        self.steady[1].look(self.wready.value)
        if self.bvalid.value and self.bready.value:
            self.bvalid.value = 0
            self.answers.popleft()
            self.answers_at.append(self.bench.cycle)
        if self.awvalid.value and self.awready.value:
            address, beats = self.awaddr.value, self.awlen.value + 1
            check_burst(address, beats, self.awsize.value, self.awburst.value, self.width)
            self.bursts.append((address, beats))
            self.addresses.append([address, beats])
            self.most_pending = max(self.most_pending, len(self.addresses) + len(self.answers))
        if self.wvalid.value and self.wready.value:
            self.beats.append((self.wdata.value, self.wstrb.value, self.wlast.value))
            self.beats_at.append(self.bench.cycle)
        while self.beats and self.addresses:
            self._write(*self.beats.popleft())

    def _write(self, value, strobe, last):
        address, beats = self.addresses[0]
        assert bool(last) == (beats == 1), f"last is {last} with {beats} beats to go"
        response = self.dram.errors.get(address, OKAY)
        self.response = max(self.response, response)
        if response < SLVERR:
            self.dram.write(address, self.width, value, strobe)
        self.addresses[0] = [address + self.width, beats - 1]
        if last:
            self.addresses.popleft()
            due = self.bench.cycle + self.rng.randint(*self.latency)
            self.answers.append((due, self.response))
            self.response = OKAY

    @property
    def idle(self):
        return not (self.answers or self.addresses or self.beats
                    or self.awvalid.value or self.wvalid.value)
