"""Cuts bursts of AXI4 into pieces that AXI3 can say."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from ...hw.interfaces import BURST_BEATS_BITS
from ..facts.zynq7000 import ADDRESS_BITS, MEMORY_BITS
from .axi3 import LENGTH_BITS, MOST_BEATS

PAGE_BITS = 12              # no burst crosses 4 KiB, so addresses only change in these bits
BEAT_BITS = exact_log2(MEMORY_BITS // 8)

BURST = data.StructLayout({"address": ADDRESS_BITS, "beats": BURST_BEATS_BITS, "id": 1})
PIECE = data.StructLayout({"address": ADDRESS_BITS, "beats": LENGTH_BITS, "id": 1, "final": 1})


class BurstSplitter(Component):
    """Cuts each burst into pieces of 16 beats and a last one with the rest.

    Rate: a piece a cycle. Latency: none; a piece is shown in the cycle in which its burst is.
    A burst is taken together with its last piece.

    Members
    -------
    bursts : In(stream of BURST)
        Whole beats, incrementing, inside 4 KiB. `beats` is one less than their number.
    pieces : Out(stream of PIECE)
        The same beats in the same order. `final` marks the last piece of a burst.
    """

    def __init__(self):
        super().__init__({"bursts": In(stream.Signature(BURST)),
                          "pieces": Out(stream.Signature(PIECE))})

    def elaborate(self, platform):
        m = Module()
        burst, piece = self.bursts.payload, self.pieces.payload
        number = Signal(BURST_BEATS_BITS - LENGTH_BITS)     # of the piece in its burst
        beat = Signal(PAGE_BITS - BEAT_BITS)                # of the page, at which it begins
        m.d.comb += [
            beat.eq(burst.address[BEAT_BITS:PAGE_BITS] + (number << LENGTH_BITS)),
            piece.address.eq(Cat(burst.address[:BEAT_BITS], beat, burst.address[PAGE_BITS:])),
            piece.final.eq(number == burst.beats[LENGTH_BITS:]),
            piece.beats.eq(Mux(piece.final, burst.beats[:LENGTH_BITS], MOST_BEATS - 1)),
            piece.id.eq(burst.id),
            self.pieces.valid.eq(self.bursts.valid),
            self.bursts.ready.eq(self.pieces.ready & piece.final),
        ]
        with m.If(self.pieces.valid & self.pieces.ready):
            m.d.sync += number.eq(Mux(piece.final, 0, number + 1))
        return m
