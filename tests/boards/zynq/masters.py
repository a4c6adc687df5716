"""Masters of AXI that ask for what a test wants, as slowly and oddly as the standard allows."""

from collections import deque


class ReadMaster:
    """Asks for bursts in order, each a mapping from AR's members to values, and keeps the beats.

    `beats` holds (id, data, response, last) as they come.
    """

    def __init__(self, bench, bus, bursts, rng, *, stall=0.3):
        self.bench, self.rng, self.stall = bench, rng, stall
        self.bursts = deque(bursts)
        self.beats = []
        self.wanted = sum(burst["len"] + 1 for burst in self.bursts)
        names = {name for burst in self.bursts for name in burst}
        self.pins = {name: bench.pin(getattr(bus, f"ar{name}")) for name in sorted(names)}
        self.valid, self.rready = bench.pin(bus.arvalid), bench.pin(bus.rready)
        self.ready, self.rvalid = bench.probe(bus.arready), bench.probe(bus.rvalid)
        self.seen = [bench.probe(each) for each in (bus.rid, bus.rdata, bus.rresp, bus.rlast)]

    def drive(self):
        if not self.valid.value and self.bursts and self.rng.random() >= self.stall:
            self.valid.value = 1
            for name, value in self.bursts.popleft().items():
                self.pins[name].value = value
        self.rready.value = self.rng.random() >= self.stall

    def look(self):
        if self.valid.value and self.ready.value:
            self.valid.value = 0
        if self.rvalid.value and self.rready.value:
            self.beats.append(tuple(each.value for each in self.seen))

    @property
    def done(self):
        return len(self.beats) >= self.wanted


class WriteMaster:
    """Writes bursts in order, each a mapping of AW's members and `beats`, (data, strobes) pairs.

    Beats wait for nothing but the ones before them. `answers` holds (id, response) as they come.
    """

    def __init__(self, bench, bus, bursts, rng, *, stall=0.3):
        self.bench, self.rng, self.stall = bench, rng, stall
        self.addresses = deque({name: value for name, value in burst.items() if name != "beats"}
                               for burst in bursts)
        self.beats = deque((*beat, number == len(burst["beats"]) - 1)
                           for burst in bursts for number, beat in enumerate(burst["beats"]))
        self.answers, self.wanted = [], len(bursts)
        self.addressed = self.sent = 0          # bursts whose address, or whose last beat, is gone
        names = {name for address in self.addresses for name in address}
        self.pins = {name: bench.pin(getattr(bus, f"aw{name}")) for name in sorted(names)}
        self.valid, self.ready = bench.pin(bus.awvalid), bench.probe(bus.awready)
        self.wvalid, self.wready = bench.pin(bus.wvalid), bench.probe(bus.wready)
        self.beat = [bench.pin(each) for each in (bus.wdata, bus.wstrb, bus.wlast)]
        self.bready, self.bvalid = bench.pin(bus.bready), bench.probe(bus.bvalid)
        self.answer = [bench.probe(each) for each in (bus.bid, bus.bresp)]

    def drive(self):
        if not self.valid.value and self.addresses and self.rng.random() >= self.stall:
            self.valid.value = 1
            for name, value in self.addresses.popleft().items():
                self.pins[name].value = value
        if not self.wvalid.value and self.beats and self.rng.random() >= self.stall:
            self.wvalid.value = 1
            for pin, value in zip(self.beat, self.beats.popleft(), strict=True):
                pin.value = value
        self.bready.value = self.rng.random() >= self.stall

    def look(self):
        if self.valid.value and self.ready.value:
            self.valid.value = 0
            self.addressed += 1
        if self.wvalid.value and self.wready.value:
            self.wvalid.value = 0
            self.sent += self.beat[-1].value
        if self.bvalid.value and self.bready.value:
            assert len(self.answers) < min(self.addressed, self.sent), "an answer before its burst"
            self.answers.append(tuple(each.value for each in self.answer))

    @property
    def done(self):
        return len(self.answers) >= self.wanted


class Until:
    """Ends a bench when everyone is done."""

    def __init__(self, bench, *masters):
        self.bench, self.masters = bench, masters

    def drive(self):
        pass

    def look(self):
        self.bench.finished = all(each.done for each in self.masters)
