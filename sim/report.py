"""The report of a run: work, cycles and counters, as an object, as JSON and as a row of a table."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from ..base.notebooks.html_table import html_table
from ..isa.config import Config
from ..isa.instructions import Buffer
from ..isa.memory_timing import MemoryTiming
from .counts import Counts
from .timeline import Timeline

LOADED = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8)
STORED = (Buffer.OUT, Buffer.ACC)


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run of a program on a device. Equal runs have equal reports."""

    device: str
    config: Config
    counts: Counts
    memory: MemoryTiming | None = None      # None, like cycles, if the device has no clock
    cycles: int | None = None
    counters: dict[str, int] = field(default_factory=dict)  # by isa.registers.counter_names()
    timeline: Timeline | None = field(default=None, compare=False, repr=False)
    name: str = field(default="", compare=False)        # of its job

    @property
    def macs(self) -> int:
        return self.counts.macs

    @property
    def bytes(self) -> int:
        """Data moved to and from DRAM; instructions are not counted."""
        return sum(self.counts.bytes_loaded.values()) + sum(self.counts.bytes_stored.values())

    @property
    def utilization(self) -> float | None:
        """Multiplications as a fraction of the array's peak in the same time."""
        if self.cycles is None:
            return None
        return self.macs / (self.cycles * self.config.macs_per_cycle)

    def _repr_html_(self) -> str:
        """In a notebook: cost, work and counters as a table."""
        cost = [] if self.cycles is None else [("cycles", f"{self.cycles:,}"),
                                               ("utilization", f"{self.utilization or 0:.1%}")]
        work = [("multiply-adds", f"{self.macs:,}"),
                ("ALU vectors", f"{self.counts.alu_vectors:,}"),
                ("bytes moved", f"{self.bytes:,}")]
        counters = [(name, f"{number:,}") for name, number in self.counters.items()]
        return html_table(f"{self.name or 'A run'} on the {self.device} device",
                          ("what", "how much"), [*cost, *work, *counters])

    def to_dict(self) -> dict[str, object]:
        """Everything but the timeline, as JSON values."""
        return {"device": self.device, "config": self.config.to_dict(),
                "memory": None if self.memory is None else dataclasses.asdict(self.memory),
                "counts": self.counts.to_dict(), "cycles": self.cycles,
                "utilization": self.utilization, "counters": dict(self.counters)}

    def to_row(self) -> dict[str, int | float | str]:
        """Plain numbers and strings by column, for pandas.DataFrame(rows) or
        pyarrow.Table.from_pylist(rows): program and device, then work, then cost.

        Runs on the same kind of device have the same columns, in the same order.
        """
        counts = self.counts
        row: dict[str, int | float | str] = {"name": self.name, "device": self.device}
        row |= {f"config_{name}": value for name, value in self.config.to_dict().items()}
        if self.memory is not None:
            row |= {f"memory_{name}": int(value)
                    for name, value in dataclasses.asdict(self.memory).items()}
        row |= {f"count_{name}": number for name, number in counts.instructions.items()}
        row |= {"tile_products": counts.tile_products, "macs": counts.macs,
                "alu_vectors": counts.alu_vectors, "bytes": self.bytes}
        row |= {f"loaded_{name}": counts.bytes_loaded.get(name, 0) for name in _names(LOADED)}
        row |= {f"stored_{name}": counts.bytes_stored.get(name, 0) for name in _names(STORED)}
        if self.cycles is not None and self.utilization is not None:
            row |= {"cycles": self.cycles, "utilization": self.utilization}
        return row | self.counters


def _names(buffers: tuple[Buffer, ...]) -> list[str]:
    return [buffer.name.lower() for buffer in buffers]
