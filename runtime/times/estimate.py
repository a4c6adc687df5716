"""The CPU's half on another processor, estimated: operations × cycles per operation.

The figures per operation are rough: of compiled kernels on caches that mostly hit, with one core.
[The CPU's half](docs/cpu.md) says where they come from. An estimate is marked as one wherever it
is shown.
"""

from __future__ import annotations

import re

from ...base.checked_values import quote
from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ..models.compiled_model import CompiledModel, HostStep
from .host_times import Handover, HostTimes, NodeTime, Source, ports_of
from .operations import Operations, operations_of


@dataclass(frozen=True, kw_only=True)
class Processor:
    """Cycles that a processor takes for one operation of a kind, on one core."""

    name: str
    product: float              # of integers
    real_product: float
    element: float              # of integers
    real_element: float
    function: float             # of a real number, or by fixed point
    repacked_byte: float

    def cycles(self, work: Operations) -> float:
        """What a node takes."""
        product, element = ((self.real_product, self.real_element) if work.is_real else
                            (self.product, self.element))
        return work.products * product + work.elements * element + work.functions * self.function


PROCESSORS = {each.name: each for each in (
    # NEON: four floats every second cycle, bytes widened to 16 bits before they are multiplied.
    Processor(name="Cortex-A9", product=0.6, real_product=1.0, element=2, real_element=4,
              function=30, repacked_byte=3),
    Processor(name="Cortex-A53", product=0.5, real_product=0.6, element=1.5, real_element=3,
              function=25, repacked_byte=2.5),
    # No floats, and a small cache before SDRAM: all but `product` from simulations of a ULX3S.
    Processor(name="VexRiscv", product=8, real_product=1000, element=15, real_element=300,
              function=3700, repacked_byte=400),
    # Multiplies and shifts bit by bit: guessed, four times as slow.
    Processor(name="VexRiscv Lite", product=45, real_product=4000, element=40, real_element=1200,
              function=15000, repacked_byte=1600),
)}
FALLBACK = PROCESSORS["Cortex-A53"]     # for what cannot be measured, at FALLBACK_MHZ
FALLBACK_MHZ = 1000.0


def find_processor(text: str) -> Processor:
    """The processor in a board's words: "2 × Cortex-A9"."""
    name = re.sub(r"^\d+ × ", "", text)
    if name not in PROCESSORS:
        raise MicrotronError(f"nothing is known of how fast a processor {quote(text)} is; there "
                             f"are {', '.join(PROCESSORS)}")
    return PROCESSORS[name]


def estimate_times(model: CompiledModel, processor: Processor, mhz: float) -> HostTimes:
    """The CPU's half on a processor at a clock."""
    rate = mhz * 1e6
    nodes = {name: NodeTime(processor.cycles(operations_of(step.part, node)) / rate,
                            Source.ESTIMATED)
             for step in model.steps if isinstance(step, HostStep)
             for name, node in step.part.nodes.items()}
    handovers = tuple(
        Handover(port.tensor, number, to_accelerator, size, size * processor.repacked_byte / rate,
                 Source.ESTIMATED)
        for number, port, to_accelerator, size in ports_of(model))
    return HostTimes(processor=f"{processor.name} at {mhz:g} MHz", nodes=nodes,
                     handovers=handovers)
