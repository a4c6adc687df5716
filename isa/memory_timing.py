"""How memory behaves in time: one definition for the simulator and for the hardware's harness.

The memory is an AXI slave that decides everything from its own state, in this order, each cycle:

1. A channel is stalled with probability `stalls` / 256, by a hash of seed, cycle and channel.
2. Read addresses are taken while fewer than `reads` bursts wait, write addresses while fewer than
   `writes` bursts are unanswered, unless the channel is stalled.
3. The first beat of a burst of reads may be shown `read_latency` cycles after its address was
   taken, one beat after the other, bursts in the order of their addresses whatever their ids.
   A beat that is shown stays until it is taken.
4. A beat of writes may be taken once its address has been taken in an earlier cycle.
5. Every beat that is newly shown or taken occupies the bus for `cycles_per_beat` cycles; if the
   bus is `shared`, reads and writes occupy the same one, and when both want it in the same cycle,
   the kind that had it last gives way. Then a beat of the other kind than the last one occupies it
   for `turn` cycles more.
6. The answer to a burst of writes may be shown `write_latency` cycles after its last beat was
   taken, in order, and stays until it is taken.

Reads see memory as it is when a beat is shown, before a write of the same cycle; writes change it
when a beat is taken. Cycle 0 is the first one in which a program runs, and the memory is at rest
then. A burst of reads waits until its last beat is taken, one of writes is unanswered until its
answer is taken, both as of the beginning of a cycle. If nobody has had the bus yet, writes count as
the last.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import Any

from ..base.checked_values import integer, quote
from ..base.classes.dataclass import dataclass
from ..base.errors import ConfigError
from ..base.keywords import KeywordsChecked


class Channel(IntEnum):
    """The five channels, as the stall hash numbers them."""

    READ_ADDRESS = 0
    READ_DATA = 1
    WRITE_ADDRESS = 2
    WRITE_DATA = 3
    WRITE_RESPONSE = 4


def setting(default: int, low: int, high: int, doc: str) -> int:
    """A number from `low` to `high`, with its line of documentation."""
    return dataclasses.field(default=default, metadata={"doc": doc, "range": (low, high)})


def choice(default: bool, doc: str) -> bool:
    return dataclasses.field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, kw_only=True)
class MemoryTiming(KeywordsChecked):
    """Timing of the DRAM behind the accelerator, for the simulator and the RTL alike.

    The defaults are the reference system: one beat a cycle, 32 cycles of read latency.
    """

    read_latency: int = setting(32, 1, 10_000, "cycles from a read's address to its first beat")
    write_latency: int = setting(16, 1, 10_000, "cycles from a write's last beat to its answer")
    cycles_per_beat: int = setting(1, 1, 64, "cycles a beat occupies the bus")
    turn: int = setting(0, 0, 64, "cycles more when a shared bus turns between reads and writes")
    reads: int = setting(32, 1, 64, "bursts of reads that may wait")
    writes: int = setting(16, 1, 64, "bursts of writes that may be unanswered")
    shared: bool = choice(True, "reads and writes share the bus")
    stalls: int = setting(0, 0, 250, "chance in 256 that a channel stalls in a cycle")
    seed: int = setting(0, 0, (1 << 63) - 1, "of the stalls")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if "range" not in field.metadata:
                if not isinstance(value, bool):
                    raise ConfigError(f"memory: {field.name} is {quote(value)}, but must be True "
                                      f"or False")
                continue
            (low, high), number = field.metadata["range"], integer(value)
            if number is None or not low <= number <= high:
                raise ConfigError(f"memory: {field.name} is {quote(value)}, but must be an "
                                  f"integer from {low} to {high}")
            object.__setattr__(self, field.name, number)


def parse_timing(text: str) -> MemoryTiming:
    """A timing given as `read_latency=64,stalls=20`; what is left out keeps its default."""
    fields = {field.name: field for field in dataclasses.fields(MemoryTiming)}
    chosen: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in fields:
            raise ConfigError(f"memory: there is no {quote(name)}; there are {', '.join(fields)}")
        if name in chosen:
            raise ConfigError(f"memory: {name} is given twice")
        try:
            chosen[name] = int(value, 0)
        except ValueError:
            raise ConfigError(f"memory: {name} is {quote(value)}, but must be a number") from None
        if "range" not in fields[name].metadata:
            if chosen[name] not in (0, 1):
                raise ConfigError(f"memory: {name} is {quote(value)}, but must be 0 or 1")
            chosen[name] = bool(chosen[name])
    return MemoryTiming(**chosen)


HASH_STEP = 0x9E3779B97F4A7C15      # splitmix64: a counter, well mixed
HASH_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
MASK = (1 << 64) - 1


def is_stalled(timing: MemoryTiming, cycle: int, channel: int) -> bool:
    """Whether a channel stalls in a cycle, counted from the reset. The definition, in plain
    integers; the harness and the simulator translate it."""
    value = (timing.seed + (cycle * len(Channel) + channel + 1) * HASH_STEP) & MASK
    value = ((value ^ value >> 30) * HASH_MIX[0]) & MASK
    value = ((value ^ value >> 27) * HASH_MIX[1]) & MASK
    return (value ^ value >> 31) & 255 < timing.stalls
