"""Scratchpads as LOAD and STORE see them: memories behind the ports of `hw.interfaces`."""

import numpy as np

from microtron.isa.instructions import Buffer


class Fillable:
    """A scratchpad behind a fill port, as its interface describes it. `stall`: refusals; `spared`:
    where the memory is shared, the signal that nobody else wants the bank."""

    def __init__(self, bench, port, config, buffer, rng, stall=0.0, spared=None):
        self.bench, self.config, self.buffer, self.rng, self.stall = (
            bench, config, buffer, rng, stall)
        self.tile, self.bus = config.tile_bytes(buffer), config.bus_bytes
        self.content = np.frombuffer(rng.randbytes(
            max(config.tiles(buffer) * self.tile, self.bus)), np.uint8).copy()
        self.ready = bench.pin(port.ready if spared is None else spared)
        wanted = port.enable if spared is None else port.enable & port.banks.any()
        self.enable, self.index, self.part, self.whole, self.lanes, self.data, self.widen = map(
            bench.probe, (wanted, port.index, port.part, port.whole, port.lanes, port.data,
                          port.widen))
        self.written_at, self.tiles_written = [], set()

    def drive(self):
        self.ready.value = self.rng.random() >= self.stall

    def look(self):
        if self.enable.value and self.ready.value:
            self.written_at.append(self.bench.cycle)
            beat = np.frombuffer(self.data.value.to_bytes(self.bus, "little"), np.uint8)
            assert self.index.value < self.config.tiles(self.buffer)
            self.tiles_written.add(self.index.value)
            if self.buffer == Buffer.ACC:
                self._fill_accumulator(beat)
            elif self.tile < self.bus:
                self._fill_lanes(beat)
            else:
                start = self.index.value * self.tile + self.part.value * self.bus
                if self.whole.value:
                    start = self.index.value * self.tile
                    beat = np.tile(beat, self.tile // self.bus)
                assert self.part.value < self.tile // self.bus
                self.content[start:start + len(beat)] = beat

    def _fill_lanes(self, beat):
        lanes = self.bus // self.tile
        assert 0 < self.lanes.value < 1 << lanes
        word = self.index.value // lanes * self.bus
        for lane in range(lanes):
            if self.lanes.value >> lane & 1:
                self.tiles_written.add(self.index.value // lanes * lanes + lane)
                place = slice(lane * self.tile, (lane + 1) * self.tile)
                self.content[word:word + self.bus][place] = beat[place]

    def _fill_accumulator(self, beat):
        lane_type = "i1" if self.widen.value else "<i4"
        lanes = self.content.view("<i4").reshape(-1, self.tile // 4)[self.index.value]
        values = beat.view(lane_type)
        if self.whole.value:
            assert self.widen.value
            lanes[:] = beat.view("i1")[0]
        elif len(values) <= len(lanes):
            start = self.part.value * len(values)
            assert start + len(values) <= len(lanes)
            lanes[start:start + len(values)] = values
        else:
            chosen = self.lanes.value.bit_length() - 1
            assert self.lanes.value == 1 << chosen
            lanes[:] = values.reshape(-1, len(lanes))[chosen]


class Readable:
    """A scratchpad behind a read port. With `spared`, it is the accumulator, which answers a cycle
    later, and refuses reads at random."""

    def __init__(self, bench, port, config, buffer, rng, stall=0.0, spared=None):
        self.config, self.buffer, self.rng, self.stall = config, buffer, rng, stall
        self.tile, self.word = config.tile_bytes(buffer), len(port.data) // 8
        self.content = np.frombuffer(rng.randbytes(
            max(config.tiles(buffer) * self.tile, self.word)), np.uint8).copy()
        self.data = bench.pin(port.data)
        wanted = port.enable if spared is None else port.enable & port.banks.any()
        self.enable, self.index = bench.probe(wanted), bench.probe(port.index)
        self.granted = None if spared is None else bench.pin(spared)
        self.fetched = self.read = None

    def drive(self):
        if self.granted is not None:
            self.granted.value = self.rng.random() >= self.stall

    def look(self):
        if self.fetched is not None:
            self.data.value = self.fetched
        self.fetched, self.read = self.read, None
        if self.enable.value and (self.granted is None or self.granted.value):
            assert self.index.value < self.config.tiles(self.buffer)
            start = self.index.value * self.tile // self.word * self.word
            self.read = int.from_bytes(self.content[start:start + self.word].tobytes(), "little")
        if self.granted is None:
            self.fetched, self.read = self.read, None
