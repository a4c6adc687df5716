"""The writer: bursts, beats and answers on a bus that takes and gives them as it likes."""

import random
from dataclasses import replace

import pytest

from microtron.hw.bus.writer import Writer
from microtron.isa.config import tiny

from ..bench import Bench
from ..simulate import kept
from ..transfer.transfers import Until
from .axi_memory import DECERR, EXOKAY, SLVERR, Dram, Window, Writes
from .test_reader import DRAM_BYTES, random_burst


class Writing:
    """Asks for bursts, sends their beats, takes answers, all at random times."""

    def __init__(self, bench, writer, bursts, rng, stall):
        self.bench, self.rng, self.stall = bench, rng, stall
        width = writer.config.bus_bytes
        self.bursts = list(bursts)
        self.beats = [(rng.getrandbits(8 * width), rng.choice((rng.getrandbits(width), -1))
                       & (1 << width) - 1) for _, beats in bursts for _ in range(beats)]
        self.valid, self.address, self.count = map(bench.pin, (
            writer.requests.valid, writer.requests.payload.address,
            writer.requests.payload.beats))
        self.offered, self.data, self.strobe = map(bench.pin, (
            writer.beats.valid, writer.beats.payload.data, writer.beats.payload.strobe))
        self.answer_taken, self.halt = bench.pin(writer.answers.ready), bench.pin(writer.halt)
        self.taken, self.beat_taken, self.answered, self.failed, self.quiet = map(bench.probe, (
            writer.requests.ready, writer.beats.ready, writer.answers.valid,
            writer.answers.payload, writer.quiet))
        self.requested, self.sent = 0, 0
        self.requested_at, self.sent_at, self.answers, self.answers_at = [], [], [], []

    def drive(self):
        if self.requested < len(self.bursts) and not self.valid.value \
                and self.rng.random() >= self.stall:
            self.valid.value = 1
            self.address.value, beats = self.bursts[self.requested]
            self.count.value = beats - 1
        if self.sent < len(self.beats) and not self.offered.value \
                and self.rng.random() >= self.stall:
            self.offered.value = 1
            self.data.value, self.strobe.value = self.beats[self.sent]
        self.answer_taken.value = self.rng.random() >= self.stall
        if self.halt.value:
            self.valid.value = self.offered.value = 0       # like an engine that was halted

    def look(self):
        if self.valid.value and self.taken.value:
            self.valid.value = 0
            self.requested += 1
            self.requested_at.append(self.bench.cycle)
        if self.offered.value and self.beat_taken.value:
            self.offered.value = 0
            self.sent += 1
            self.sent_at.append(self.bench.cycle)
        if self.answered.value and self.answer_taken.value:
            self.answers.append(self.failed.value)
            self.answers_at.append(self.bench.cycle)


def run(config, bursts, *, seed=0, stall=0.3, errors=None, halt_after=None, **memory):
    """Write the bursts. Returns the writing side, the bus, DRAM and what it held before."""
    rng = random.Random(seed)
    writer = kept(Writer, config)
    bench = Bench(writer)
    dram = Dram(bytearray(rng.randbytes(DRAM_BYTES)), [Window(0, DRAM_BYTES, True)], errors or {})
    before = bytearray(dram.content)
    bus = bench.add(Writes(bench, writer.bus, dram, rng, stall=stall, **memory))
    writing = bench.add(Writing(bench, writer, bursts, rng, stall))

    def over():
        writing.halt.value = halt_after is not None and bench.cycle >= halt_after
        assert not writing.quiet.value or bus.idle
        return writing.quiet.value and (writing.halt.value
                                        or len(writing.answers) == len(bursts))

    bench.add(Until(bench, over))
    bench.run()
    return writing, bus, dram, before


def write(content, bursts, beats, width):
    """DRAM after beats have been written to bursts in order."""
    content, beats = bytearray(content), iter(beats)
    for address, count in bursts:
        for at, (data, strobe) in zip(range(address, address + count * width, width), beats,
                                      strict=False):
            for number in range(width):
                if strobe >> number & 1:
                    content[at + number] = data >> 8 * number & 255
    return content


@pytest.mark.parametrize("bus_bits", [64, 128, 256])
@pytest.mark.parametrize("beats_first", [True, False])
def test_beats_reach_their_addresses_in_order(bus_bits, beats_first):
    rng, width = random.Random(bus_bits), bus_bits // 8
    bursts = [random_burst(rng, width) for _ in range(20)]
    config = replace(tiny, bus_bits=bus_bits, writes_in_flight=3)
    writing, bus, dram, before = run(config, bursts, beats_first=beats_first)
    assert dram.content == write(before, bursts, writing.beats, width)
    assert bus.bursts == bursts
    assert writing.answers == [0] * len(bursts)
    assert bus.most_pending == 3


def test_errors_of_both_kinds_are_answers_to_their_burst_and_exokay_is_none():
    bursts = [(0x100 * number, 4) for number in range(5)]
    errors = {0x108: SLVERR, 0x218: DECERR, 0x310: EXOKAY}
    writing, _, _, _ = run(tiny, bursts, errors=errors)
    assert writing.answers == [0, 1, 1, 0, 0]


def test_a_burst_and_a_beat_a_cycle_with_one_cycle_of_latency():
    bursts = [(64 * number, 1 + 7 * (number > 3)) for number in range(8)]
    writing, bus, _, _ = run(tiny, bursts, stall=0.0, latency=(16, 16))
    assert writing.requested_at == list(range(8))
    assert writing.sent_at == list(range(1, 1 + 36))
    assert bus.beats_at == list(range(2, 2 + 36))
    assert writing.answers_at == [each + 1 for each in bus.answers_at]


def test_a_halt_ends_bursts_with_beats_that_write_nothing():
    bursts = [(0x200 * number, 40) for number in range(20)]
    writing, bus, dram, before = run(tiny, bursts, halt_after=100)
    begun = bursts[:writing.requested]
    assert 0 < writing.sent < sum(beats for _, beats in begun)
    assert writing.requested < len(bursts)
    assert max(writing.requested_at + writing.sent_at) < 100
    assert bus.bursts == begun
    assert len(bus.beats_at) == sum(beats for _, beats in begun)
    assert dram.content == write(before, begun, writing.beats[:writing.sent], 8)
    assert len(writing.answers) == len(begun)
