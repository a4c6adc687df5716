"""One inference from its inputs to its outputs: accelerator, CPU and hand-overs.

Nothing overlaps. At what clock the accelerator runs is stated, and so is where the CPU's times come
from.
"""

from __future__ import annotations

from ...base.classes.dataclass import dataclass
from ..clock import Clock
from .host_times import HostTimes


@dataclass(frozen=True, kw_only=True)
class EndToEnd:
    """The parts of one inference's time, and their sum."""

    clock: Clock
    cycles: int | None          # of the accelerator; None where there is no clock
    host: HostTimes
    macs: int                   # on the accelerator
    macs_per_cycle: int

    @property
    def accelerator_seconds(self) -> float | None:
        return None if self.cycles is None else self.clock.seconds(self.cycles)

    @property
    def seconds(self) -> float | None:
        """From the inputs to the outputs; nothing overlaps."""
        if self.accelerator_seconds is None:
            return None
        return self.accelerator_seconds + self.host.node_seconds + self.host.repack_seconds

    @property
    def accelerator_utilization(self) -> float | None:
        """Of the MAC array, while the accelerator runs."""
        return self.macs / (self.cycles * self.macs_per_cycle) if self.cycles else None

    @property
    def utilization(self) -> float | None:
        """Of the MAC array, in the whole time."""
        if not self.seconds:
            return None
        return self.macs / (self.seconds * self.clock.mhz * 1e6 * self.macs_per_cycle)

    def to_dict(self) -> dict[str, object]:
        """Plain data, fit for JSON."""
        host = self.host
        return {"clock_mhz": self.clock.mhz, "clock_source": self.clock.source,
                "accelerator_seconds": self.accelerator_seconds,
                "accelerator_utilization": self.accelerator_utilization,
                "cpu": host.processor, "cpu_seconds": host.node_seconds,
                "cpu_time_source": host.source.value,
                "handovers": len(host.handovers),
                "handover_bytes": sum(each.bytes for each in host.handovers),
                "repack_seconds": host.repack_seconds, "end_to_end_seconds": self.seconds,
                "end_to_end_utilization": self.utilization}
