"""Walks the loops of an instruction, one slot a cycle, without a bubble between instructions."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, ShapeLike, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..isa.config import INDEX_BITS
from ..isa.instructions import LOOPS, Gemm
from .layouts import widths_of

_WIDTHS = widths_of(Gemm)
LOOP_BITS, STRIDE_BITS = _WIDTHS["loops"], _WIDTHS["dst_stride"]


def offset_bits(tiles: int) -> int:
    """Bits of a signed offset that is exact as long as every index so far was inside.

    An index is `base + offset` with a base of INDEX_BITS bits and lies in `range(tiles)`, so a
    checked offset is above -2**INDEX_BITS and below `tiles`. The next one is a checked offset
    (that of the slot before, or of the slot with which a loop began) plus one stride. A unit
    that checks the slots in order and stops at the first index outside never sees one wrap.
    """
    stride = 1 << STRIDE_BITS - 1
    return (max(tiles, 1 << INDEX_BITS) + stride - 1).bit_length() + 1


def nest_layout(operands: Mapping[str, int], tag: ShapeLike) -> data.StructLayout:
    """Three loops around a sequence of `count` steps; `tag` is whatever travels with the slots."""
    walk = data.StructLayout({loop: signed(STRIDE_BITS) for loop in LOOPS})
    return data.StructLayout({
        "loops": data.StructLayout({loop: LOOP_BITS for loop in LOOPS}),
        "count": LOOP_BITS,
        "strides": data.StructLayout({operand: walk for operand in operands}),
        "tag": tag,
    })


def slot_layout(operands: Mapping[str, int], tag: ShapeLike) -> data.StructLayout:
    """One step of a nest.

    offsets     Σ counter × stride, by operand
    step        number of the step in the sequence
    first       the loops, and the sequence, that are in their first iteration
    last        the last slot of its nest
    empty       the only slot of a nest without iterations: it stands for no work
    """
    return data.StructLayout({
        "offsets": data.StructLayout({name: signed(bits) for name, bits in operands.items()}),
        "step": LOOP_BITS,
        "first": data.StructLayout({**{loop: 1 for loop in LOOPS}, "step": 1}),
        "last": 1,
        "empty": 1,
        "tag": tag,
    })


class Sequencer(wiring.Component):
    """Turns nests of loops into slots.

    The innermost iteration is a sequence of `count` steps that share their offsets; a user
    without sequences passes a count of 1. Offsets are sums kept for each loop, so no multiplier
    is needed.

    Rate: a slot a cycle while `slots` is ready. Latency: the first slot is valid in the cycle
    after its nest was taken. A nest is taken when none is held, or in the very cycle in which the
    last slot of the one before is taken, so consecutive nests have no bubble between them. A nest
    with a loop or a sequence of zero gives one slot, marked `empty`.

    Parameters
    ----------
    operands : by name, the bits of the offset (see `offset_bits`)
    tag : shape of what travels from a nest to each of its slots

    Members
    -------
    nests : In(stream of nest_layout)
        The loops of each instruction. Taken with the last slot of the nest before, or later.
    slots : Out(stream of slot_layout)
        The iterations of each nest, in order. One that is not taken stays.
    """

    def __init__(self, operands: Mapping[str, int], tag: ShapeLike):
        self.operands = dict(operands)
        self.nest = nest_layout(operands, tag)
        self.slot = slot_layout(operands, tag)
        super().__init__({
            "nests": In(stream.Signature(self.nest)),
            "slots": Out(stream.Signature(self.slot)),
        })

    def elaborate(self, platform):
        m = Module()
        running = Signal()                              # a nest is held
        empty = Signal(reset_less=True)                 # it has no iterations
        strides = Signal(self.nest["strides"].shape, reset_less=True)
        tag = Signal(self.nest["tag"].shape, reset_less=True)
        advance, taken, last = Signal(), Signal(), Signal()
        m.d.comb += [
            self.slots.valid.eq(running),
            advance.eq(running & self.slots.ready),
            self.nests.ready.eq(~running | (advance & last)),
            taken.eq(self.nests.valid & self.nests.ready),
        ]
        with m.If(advance):
            m.d.sync += running.eq(~last)
        with m.If(taken):
            nest = self.nests.payload
            m.d.sync += [running.eq(1), empty.eq(_has_no_iterations(nest)),
                         strides.eq(nest.strides), tag.eq(nest.tag)]

        done = self._count(m, advance, taken)
        m.d.comb += last.eq(empty | done["outer"])
        for name, bits in self.operands.items():
            offset = _walk(m, name, bits, strides[name], advance, done, taken)
            m.d.comb += self.slots.payload.offsets[name].eq(offset)
        m.d.comb += [self.slots.payload.last.eq(last), self.slots.payload.empty.eq(empty),
                     self.slots.payload.tag.eq(tag)]
        return m

    def _count(self, m, advance, taken):
        """The counters. Returns for each loop whether it, and all inside it, are at their end.

        A register `…_at_final` says in advance whether the counter has its last value: to compare
        first and then to add offsets would make the longest path of the accelerator.
        """
        slot, nest = self.slots.payload, self.nests.payload
        limits = {"step": nest.count, **{loop: nest.loops[loop] for loop in LOOPS}}
        inside, done = Const(1, 1), {}
        for name in ("step", *reversed(LOOPS)):         # from the inside out
            counter = Signal(LOOP_BITS, name=name, reset_less=True)
            final = Signal(LOOP_BITS, name=f"{name}_final", reset_less=True)    # its last value
            at_final = Signal(name=f"{name}_at_final", reset_less=True)
            m.d.comb += slot.first[name].eq(counter == 0)
            with m.If(taken):
                m.d.sync += [counter.eq(0), final.eq(limits[name] - 1),
                             at_final.eq(limits[name] == 1)]
            with m.Elif(advance & inside & at_final):
                m.d.sync += [counter.eq(0), at_final.eq(final == 0)]
            with m.Elif(advance & inside):
                m.d.sync += [counter.eq(counter + 1), at_final.eq(counter + 1 == final)]
            if name == "step":
                m.d.comb += slot.step.eq(counter)
            inside = done[name] = inside & at_final
        return done


def _has_no_iterations(nest):
    return (nest.count == 0) | Cat(nest.loops[loop] == 0 for loop in LOOPS).any()


def _walk(m, name, bits, strides, advance, done, taken):
    """The offset of one operand. Two more registers keep what it was when a loop began."""
    offset, of_inner, of_middle = (Signal(signed(bits), name=f"{name}_{part}", reset_less=True)
                                   for part in ("offset", "of_inner", "of_middle"))
    # `of_inner` is the offset in the first iteration of the inner loop, from where the middle
    # loop steps; `of_middle` in the first of the middle loop, from where the outer loop steps.
    outer, middle, inner = done["middle"], done["inner"], done["step"]      # which loop steps
    base = Mux(outer, of_middle, Mux(middle, of_inner, offset))
    stride = Mux(outer, strides.outer, Mux(middle, strides.middle, strides.inner))
    moved = Signal(signed(bits), name=f"{name}_moved")
    m.d.comb += moved.eq(base + stride)
    for register, steps in ((offset, inner), (of_inner, middle), (of_middle, outer)):
        with m.If(taken):
            m.d.sync += register.eq(0)
        with m.Elif(advance & steps):
            m.d.sync += register.eq(moved)
    return offset
