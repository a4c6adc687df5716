"""The reset of both sides of a crossing: each sees the other one in reset before it leaves."""

from collections.abc import Callable

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import Component, In, Out

RESET_STAGES = 3


def synchronize_reset(i: Value, o: Value, domain: str) -> Elaboratable:
    """As queues do, a stage longer, and high at first."""
    return FFSynchronizer(i, o, o_domain=domain, init=1, stages=RESET_STAGES)


class ResetCrossing(Component):
    """Makes a reset of two domains out of a request in one of them, however short.

        request ──▶ ┌──────┐ ──▶ three stages ──▶ accelerator's reset ─┐
                    │ held │                                           │
                    └──────┘ ◀──────────── seen ◀──── three stages ◀───┘

    The system's side is in reset first and leaves it last. In between, both are for more cycles
    than pointers of queues take to cross. Without a clock of the accelerator, reset stays.

    Members
    -------
    request : In(1)
        In the domain `system`, whose own reset does not matter here.
    system_reset : Out(1)
        In the same domain, from the cycle of the request on.
    accelerator_reset : Out(1)
        In the domain `accelerator`, from a register.
    """

    def __init__(self, synchronizer: Callable[[Value, Value, str],
                                              Elaboratable] = synchronize_reset):
        self.synchronizer = synchronizer
        super().__init__({"request": In(1), "system_reset": Out(1), "accelerator_reset": Out(1)})

    def elaborate(self, platform):
        m = Module()
        held, seen = Signal(init=1, reset_less=True), Signal(init=1)
        m.submodules.there = self.synchronizer(held, self.accelerator_reset, "accelerator")
        m.submodules.back = self.synchronizer(self.accelerator_reset, seen, "system")
        m.d.comb += self.system_reset.eq(self.request | held | seen)
        with m.If(self.request):
            m.d.system += held.eq(1)
        with m.Elif(seen):
            m.d.system += held.eq(0)
        return m
