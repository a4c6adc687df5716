"""Many models around one unit, all in step: each cycle they drive, the unit settles, they look.

Inputs are set and outputs are read together, once a cycle, which is much faster than one by one.
"""

from dataclasses import dataclass, field

from amaranth.hdl import Cat, Module, Signal, Value

from .simulate import once, simulate


class Pin:
    """An input of the unit. Keeps its value from cycle to cycle."""

    def __init__(self, signal):
        self.signal = Value.cast(signal)
        self.width = len(self.signal)
        self.mask = (1 << self.width) - 1
        self.value = 0


class Probe:
    """An output of the unit, as it was when the cycle had settled."""

    def __init__(self, signal):
        self.signal = Value.cast(signal)
        self.width = len(self.signal)
        self.mask = (1 << self.width) - 1
        self.value = 0


class Bench:
    """Runs parts that have `drive()` and `look()` until one says `finished`."""

    def __init__(self, unit):
        self.unit = unit
        self.parts, self.pins, self.probes = [], [], []
        self.cycle = 0
        self.finished = False

    def add(self, part):
        self.parts.append(part)
        return part

    def pin(self, signal):
        self.pins.append(Pin(signal))
        return self.pins[-1]

    def probe(self, signal):
        self.probes.append(Probe(signal))
        return self.probes[-1]

    def run(self, limit=20_000):
        unit, self.stimulus, self.response = once(self.unit, _gather, Ends.of(self.pins),
                                                  Ends.of(self.probes))
        simulate(unit, self._testbench, limit=limit)

    async def _testbench(self, ctx):
        while not self.finished:
            for part in self.parts:
                part.drive()
            ctx.set(self.stimulus, self._packed())
            self._unpack(ctx.get(self.response))
            for part in self.parts:
                part.look()
            self.cycle += 1
            await ctx.tick()

    def _packed(self):
        number, place = 0, 0
        for pin in self.pins:
            number |= (int(pin.value) & pin.mask) << place
            place += pin.width
        return number

    def _unpack(self, number):
        for probe in self.probes:
            probe.value = number & probe.mask
            number >>= probe.width


@dataclass(frozen=True)
class Ends:
    """Signals of a unit. Those with the same names are the same."""

    names: tuple[str, ...]
    signals: list = field(compare=False)

    @classmethod
    def of(cls, ends):
        return cls(tuple(repr(each.signal) for each in ends), [each.signal for each in ends])


def _gather(unit, inputs, outputs):
    """The unit with all inputs in one signal and all outputs in another."""
    m = Module()
    m.submodules.unit = unit
    driven, seen = Cat(inputs.signals), Cat(outputs.signals)
    stimulus, response = Signal(len(driven)), Signal(len(seen))
    m.d.comb += [driven.eq(stimulus), response.eq(seen)]
    return m, stimulus, response


class Steady:
    """Asserts the rule of a handshake: what is offered stays, unchanged, until it is taken."""

    def __init__(self, bench, name, valid, ready, *payload):
        self.name, self.valid, self.ready = name, valid, ready
        self.payload = [bench.probe(each) for each in payload]
        self.waiting = None

    def look(self, ready):
        now = tuple(each.value for each in self.payload) if self.valid.value else None
        if self.waiting is not None:
            assert now == self.waiting, f"{self.name} changed while it was offered"
        self.waiting = None if ready else now
