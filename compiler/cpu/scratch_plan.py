"""Where scratch buffers lie: those that are needed at the same time, apart from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base.classes.dataclass import dataclass
from ..nest.nest import Buffer
from .code.emit_kernel import Kernel
from .kernels import bytes_of

ALIGNED = 64                # bytes: a cache line


@dataclass(frozen=True)
class Plan:
    """Offsets of buffers in one piece of memory."""

    offsets: Mapping[Buffer, int]
    size: int


def plan_scratch(kernels: Sequence[Kernel], scratch: Sequence[Buffer]) -> Plan:
    """A place for each buffer, the largest first, from its first use to its last."""
    spans = {buffer: _span(kernels, buffer) for buffer in scratch}
    offsets: dict[Buffer, int] = {}
    for buffer in sorted(scratch, key=lambda each: -bytes_of(each)):
        first, last = spans[buffer]
        taken = sorted((offsets[each], offsets[each] + _aligned_size(each)) for each in offsets
                       if spans[each][0] <= last and first <= spans[each][1])
        place = 0
        for start, end in taken:
            if place + _aligned_size(buffer) <= start:
                break
            place = max(place, end)
        offsets[buffer] = place
    size = max((offset + _aligned_size(buffer) for buffer, offset in offsets.items()), default=0)
    return Plan(offsets, size)


def _span(kernels: Sequence[Kernel], buffer: Buffer) -> tuple[int, int]:
    """The first and the last kernel that use a buffer."""
    uses = [number for number, kernel in enumerate(kernels) if buffer in kernel.buffers]
    return (uses[0], uses[-1]) if uses else (0, 0)


def _aligned_size(buffer: Buffer) -> int:
    return -(-bytes_of(buffer) // ALIGNED) * ALIGNED
