"""The memory's behaviour in time, written down once more in plain Python.

Follows the definition in `isa.memory_timing` sentence by sentence, without regard to speed; the C++
of the harness is compared with it cycle by cycle.
"""

from dataclasses import dataclass, field

from microtron.isa.memory_timing import Channel, MemoryTiming, is_stalled


@dataclass
class Burst:
    id: int
    address: int
    beats: int
    taken: int              # cycle of its address
    done: int = 0           # beats shown or taken so far
    finished: int = -1      # cycle of its last beat


@dataclass
class ReferenceMemory:
    timing: MemoryTiming
    bytes: bytearray
    bus_bytes: int = 8
    cycle: int = 0
    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    held_read: dict | None = None           # the beat that is shown and not taken
    held_answer: dict | None = None
    bus: dict = field(default_factory=lambda: {"read": 0, "write": 0})  # cycle it is free again
    last: str = ""

    def step(self, *, wvalid, ar=None, aw=None, w=None, rready=False, bready=False):
        """One cycle. `ar`, `aw` are (id, address, beats) or None, `w` is (bytes, strobes)."""
        shown = self.show(wvalid)
        if shown["wready"]:
            self.take_beat(*w)
        if self.held_read and rready:
            if self.held_read["rlast"]:
                del self.reads[0]
            self.held_read = None
        if self.held_answer and bready:
            del self.writes[0]
            self.held_answer = None
        if ar and shown["arready"]:
            self.reads.append(Burst(*ar, taken=self.cycle))
        if aw and shown["awready"]:
            self.writes.append(Burst(*aw, taken=self.cycle))
        self.cycle += 1
        return shown

    def show(self, wvalid):
        arready = len(self.reads) < self.timing.reads and self.free(Channel.READ_ADDRESS)
        awready = len(self.writes) < self.timing.writes and self.free(Channel.WRITE_ADDRESS)
        wants = {"read": self.may_show_read(), "write": wvalid and self.may_take_beat()}
        if self.timing.shared and all(wants.values()):
            wants[self.last or "write"] = False     # at first, reads go first
        for kind, wanted in wants.items():
            if wanted:
                turns = self.timing.shared and kind != (self.last or "write")
                self.last = kind
                for each in self.bus if self.timing.shared else [kind]:
                    self.bus[each] = (self.cycle + self.timing.cycles_per_beat
                                      + turns * self.timing.turn)
        if wants["read"]:
            self.held_read = self.next_read()
        if not self.held_answer and self.may_answer():
            self.held_answer = {"bid": self.writes[0].id}
        return {"arready": arready, "awready": awready, "wready": wants["write"],
                "rvalid": bool(self.held_read), "bvalid": bool(self.held_answer),
                **(self.held_read or {}), **(self.held_answer or {})}

    def free(self, channel):
        return not is_stalled(self.timing, self.cycle, channel)

    def may_show_read(self):
        return (self.held_read is None and bool(self.reads) and self.free(Channel.READ_DATA)
                and self.cycle >= self.reads[0].taken + self.timing.read_latency
                and self.cycle >= self.bus["read"])

    def may_take_beat(self):
        return (any(burst.done < burst.beats for burst in self.writes)
                and self.free(Channel.WRITE_DATA) and self.cycle >= self.bus["write"])

    def may_answer(self):
        return (bool(self.writes) and self.writes[0].finished >= 0
                and self.cycle >= self.writes[0].finished + self.timing.write_latency
                and self.free(Channel.WRITE_RESPONSE))

    def next_read(self):
        burst = self.reads[0]
        start = burst.address + burst.done * self.bus_bytes
        burst.done += 1
        return {"rid": burst.id, "rlast": burst.done == burst.beats,
                "rdata": bytes(self.bytes[start:start + self.bus_bytes])}

    def take_beat(self, data, strobes):
        burst = next(each for each in self.writes if each.done < each.beats)
        start = burst.address + burst.done * self.bus_bytes
        for lane in range(self.bus_bytes):
            if strobes >> lane & 1:
                self.bytes[start + lane] = data[lane]
        burst.done += 1
        if burst.done == burst.beats:
            burst.finished = self.cycle
