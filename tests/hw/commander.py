"""What an engine has around it besides data: commands, tokens, events and a halt."""

from microtron.isa.faults import Fault

FIRST_POSITION = 10


class Kept:
    """Stands for a pin that an engine does not have."""

    value = 0


class Commander:
    """Hands instructions and, at random times, tokens to an engine, and records its events."""

    def __init__(self, bench, engine, instructions, rng, *, stall=0.3, halt_at=None):
        self.bench, self.rng, self.stall, self.halt_at = bench, rng, stall, halt_at
        self.instructions = list(instructions)
        self.waiting = list(enumerate(self.instructions, FIRST_POSITION))
        self.valid, self.word, self.position = map(bench.pin, (
            engine.commands.valid, engine.commands.payload.word,
            engine.commands.payload.position))
        self.granted, self.missing = map(bench.pin, (engine.tokens.granted,
                                                     engine.tokens.missing))
        # Some engines are told of a halt in the cycle before, and keep it.
        self.halts = bench.pin(engine.halts) if hasattr(engine, "halts") else None
        self.halt = bench.pin(engine.halt) if self.halts is None else Kept()
        self.ready, self.wait, self.take, self.post = map(bench.probe, (
            engine.commands.ready, engine.tokens.wait, engine.tokens.take, engine.tokens.post))
        self.events = {name: bench.probe(getattr(engine.events, name))
                       for name in engine.events.signature.members if name != "fault"}
        self.fault = bench.probe(engine.events.fault.cause)
        self.fault_position = bench.probe(engine.events.fault.position)
        self.starts, self.ends = [], []         # (cycle, position)
        self.bytes = 0
        self.waited_for_memory = 0
        self.first_fault = None                 # (cycle, cause, position)

    def drive(self):
        if self.waiting and not self.valid.value and self.rng.random() >= self.stall:
            position, instruction = self.waiting.pop(0)
            self.valid.value, self.position.value = 1, position
            self.word.value = int.from_bytes(instruction.encode(), "little")
        wanted = self._current().wait if self.valid.value else 0
        self.missing.value = 0
        if wanted and self.rng.random() < self.stall:
            self.missing.value = self.rng.choice([mask for mask in range(1, 16)
                                                  if mask & ~wanted == 0])
        self.granted.value = self.missing.value == 0
        self.halt.value = self.halt.value or self._halts(self.bench.cycle)
        if self.halts is not None:
            self.halts.value = self._halts(self.bench.cycle + 1)

    def _halts(self, cycle):
        """Whether the control unit raises a halt in a cycle: when the test says so, or after a
        fault."""
        return cycle == self.halt_at or (
            self.first_fault is not None and cycle > self.first_fault[0] + 2)

    def _current(self):
        return self.instructions[self.position.value - FIRST_POSITION]

    def look(self):
        started = self.valid.value and self.ready.value
        assert self.wait.value == (self._current().wait if self.valid.value else 0)
        assert self.take.value == self.ready.value
        assert self.events["start"].value == started
        waits = self.missing.value if self.valid.value else 0
        assert self.events["wait"].value in (0, waits)
        if len(self.starts) == len(self.ends) and not self.halt.value:
            assert self.events["wait"].value == waits       # an idle engine waits for nothing else
        self._busy()
        if started:
            assert self.granted.value
            assert not self.halt.value
            assert self.events["start_position"].value == self.position.value
            self.starts.append((self.bench.cycle, self.position.value))
            self.valid.value = 0
        if self.events["end"].value:
            position = self.events["end_position"].value
            self.ends.append((self.bench.cycle, position))
            assert self.post.value == self.instructions[position - FIRST_POSITION].post
        else:
            assert self.post.value == 0
        self.bytes += self.events["bytes"].value
        self.waited_for_memory += self.events["wait_memory"].value
        if self.fault.value and self.first_fault is None:
            self.first_fault = (self.bench.cycle, Fault(self.fault.value),
                                self.fault_position.value)

    def _busy(self):
        """Busy after every start up to and with its end, and not else; a halt may end it."""
        if self.first_fault is None and not self.fault.value and not self.halt.value:
            assert self.events["busy"].value == (len(self.starts) > len(self.ends))

    @property
    def done(self):
        return len(self.ends) == len(self.instructions)
