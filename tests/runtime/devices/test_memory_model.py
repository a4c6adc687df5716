"""The harness' memory keeps the timing that `isa.memory_timing` defines, cycle by cycle."""

import random

import numpy as np
import pytest

from microtron.isa.memory_timing import Channel, MemoryTiming, is_stalled
from microtron.runtime.devices.rtl_header import timing_struct

from .memory_probe import Probe, compile_probe
from .memory_reference import ReferenceMemory

BASE = 0x4000
QUICK = MemoryTiming(read_latency=5, write_latency=3)


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    return compile_probe(tmp_path_factory.mktemp("probe"))


@pytest.fixture
def make(functions):
    """A memory with one window of 4096 bytes that count up."""
    def made(timing=QUICK, bus_bytes=8):
        memory = Probe(functions, timing, bus_bytes)
        memory.data = (np.arange(4096) % 251).astype(np.uint8)
        memory.window(BASE, memory.data)
        return memory
    return made


def ar(beats=1, address=BASE, name=0):
    return {"arvalid": 1, "araddr": address, "arlen": beats - 1, "arid": name}


def aw(beats=1, address=BASE, name=0):
    return {"awvalid": 1, "awaddr": address, "awlen": beats - 1, "awid": name}


def w(last=True, strobes=0xFF, data=b"\x01\x02\x03\x04\x05\x06\x07\x08"):
    return {"wvalid": 1, "wlast": last, "wstrb": strobes, "wdata": data}


READY = {"rready": 1, "bready": 1}


def cycles_of(memory, signal, count, **driven):
    """The cycles of the next `count` in which memory raises a signal."""
    return [cycle for cycle in range(count) if memory.cycle(**driven)[signal]]


@pytest.mark.parametrize("timing", [
    MemoryTiming(stalls=1), MemoryTiming(stalls=128, seed=7),
    MemoryTiming(stalls=250, seed=(1 << 63) - 1)])
def test_stalls_are_those_of_the_definition(functions, timing):
    given = timing_struct(timing)
    for cycle in (*range(2000), (1 << 32) - 1, 1 << 40, (1 << 62) + 12345):
        for channel in Channel:
            stalled = is_stalled(timing, cycle, channel)
            assert functions.probe_stalled(given, cycle, channel) == stalled


def test_the_first_beat_is_shown_a_latency_after_its_address_and_then_one_a_cycle(make):
    memory = make()
    assert memory.cycle(**ar(beats=3), **READY)["arready"]
    assert cycles_of(memory, "rvalid", 12, **READY) == [4, 5, 6]    # one cycle has passed


def test_beats_carry_data_id_and_last(make):
    memory = make()
    memory.cycle(**ar(beats=2, address=BASE + 16, name=1), **READY)
    beats = [shown for _ in range(8) if (shown := memory.cycle(**READY))["rvalid"]]
    assert [beat["rdata"] for beat in beats] == [bytes(range(16, 24)), bytes(range(24, 32))]
    assert [(beat["rid"], beat["rlast"], beat["rresp"]) for beat in beats] == [(1, 0, 0), (1, 1, 0)]


def test_a_beat_that_is_shown_stays_until_it_is_taken_and_keeps_what_it_showed(make):
    memory = make()
    memory.cycle(**ar(beats=2))
    shown = [memory.cycle() for _ in range(10)]
    assert [each["rvalid"] for each in shown] == [0] * 4 + [1] * 6
    memory.data[:] = 99
    assert memory.cycle(**READY)["rdata"] == bytes(range(8))
    assert memory.cycle(**READY)["rdata"] == bytes([99] * 8)


def test_bursts_of_reads_are_answered_in_order_whatever_their_ids(make):
    memory = make()
    for name in (1, 0, 1):
        memory.cycle(**ar(beats=2, name=name), **READY)
    beats = [shown["rid"] for _ in range(12) if (shown := memory.cycle(**READY))["rvalid"]]
    assert beats == [1, 1, 0, 0, 1, 1]


def test_no_more_reads_wait_than_allowed(make):
    memory = make(MemoryTiming(read_latency=5, reads=2))
    assert [memory.cycle(**ar())["arready"] for _ in range(4)] == [1, 1, 0, 0]
    while not memory.cycle(**ar())["rvalid"]:
        pass
    assert not memory.cycle(**ar(), rready=1)["arready"]    # taken at the end of this cycle
    assert memory.cycle(**ar())["arready"]


def test_a_beat_of_writes_waits_for_its_address(make):
    memory = make()
    assert not memory.cycle(**w())["wready"]
    assert not memory.cycle(**w(), **aw())["wready"]
    assert memory.cycle(**w())["wready"]
    assert not memory.cycle(**w())["wready"]
    assert bytes(memory.data[:9]) == bytes([1, 2, 3, 4, 5, 6, 7, 8, 8])


def test_strobes_choose_the_bytes_that_are_written(make):
    memory = make()
    memory.cycle(**aw(address=BASE + 8))
    memory.cycle(**w(strobes=0b10000010))
    assert memory.data[8:16].tolist() == [8, 2, 10, 11, 12, 13, 14, 8]


def test_the_answer_is_shown_a_latency_after_the_last_beat_and_stays(make):
    memory = make()
    memory.cycle(**aw(beats=2, name=1))
    memory.cycle(**w(last=False))
    memory.cycle(**w())
    shown = [memory.cycle() for _ in range(6)]
    assert [each["bvalid"] for each in shown] == [0, 0, 1, 1, 1, 1]
    assert (shown[-1]["bid"], shown[-1]["bresp"]) == (1, 0)
    memory.cycle(bready=1)
    assert not memory.cycle()["bvalid"]


def test_no_more_writes_are_unanswered_than_allowed(make):
    memory = make(MemoryTiming(write_latency=3, writes=2))
    assert [memory.cycle(**aw())["awready"] for _ in range(3)] == [1, 1, 0]
    memory.cycle(**w())
    while not memory.cycle(**aw())["bvalid"]:
        pass
    assert not memory.cycle(**aw(), bready=1)["awready"]
    assert memory.cycle(**aw())["awready"]


def test_a_beat_occupies_the_bus_for_its_cycles(make):
    memory = make(MemoryTiming(read_latency=5, cycles_per_beat=3))
    memory.cycle(**ar(beats=3), **READY)
    assert cycles_of(memory, "rvalid", 14, **READY) == [4, 7, 10]


def read_and_write(memory, count):
    """The cycles in which beats are shown and taken while both kinds always want the bus."""
    memory.cycle(**ar(beats=256), **READY)
    memory.cycle(**aw(beats=256), **READY)
    shown = [memory.cycle(**w(last=False), **READY) for _ in range(count)]
    return ([cycle for cycle, each in enumerate(shown) if each["rvalid"]],
            [cycle for cycle, each in enumerate(shown) if each["wready"]])


def test_reads_and_writes_take_turns_on_a_shared_bus(make):
    reads, writes = read_and_write(make(), 12)
    assert writes == [0, 1, 2, 4, 6, 8, 10]     # alone at first: nothing to read for five cycles
    assert reads == [3, 5, 7, 9, 11]


def test_a_shared_bus_takes_its_time_to_turn(make):
    reads, writes = read_and_write(make(MemoryTiming(read_latency=5, turn=2)), 14)
    assert writes == [0, 1, 2, 6, 12]
    assert reads == [3, 9]


def test_reads_and_writes_do_not_meet_where_each_has_a_bus(make):
    reads, writes = read_and_write(make(MemoryTiming(read_latency=5, shared=False)), 12)
    assert writes == list(range(12))
    assert reads == list(range(3, 12))


def test_reads_go_first_when_nobody_has_had_the_bus(make):
    memory = make(MemoryTiming(read_latency=2))
    memory.cycle(**ar(), **aw(), **READY)
    memory.cycle(**READY)
    shown = memory.cycle(**w(), **READY)
    assert (shown["rvalid"], shown["wready"]) == (1, 0)
    assert memory.cycle(**w(), **READY)["wready"]


def test_a_beat_that_is_held_leaves_the_shared_bus_to_writes(make):
    memory = make()
    memory.cycle(**ar(beats=2), **aw(beats=4))
    for _ in range(6):
        memory.cycle()
    assert [memory.cycle(**w(last=False))["wready"] for _ in range(3)] == [1, 1, 1]


def test_a_read_sees_what_was_written_before_it_was_shown_but_not_in_the_same_cycle(make):
    memory = make(MemoryTiming(read_latency=4, shared=False))
    memory.cycle(**ar(beats=2), **aw(beats=2))
    memory.cycle(), memory.cycle(), memory.cycle()
    assert memory.cycle(**w(last=False), **READY)["rdata"] == bytes(range(8))
    assert memory.data[0] == 1
    memory.data[8] = 77
    assert memory.cycle(**READY)["rdata"][0] == 77


def test_addresses_where_nothing_is_answer_with_a_decode_error_and_are_counted(make):
    memory = make(MemoryTiming(read_latency=1, write_latency=1))
    memory.cycle(**ar(address=BASE + 4096), **READY)
    shown = memory.cycle(**READY)
    assert (shown["rresp"], shown["rdata"], memory.strays) == (3, b"\xee" * 8, 1)
    memory.cycle(**aw(address=BASE - 8))
    memory.cycle(**w())
    assert (memory.cycle()["bresp"], memory.strays) == (3, 2)


def test_bytes_behind_the_end_of_a_window_can_be_read_but_not_written(functions):
    memory = Probe(functions, MemoryTiming(read_latency=1, write_latency=1))
    data = np.full(13, 5, np.uint8)
    memory.window(BASE, data)
    memory.cycle(**ar(address=BASE + 8))
    shown = memory.cycle(**READY)
    assert (shown["rresp"], shown["rdata"]) == (0, b"\x05" * 5 + b"\xee" * 3)
    for strobes, response in ((0x1F, 0), (0x3F, 3)):
        memory.cycle(**aw(address=BASE + 8))
        memory.cycle(**w(strobes=strobes))
        assert memory.cycle(**READY)["bresp"] == response
    assert memory.strays == 1
    assert data.tolist() == [5] * 8 + [1, 2, 3, 4, 5]


def test_a_window_for_reading_is_not_written(functions):
    memory = Probe(functions, MemoryTiming(write_latency=1))
    data = np.zeros(4096, np.uint8)
    memory.window(BASE, data, writable=False)
    memory.cycle(**aw(beats=2))
    memory.cycle(**w(last=False, strobes=0))
    memory.cycle(**w(strobes=1))
    assert (memory.cycle()["bresp"], memory.strays, data.any()) == (3, 1, False)


def test_chosen_addresses_answer_with_an_error_of_the_slave(make):
    memory = make(MemoryTiming(read_latency=1, write_latency=1))
    memory.fail(range(BASE + 12, BASE + 13))
    memory.cycle(**ar(beats=3), **READY)
    assert [memory.cycle(**READY)["rresp"] for _ in range(3)] == [0, 2, 0]
    memory.cycle(**aw(beats=3))
    for last in (False, False, True):
        memory.cycle(**w(last=last))
    assert memory.cycle()["bresp"] == 2
    assert memory.data[[0, 8, 16]].tolist() == [1, 8, 1]
    assert memory.strays == 0


@pytest.mark.parametrize(("driven", "complaint"), [
    ([ar(address=BASE + 4080, beats=3)], "in cycle 0, ar at 0x4ff0 crosses 4096 with 3 beats"),
    ([aw(address=BASE + 4)], "aw at 0x4004 is not a multiple of the bus"),
    ([{**ar(), "arburst": 0}], "not an incrementing burst of whole beats"),
    ([{**ar(), "arsize": 2}], "not an incrementing burst of whole beats"),
    ([aw(beats=2), w(last=True)], "in cycle 1, wlast is 1 with 2 beats left"),
    ([aw(beats=1), w(last=False)], "in cycle 1, wlast is 0 with 1 beats left"),
    ([w(), {}], "in cycle 1, w changed before it was taken"),
    ([w(), w(strobes=1)], "in cycle 1, w changed before it was taken"),
])
def test_broken_rules_of_the_bus_are_noticed(make, driven, complaint):
    memory = make()
    for each in driven:
        assert memory.complaint == ""
        memory.cycle(**each)
    assert complaint in memory.complaint


@pytest.mark.parametrize("address", [ar, aw])
def test_an_address_that_changes_before_it_is_taken_is_noticed(make, address):
    memory = make(MemoryTiming(reads=1, writes=1))
    memory.cycle(**address())
    memory.cycle(**address())
    memory.cycle(**address())
    assert memory.complaint == ""
    memory.cycle(**address(address=BASE + 8))
    assert "changed before it was taken" in memory.complaint


def test_time_starts_anew_when_a_program_begins(make):
    memory = make(MemoryTiming(stalls=128, seed=3))
    first = [memory.cycle()["arready"] for _ in range(200)]
    memory.begin()
    assert [memory.cycle()["arready"] for _ in range(200)] == first
    memory.cycle(**aw())
    while not memory.cycle(**aw())["awready"]:
        pass
    assert memory.complaint == ""
    memory.begin()
    assert "a program began while transactions were under way" in memory.complaint


TIMINGS = [
    MemoryTiming(read_latency=1, write_latency=1),
    MemoryTiming(read_latency=7, write_latency=2, cycles_per_beat=3),
    MemoryTiming(read_latency=3, write_latency=9, shared=False, reads=2, writes=1),
    MemoryTiming(read_latency=4, write_latency=4, stalls=60, seed=11),
    MemoryTiming(read_latency=2, write_latency=3, cycles_per_beat=2, turn=4),
    MemoryTiming(read_latency=5, write_latency=1, turn=1, stalls=40, seed=3),
    MemoryTiming(read_latency=2, write_latency=3, turn=4, shared=False),
    MemoryTiming(read_latency=12, write_latency=6, stalls=200, seed=5, cycles_per_beat=2, reads=3),
    MemoryTiming(read_latency=2, write_latency=1, stalls=100, seed=9, shared=False,
                 cycles_per_beat=2)]


class RandomMaster:
    """Keeps the rules of the bus and is otherwise moody: valid and ready come and go."""

    def __init__(self, rng, bus_bytes):
        self.rng, self.bus_bytes = rng, bus_bytes
        self.ar = self.aw = self.w = None
        self.owed = []              # beats of each burst whose address was taken

    def address(self):
        beats = self.rng.choice((1, 1, 2, 3, 16))
        last = 4096 // self.bus_bytes - beats
        return self.rng.randrange(2), self.rng.randrange(last + 1) * self.bus_bytes, beats

    def choose(self, mood):
        """The signals of this cycle; what was shown and not taken stays."""
        self.ar = self.ar or (self.address() if self.rng.random() < mood else None)
        self.aw = self.aw or (self.address() if self.rng.random() < mood else None)
        if self.w is None and self.owed and self.rng.random() < 2 * mood:
            self.w = (self.rng.randbytes(self.bus_bytes), self.rng.getrandbits(self.bus_bytes))
        return {"rready": self.rng.random() < 2 * mood, "bready": self.rng.random() < 2 * mood}

    def signals(self):
        driven = {}
        for channel, value in (("ar", self.ar), ("aw", self.aw)):
            if value:
                name, address, beats = value
                driven |= {f"{channel}valid": 1, f"{channel}addr": BASE + address,
                           f"{channel}len": beats - 1, f"{channel}id": name}
        if self.w:
            driven |= {"wvalid": 1, "wdata": self.w[0], "wstrb": self.w[1],
                       "wlast": self.owed[0] == 1}
        return driven

    def settle(self, shown):
        """Let go of what was taken."""
        if self.w and shown["wready"]:
            self.w = None
            self.owed[0] -= 1
            if not self.owed[0]:
                del self.owed[0]
        if self.aw and shown["awready"]:
            self.owed.append(self.aw[2])
            self.aw = None
        if self.ar and shown["arready"]:
            self.ar = None


@pytest.mark.parametrize("bus_bytes", [8, 16, 32])
@pytest.mark.parametrize("timing", TIMINGS, ids=range(len(TIMINGS)))
def test_every_cycle_is_as_defined_under_random_traffic(make, timing, bus_bytes):
    rng = random.Random(bus_bytes)
    memory, master = make(timing, bus_bytes), RandomMaster(rng, bus_bytes)
    reference = ReferenceMemory(timing, bytearray(memory.data), bus_bytes)
    for cycle in range(3000):
        ready = master.choose(mood=0.5 if cycle // 500 % 2 else 0.1)
        shown = memory.cycle(**master.signals(), **ready)
        expected = reference.step(wvalid=master.w is not None, ar=master.ar, aw=master.aw,
                                  w=master.w, **ready)
        assert {name: shown[name] for name in expected} == expected, f"cycle {cycle}"
        master.settle(shown)
    assert bytes(memory.data) == bytes(reference.bytes)
    assert (memory.complaint, memory.strays) == ("", 0)
