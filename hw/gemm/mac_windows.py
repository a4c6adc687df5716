"""Dedicated multipliers for windows, where those of the array compute two products each."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.instructions import WINDOW_TAPS


def window_shape(config: Config):
    """The sum of three products."""
    return signed(config.inp_bits + config.wgt_bits + 2)


class WindowLanes(wiring.Component):
    """Adds up three products per lane: of this cycle and of the two before.

        inp × first ─► register ─► register ─┐
        inp × second ─► register ──────────► + ─► register ─┐
        inp × third ─► register ──────────────────────────► + ─► register ─► sums

    These are three cascaded DSP48E1, each with its adder. In the array, the two products of a
    multiplier are only available added to those of its neighbour, so they cannot be used here.

    Rate: operands in and sums out in every cycle. Latency: two cycles. Never stalls.

    Members
    -------
    inp : In(array of signed(inp_bits))
        Batch × block_in activations.
    wgt : In(array of arrays of signed(wgt_bits))
        For each tap, the weights of the lanes.
    sums : Out(array of window_shape)
        For each row of the batch, the results of the lanes.
    """

    def __init__(self, config: Config):
        self.config = config
        lanes = config.depthwise_lanes
        super().__init__({
            "inp": In(data.ArrayLayout(signed(config.inp_bits), config.batch * config.block_in)),
            "wgt": In(data.ArrayLayout(data.ArrayLayout(signed(config.wgt_bits), lanes),
                                       WINDOW_TAPS)),
            "sums": Out(data.ArrayLayout(window_shape(config), config.batch * lanes)),
        })

    def elaborate(self, platform):
        m = Module()
        lanes = self.config.depthwise_lanes
        for number in range(self.config.batch):
            for lane in range(lanes):
                act = self.inp[number * self.config.block_in + lane]
                before = 0
                for tap in range(WINDOW_TAPS):
                    name = f"{number}_{lane}_{tap}"
                    product = Signal(signed(self.config.inp_bits + self.config.wgt_bits),
                                     name=f"product_{name}", reset_less=True)
                    total = Signal(window_shape(self.config), name=f"sum_{name}", reset_less=True)
                    m.d.sync += [product.eq(act * self.wgt[tap][lane]), total.eq(before + product)]
                    before = total
                m.d.comb += self.sums[number * lanes + lane].eq(before)
        return m
