"""Iterates over the loops of instructions, one slot a cycle, without bubbles in between."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..isa.config import INDEX_BITS
from ..isa.instructions import LOOPS, Gemm
from .layouts import widths_of
from .logic import count_down

_WIDTHS = widths_of(Gemm)
LOOP_BITS, STRIDE_BITS = _WIDTHS["loops"], _WIDTHS["dst_stride"]


def offset_bits(tiles: int) -> int:
    """Bits of a signed offset that is exact as long as every index so far was in range.

    An index is `base + offset` with a base of INDEX_BITS bits and lies in `range(tiles)`, so a
    checked offset is above -2**INDEX_BITS and below `tiles`. The next one is a checked offset (that
    of the slot before, or of the slot with which a loop began) plus one stride. A unit that checks
    the slots in order and stops at the first index out of range never sees one wrap. Where the base
    is included already, `logic.narrow` ones do.
    """
    stride = 1 << STRIDE_BITS - 1
    return (max(tiles, 1 << INDEX_BITS) + stride - 1).bit_length() + 1


def nest_layout(operands: Mapping[str, int], tag: ShapeLike, *, steps: bool) -> data.StructLayout:
    """Three nested loops, with `steps` around a sequence of `count` steps; `tag` is passed on to
    the slots. Each operand steps from its base; neither that nor its strides have more bits than
    its index. `announces`: slots mark where an iteration of the outer loop begins. `once` and
    `never`: which of the counts are one, and which zero."""
    walks = {operand: data.StructLayout({loop: signed(min(STRIDE_BITS, bits)) for loop in LOOPS})
             for operand, bits in operands.items()}
    return data.StructLayout({
        "loops": data.StructLayout({loop: LOOP_BITS for loop in LOOPS}),
        **({"count": LOOP_BITS} if steps else {}),
        "bases": data.StructLayout({operand: min(INDEX_BITS, bits)
                                    for operand, bits in operands.items()}),
        "strides": data.StructLayout(walks),
        "announces": 1,
        **judgement_layout(steps=steps),
        "tag": tag,
    })


def judgement_layout(*, steps: bool) -> dict[str, data.StructLayout]:
    """The classification of a nest's counts."""
    of_levels = data.StructLayout({level: 1 for level in _levels(steps)})
    return {"once": of_levels, "never": of_levels}


def judge_counts(nest: data.View, counts: Mapping[str, Value]) -> list:
    """Drive the classification of a nest's counts."""
    return [*(nest.once[level].eq(count == 1) for level, count in counts.items()),
            *(nest.never[level].eq(count == 0) for level, count in counts.items())]


def slot_layout(operands: Mapping[str, int], tag: ShapeLike, *, steps: bool) -> data.StructLayout:
    """One iteration of a nest or, with `steps`, one step of the sequence in it.

    at          base + Σ counter × stride, for each operand
    step        number of the step in the sequence, if there are sequences
    first       the loops, and the sequence, that are in their first iteration
    begins      an iteration of the outer loop begins, of a nest that `announces` them
    last        the last slot of its nest
    empty       the only slot of a nest without iterations: no work
    """
    return data.StructLayout({
        "at": data.StructLayout({name: signed(bits) for name, bits in operands.items()}),
        **({"step": LOOP_BITS} if steps else {}),
        "first": data.StructLayout({level: 1 for level in _levels(steps)}),
        "begins": 1,
        "last": 1,
        "empty": 1,
        "tag": tag,
    })


def _counts(nest):
    """The counts, innermost first."""
    sequence = {"step": nest.count} if "count" in nest.shape().members else {}
    return sequence | {loop: nest.loops[loop] for loop in reversed(LOOPS)}


def _levels(steps):
    """The counters, innermost first."""
    return (*(("step",) if steps else ()), *reversed(LOOPS))


class Sequencer(wiring.Component):
    """Turns nests of loops into slots.

    With `steps`, the innermost iteration is a sequence of steps at the same indices. Indices are
    updated incrementally, so no multiplier is needed.

    Rate: a slot a cycle while `slots` is ready. Latency: the first slot is valid in the cycle after
    its nest was taken. A nest is taken when none is held, or in the cycle in which the last slot of
    the previous one is taken, so there is no bubble between nests. A nest with a count of zero
    gives one slot, marked `empty`.

    Parameters
    ----------
    operands : by name, the bits of the index (see `offset_bits` and `logic.narrow`)
    tag : shape of the data passed from a nest to each of its slots
    steps : whether the innermost iteration is a sequence

    Members
    -------
    nests : In(stream of nest_layout)
        The loops of each instruction. Taken with the last slot of the previous nest, or later.
    slots : Out(stream of slot_layout)
        The iterations of each nest, in order. One that is not taken stays.
    takes : In(1)
        A copy of `slots.ready`, which has a fan-out of hundreds; this one only decides whether a
        nest is taken.
    stops : In(1)
        No nest is taken from the next cycle on, if `takes` is low then and stays low.
    continues : Out(1)
        The inverse of the slot's `begins`, from its own register, for the logic that drives
        `takes`.
    """

    def __init__(self, operands: Mapping[str, int], tag: ShapeLike, *, steps: bool):
        self.operands, self.steps = dict(operands), steps
        self.nest = nest_layout(operands, tag, steps=steps)
        self.slot = slot_layout(operands, tag, steps=steps)
        super().__init__({
            "nests": In(stream.Signature(self.nest)),
            "slots": Out(stream.Signature(self.slot)),
            "takes": In(1, init=1), "continues": Out(1), "stops": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        running, idle = Signal(), Signal(init=1)        # a nest is held; none is
        self.vacant = Signal(init=1)                    # none is, with low fan-out
        empty = Signal(reset_less=True)                 # it has no iterations
        strides = Signal(self.nest["strides"].shape, reset_less=True)
        tag = Signal(self.nest["tag"].shape, reset_less=True)
        renew, prepares, last = Signal(), Signal(), Signal()
        advance = self.slots.ready      # to the next slot; `renew` has priority
        # As with `takes` and `idle`: keeps the start's critical path apart from large fan-outs.
        self.unfinished = Signal(reset_less=True)       # the inverse of `last`
        nest = self.nests.payload
        m.d.comb += [
            self.slots.valid.eq(running),
            renew.eq(~running | (self.slots.ready & last)),
            self.nests.ready.eq(idle | (self.takes & ~self.unfinished)),
        ]
        # `nests.valid` arrives late and enables one register only; the others load unconditionally.
        # Registers that only serve to advance to the next slot are not needed in the last one, and
        # may load before that is taken.
        m.d.comb += prepares.eq(~running | last)
        with m.If(self.nests.ready):
            m.d.sync += [running.eq(self.nests.valid), idle.eq(~self.nests.valid),
                         self.vacant.eq(~self.nests.valid)]
        with m.If(self.stops):
            m.d.sync += idle.eq(0)
        with m.If(renew):
            m.d.sync += [tag.eq(nest.tag), empty.eq(Value.cast(nest.never).any())]
        with m.If(prepares):
            m.d.sync += strides.eq(nest.strides)

        done = self._count(m, nest, advance, renew, prepares, last)
        for name, bits in self.operands.items():
            place = self._walk(m, name, bits, strides[name], advance, done, renew, prepares)
            m.d.comb += self.slots.payload.at[name].eq(place)
        m.d.comb += [self.slots.payload.last.eq(last), self.slots.payload.empty.eq(empty),
                     self.slots.payload.tag.eq(tag)]
        return m

    def _count(self, m, nest, advance, renew, prepares, last):
        """The counters, and `last`. Returns `done[loop]` for each loop: everything inside it is at
        its end, so that it steps.

        Registers tell in advance where a counter has its first, its last or its second to last
        value, which loop steps, and which slot is the last: comparing and then stepping in one
        cycle would be the critical path of the accelerator.
        """
        slot, once = self.slots.payload, Value.cast(nest.once)
        done, final = {}, []
        for number, (name, count) in enumerate(_counts(nest).items()):
            done[name] = inside = Signal(name=f"{name}_steps", reset_less=True)
            with m.If(prepares):
                m.d.sync += inside.eq(once[:number].all())
            with m.Elif(advance):
                m.d.sync += inside.eq(Cat(final).all())
            limit, left = (Signal(LOOP_BITS, name=f"{name}_{part}", reset_less=True)
                           for part in ("limit", "left"))       # left: this iteration included
            at_first, at_final, before_final, single, double = (
                Signal(name=f"{name}_{part}", reset_less=True)
                for part in ("at_first", "at_final", "before_final", "single", "double"))
            will_be_final = Mux(at_final, single, before_final)
            m.d.comb += slot.first[name].eq(at_first)
            with m.If(prepares | (advance & inside)):
                loads = self.vacant | last              # as `prepares`
                m.d.sync += left.eq(count_down(left, loads | at_final, Mux(loads, count, limit)))
            with m.If(prepares):
                m.d.sync += [limit.eq(count), at_final.eq(nest.once[name]),
                             single.eq(nest.once[name]), double.eq(count == 2),
                             before_final.eq(count == 2)]
            with m.Elif(advance & inside):
                m.d.sync += [at_final.eq(will_be_final),
                             before_final.eq(Mux(at_final, double, left == 3))]
            with m.If(renew):
                m.d.sync += at_first.eq(1)
            with m.Elif(advance & inside):
                m.d.sync += at_first.eq(at_final)
            final.append(Mux(inside, will_be_final, at_final))
        begins, at_last, announces = (Signal(name=name, reset_less=True)
                                      for name in ("begins", "at_last", "announces"))
        not_begins = Signal(init=1, reset_less=True)
        m.d.comb += [last.eq(at_last), slot.begins.eq(begins)]
        m.d.comb += self.continues.eq(not_begins)
        with m.If(self.nests.ready):
            never = Value.cast(nest.never).any()
            only = once.all() | never
            m.d.sync += [announces.eq(nest.announces), begins.eq(nest.announces & ~never),
                         not_begins.eq(~nest.announces | never),
                         at_last.eq(only), self.unfinished.eq(~only)]
        with m.Elif(self.takes):
            m.d.sync += [begins.eq(announces & done["outer"]),
                         not_begins.eq(~announces | ~done["outer"]), at_last.eq(Cat(final).all()),
                         self.unfinished.eq(~Cat(final).all())]
        if self.steps:
            self._number(m, advance, renew, done["inner"])
        return done

    def _number(self, m, advance, renew, sequence_ends):
        """The number of the step in its sequence."""
        step = Signal(LOOP_BITS, reset_less=True)
        m.d.comb += self.slots.payload.step.eq(step)
        with m.If(renew | (advance & sequence_ends)):
            m.d.sync += step.eq(0)
        with m.Elif(advance):
            m.d.sync += step.eq(step + 1)

    def _walk(self, m, name, bits, strides, advance, done, renew, prepares):
        """The index of one operand. Two more registers hold its value at the start of a loop."""
        place, of_inner, of_middle = (Signal(signed(bits), name=f"{name}_{part}", reset_less=True)
                                      for part in ("at", "of_inner", "of_middle"))
        # `of_inner` is the index in the first iteration of the inner loop, from which the middle
        # loop steps; `of_middle` that in the first of the middle loop, from which the outer loop
        # steps.
        outer, middle, inner = (done[loop] for loop in LOOPS)       # which loop steps
        start = Mux(outer, of_middle, Mux(middle, of_inner, place))
        stride = Mux(outer, strides.outer, Mux(middle, strides.middle, strides.inner))
        moved = Signal(signed(bits), name=f"{name}_moved")
        m.d.comb += moved.eq(start + stride)
        for register, steps, begins in ((place, inner, renew), (of_inner, middle, prepares),
                                        (of_middle, outer, prepares)):
            with m.If(begins):
                m.d.sync += register.eq(self.nests.payload.bases[name])
            with m.Elif(advance & steps):
                m.d.sync += register.eq(moved)
        return place
