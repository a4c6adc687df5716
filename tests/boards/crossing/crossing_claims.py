"""What is claimed of the queue between two clocks, whose synchronizers catch what they like.

One step of the model is an instant at which either clock may rise, or both, or none: the solver
decides. So the clocks have any frequencies and phases, and these may change.
"""

from amaranth.hdl import (
    Array,
    Assert,
    Cat,
    Cover,
    DomainRenamer,
    Elaboratable,
    EnableInserter,
    Module,
    Mux,
    Signal,
    Value,
)

from ...hw.formal_proofs.formal import Claim


class Metastable(Elaboratable):
    """A synchronizer whose first register catches, of each bit that has just changed, either value.
    What it is given must change one bit at a time: on a chip, wires of several differ in length."""

    def __init__(self, i: Value, o: Value, *, rises: Value, catches: Value,
                 registers: list[Signal]):
        self.i, self.o, self.rises, self.catches = i, o, rises, catches
        self.second, self.first, self.before = registers

    def elaborate(self, platform):
        m = Module()
        changes = self.i ^ self.before
        m.d.sync += self.before.eq(self.i)
        with m.If(self.rises):
            m.d.sync += [self.first.eq((self.i & self.catches) | (self.before & ~self.catches)),
                         self.second.eq(self.first)]
        m.d.comb += Assert((changes & (changes - 1)) == 0)
        m.d.comb += self.o.eq(self.second)
        return m


class CrossesInOrder(Claim):
    """Any item comes out unchanged, once, after all that entered before it; an item that is shown
    stays until it is taken."""

    def __init__(self, unit: type, *, depth: int, width: int):
        self.depth, self.width = depth, width
        self.bits = depth.bit_length()
        # What each side knows of the other one's pointer, oldest first.
        self.known = {domain: [Signal(self.bits, name=f"{domain}_{name}")
                               for name in ("second", "first", "before")]
                      for domain in ("putter", "taker")}

        def synchronizer(i: Value, o: Value, domain: str) -> Metastable:
            return Metastable(i, o, rises=getattr(self, f"{domain}_rises"),
                              catches=getattr(self, f"{domain}_catches"),
                              registers=self.known[domain])

        self.unit = unit(width, depth, put_domain="putter", take_domain="taker",
                         synchronizer=synchronizer)
        super().__init__(
            {"offer": 1, "item": width, "take": 1, "choose": 1, "putter_rises": 1,
             "taker_rises": 1, "putter_catches": self.bits, "taker_catches": self.bits},
            {**{name: (f"unit.{name}", self.bits)
                for name in ("produce", "consume", "produced", "consumed")},
             **{f"word_{at}": (f"unit.storage[{at}]", width) for at in range(depth)}})

    def elaborate(self, platform):
        m = Module()
        unit = self.unit
        m.submodules.unit = DomainRenamer({"putter": "sync", "taker": "sync"})(EnableInserter(
            {"putter": self.putter_rises, "taker": self.taker_rises})(unit))
        m.d.comb += [unit.put.valid.eq(self.offer), unit.put.payload.eq(self.item),
                     unit.take.ready.eq(self.take)]
        shows, shown = unit.take.valid, unit.take.payload
        entered = self.putter_rises & self.offer & unit.put.ready
        left = self.taker_rises & self.take & shows
        count = Signal(range(self.depth + 3))
        followed, ahead = Signal(), Signal(range(self.depth + 3))
        value, stays = Signal(self.width), Signal()
        m.d.sync += [count.eq(count + entered - left), stays.eq(shows & ~left)]
        with m.If(followed & left):
            m.d.sync += [ahead.eq(ahead - 1), followed.eq(ahead != 0)]
        with m.Elif(entered & self.choose & ~followed):
            m.d.sync += [followed.eq(1), ahead.eq(count - left), value.eq(self.item)]
        m.d.comb += [
            Assert(count <= self.depth + 1), Assert(~shows | (count != 0)),
            Assert(~stays | shows), Assert(~followed | (ahead < count)),
            Assert(~followed | (ahead != 0) | ~shows | (shown == value)),
            Cover(count == self.depth + 1), Cover(followed & left & (ahead == self.depth)),
        ]
        self._add_invariants(m, count, followed, ahead, value, shows, shown)
        return m

    def _add_invariants(self, m, count, followed, ahead, value, shows, shown):
        """What each side knows of the other is old: pointers follow one another in time."""
        def behind(first, *later):
            """How far pointers are apart, each and in sum: they must not overtake one another."""
            each = [(after - before)[:self.bits] for before, after
                    in zip((first, *later), later, strict=False)]
            whole = (later[-1] - first)[:self.bits]
            return sum(each) == whole, whole <= self.depth, each

        seen = [binary(each) for each in self.known["taker"]]
        ordered, near, each = behind(self.consume, *seen, self.produce)
        m.d.comb += self.invariant(ordered, near, each[-1] <= 1)
        seen = [binary(each) for each in self.known["putter"]]
        ordered, near, each = behind(*seen, self.consume, self.produce)
        m.d.comb += self.invariant(ordered, near, each[-2] <= 1)
        m.d.comb += self.invariant(
            self.produced == self.produce ^ self.produce[1:],
            self.consumed == self.consume ^ self.consume[1:],
            count == (self.produce - self.consume)[:self.bits] + shows)
        words = Array(getattr(self, f"word_{at}") for at in range(self.depth))
        place = (self.consume + ahead - shows)[:self.bits - 1]
        m.d.comb += self.invariant(
            ~followed | (Mux(shows & (ahead == 0), shown, words[place]) == value))


def binary(code: Value) -> Value:
    """The number that has a Gray code."""
    return Cat(code[at:].xor() for at in range(len(code)))
