"""An SDR memory chip as its data sheet has it, which fails a test when it is used otherwise.

It knows nothing of our controller: commands are told apart and timed here once more, in
nanoseconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

ACTIVATE, READ, WRITE, PRECHARGE, REFRESH, SET_MODE = 0b100, 0b010, 0b011, 0b101, 0b110, 0b111
ALL_BANKS = 1 << 10
READ_MASK_LATENCY = 2           # cycles from a mask to the data that it hides


@dataclass(frozen=True, kw_only=True)
class Times:
    """Nanoseconds."""

    period: float
    row_to_column: float
    precharge: float
    row_open: float
    write_recovery: float
    refresh: float
    refresh_interval: float
    start: float


@dataclass
class Sdram:
    """`latency` is what its mode must be set to. `cycle` gets what is on its wires."""

    times: Times
    data_bits: int
    latency: int
    rng: random.Random
    content: dict[tuple[int, int, int], int] = field(default_factory=dict)  # bank, row, column

    def __post_init__(self) -> None:
        self.now = 0                            # cycles since power-on
        self.refreshes = 0
        self.closed_all = self.ready = False    # in the course of the start
        self.open: dict[int, int] = {}          # bank: row
        self.last: dict[str, int] = {}          # the cycle of a command
        self.shown: dict[int, int] = {}         # cycle: data
        self.masks: dict[int, int] = {}
        self.counts: dict[int, int] = {}

    def cycle(self, command: int, bank: int, address: int, mask: int, data: int,
              drives: int) -> int:
        """A clock edge of the chip. Returns what it shows at the next one."""
        self.masks[self.now] = mask
        assert not (drives and self.now in self.shown), "both sides drive the data"
        assert bool(drives) == (command == WRITE)
        if command:
            self.counts[command] = self.counts.get(command, 0) + 1
            {ACTIVATE: self._activate, READ: self._read, WRITE: self._write,
             PRECHARGE: self._precharge, REFRESH: self._refresh,
             SET_MODE: self._set_mode}[command](bank, address, mask, data)
        if self.ready:
            late = (self.now - self.last["refresh"]) * self.times.period
            assert late <= self.times.refresh_interval, f"no refresh for {late:.0f} ns"
        self.now += 1
        return self._output()

    def _output(self) -> int:
        nonsense = self.rng.getrandbits(self.data_bits)
        if self.now not in self.shown:
            return nonsense
        hidden = self.masks.get(self.now - READ_MASK_LATENCY, 0)
        kept = sum(255 << 8 * lane for lane in range(self.data_bits // 8)
                   if not hidden >> lane & 1)
        return self.shown[self.now] & kept | nonsense & ~kept

    def _after(self, name: str, nanoseconds: float) -> None:
        if name in self.last:
            passed = (self.now - self.last[name]) * self.times.period
            assert passed >= nanoseconds - 1e-6, f"{passed:.1f} of {nanoseconds} ns after {name}"

    def _at_rest(self) -> None:
        """What a command to the whole chip must wait for."""
        assert not self.open, "a row is open"
        self._after("precharge", self.times.precharge)
        self._after("refresh", self.times.refresh)
        self._after("mode", 2 * self.times.period)

    def _activate(self, bank: int, row: int, mask: int, data: int) -> None:
        assert self.ready, "not started"
        assert bank not in self.open, "a row of the bank is open"
        self._after("precharge", self.times.precharge)
        self._after("refresh", self.times.refresh)
        self._after("mode", 2 * self.times.period)
        self._after(f"activate {bank}", self.times.row_open + self.times.precharge)
        self.open[bank] = row
        self.last[f"activate {bank}"] = self.now

    def _place(self, bank: int, address: int) -> tuple[int, int, int]:
        assert bank in self.open, "no row of the bank is open"
        assert not address & ALL_BANKS, "a row would be closed behind the word"
        self._after(f"activate {bank}", self.times.row_to_column)
        return bank, self.open[bank], address

    def _read(self, bank: int, address: int, mask: int, data: int) -> None:
        place = self._place(bank, address)
        self.shown[self.now + self.latency] = self.content.get(place, 0)

    def _write(self, bank: int, address: int, mask: int, data: int) -> None:
        place = self._place(bank, address)
        word = self.content.get(place, 0)
        for lane in range(self.data_bits // 8):
            if not mask >> lane & 1:
                word = word & ~(255 << 8 * lane) | data & 255 << 8 * lane
        self.content[place] = word
        self.last["write"] = self.now

    def _precharge(self, bank: int, address: int, mask: int, data: int) -> None:
        assert address & ALL_BANKS
        assert self.now * self.times.period >= self.times.start, "power is not stable yet"
        for each in self.open:
            self._after(f"activate {each}", self.times.row_open)
        self._after("write", self.times.write_recovery)
        self.open.clear()
        self.closed_all = True
        self.last["precharge"] = self.now

    def _refresh(self, bank: int, address: int, mask: int, data: int) -> None:
        assert self.closed_all
        self._at_rest()
        self.refreshes += 1
        self.last["refresh"] = self.now

    def _set_mode(self, bank: int, address: int, mask: int, data: int) -> None:
        self._at_rest()
        assert self.refreshes >= 8
        assert (bank, address) == (0, self.latency << 4), "not single words with this latency"
        self.ready = True
        self.last["mode"] = self.now


def connect(chip: Sdram, pins: object) -> Callable[[object], object]:
    """A testbench that is the chip on a controller's pins."""
    async def run(ctx):         # type: ignore[no-untyped-def]
        outputs = (pins.command, pins.bank, pins.address, pins.mask, pins.data, pins.drives)
        while True:
            *_, command, bank, address, mask, data, drives = await ctx.tick().sample(*outputs)
            ctx.set(pins.data_in, chip.cycle(command, bank, address, mask, data, drives))

    return run
