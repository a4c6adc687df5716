"""Runs a program on the hardware and on its twin, and finds the first cycle in which they differ.

What is compared: the cycle in which each instruction starts and ends, all counters, final memory,
and the words with which a program fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..base.errors import ExecutionError
from ..isa.config import Config
from ..isa.instructions import Engine, Store
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program, engines_of
from ..isa.registers import Control, counters_of
from ..isa.stream import positions_of
from ..isa.verification.verifier import inspect
from ..runtime.devices.device import Bytes
from ..runtime.devices.rtl import RtlDevice
from ..sim.cycle.replay import Replay
from ..sim.cycle.run import check_meaning, run_cycles
from ..sim.cycle.stop_reasons import check_end
from ..sim.functional.memory import Memory
from ..sim.limit import generous_limit
from ..sim.timeline import Timeline, empty_timeline

PATIENCE = 1000         # cycles in which something must happen, besides what memory takes
COUNTED = 1             # cycles from an event to its counter: events pass a register
START_UP = 16           # cycles by which the two may disagree on when a limit is reached


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program and what it runs against."""

    program: Program
    timing: MemoryTiming = MemoryTiming()
    failing: range = range(0)           # addresses that answer with a bus error
    limit: int | None = None            # cycles beyond which nothing is compared


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one side did."""

    words: str                          # why the program did not reach its end; else nothing
    counters: dict[str, int] | None     # None: the hardware was given up, and tells nothing then
    timeline: Timeline
    memory: tuple[Bytes, ...] | None    # by segment; None if the program did not reach its end

    @property
    def cycles(self) -> int | None:
        return None if self.counters is None else self.counters["cycles"]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that is not equal, from some cycle on."""

    cycle: int
    engine: Engine | None               # None: FETCH and what is common to all
    what: str
    rtl: str
    twin: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both sides of a case, and what differs: the earliest first."""

    case: Case
    rtl: Outcome
    twin: Outcome
    differences: tuple[Difference, ...]

    def __bool__(self) -> bool:
        """Whether all is equal."""
        return not self.differences


def compare(program: Program, *, config: Config | None = None, timing: MemoryTiming | None = None,
            failing: range = range(0), limit: int | None = None) -> Comparison:
    """Run a program on both. `config` may differ as it may for `run_cycles`; cycles beyond
    `limit`, if given, are not compared."""
    if config is not None:
        check_meaning(config, program.config)
        program = replace(program, config=config)
    return compare_case(Case(program=program, timing=timing or MemoryTiming(), failing=failing,
                             limit=limit))


def compare_case(case: Case) -> Comparison:
    generous = generous_limit(case.program, case.timing)
    limit = min(generous, case.limit or generous)
    twin, cycles = _twin(case, limit)
    # The hardware need not be watched for longer than it takes to see that it does the same.
    patience = PATIENCE + 10 * (case.timing.read_latency + case.timing.write_latency)
    limit = min(limit, cycles + patience)
    if twin.counters is None:
        twin, _ = _twin(case, limit)        # its words name the limit
    rtl = _rtl(case, limit)
    found = [*_events(case, rtl, twin, limit), *_ends(rtl, twin, limit),
             *_counts(case, rtl, twin), *_memory(case, rtl, twin)]
    return Comparison(case=case, rtl=rtl, twin=twin,
                      differences=tuple(sorted(found, key=lambda each: each.cycle)))


class Observed(RtlDevice):
    """The hardware, which also tells what it did before it failed."""

    timeline: Timeline
    counters: dict[str, int] | None

    def _cycle_limit(self, program: Program) -> int:
        """Also less than the program needs."""
        return self.limit or generous_limit(program, self.timing)

    def _run_to_its_end(self, limit: int) -> None:
        self.timeline = empty_timeline(len(self._require_loaded().program.code))
        self.counters = None
        self._harness.trace(self.timeline.start, self.timeline.end)
        super()._run_to_its_end(limit)
        self.counters = {name: self._harness.read(f"{name}_low")
                         | self._harness.read(f"{name}_high") << 32 for name in counters_of(
                             self._require_loaded().program.config)}

    @property
    def memory(self) -> tuple[Bytes, ...]:
        return self._require_loaded().segments

    def counter_after(self, cycles: int, name: str) -> int:
        """A counter, read shortly after the given number of cycles."""
        self._harness.write("control", Control.START | Control.INTERRUPT_ENABLE)
        self._harness.run(cycles)
        return self._harness.read(f"{name}_low")


def _hardware(case: Case, limit: int | None = None) -> Observed:
    device = Observed(case.program.config, timing=case.timing, limit=limit, failing=case.failing)
    device.load(case.program)
    return device


def _rtl(case: Case, limit: int) -> Outcome:
    device, words = _hardware(case, limit), ""
    try:
        device.run()
    except ExecutionError as error:
        words = str(error)
    memory = None if words else device.memory
    return Outcome(words=words, counters=device.counters, timeline=device.timeline, memory=memory)


def _twin(case: Case, limit: int) -> tuple[Outcome, int]:
    """What it did, and the cycles it simulated."""
    run = run_cycles(case.program, timing=case.timing, limit=limit, failing=case.failing)
    try:
        check_end(case.program, run, limit)
    except ExecutionError as error:
        return Outcome(words=str(error), counters=None if run.stuck else run.counters,
                       timeline=run.timeline, memory=None), run.cycles
    memory = Memory(case.program)
    Replay(case.program, memory).run(run.timeline)
    return Outcome(words="", counters=run.counters, timeline=run.timeline,
                   memory=memory.segments), run.cycles


def _events(case: Case, rtl: Outcome, twin: Outcome, limit: int) -> Iterator[Difference]:
    """Starts and ends of instructions. Where a run was given up, the last cycles do not count."""
    given_up = rtl.counters is None or twin.counters is None
    engines = engines_of(case.program)
    for what in ("start", "end"):
        ours, theirs = getattr(rtl.timeline, what), getattr(twin.timeline, what)
        for position in np.flatnonzero(ours != theirs).tolist():
            both = int(ours[position]), int(theirs[position])
            cycle = min(each for each in both if each >= 0)
            if not (given_up and cycle >= limit - START_UP):
                yield Difference(cycle=cycle, engine=Engine(int(engines[position])),
                                 what=f"{what} of instruction {position}",
                                 rtl=_when(both[0]), twin=_when(both[1]))


def _when(cycle: int) -> str:
    return "never" if cycle < 0 else f"in cycle {cycle}"


def _ends(rtl: Outcome, twin: Outcome, limit: int) -> Iterator[Difference]:
    """How and when the program stopped. One that was given up while it worked was stopped in a
    cycle that the two need not agree on."""
    latest = max(int(each.max(initial=0)) for side in (rtl, twin)
                 for each in (side.timeline.start, side.timeline.end))
    if rtl.counters is None and twin.counters is None and latest >= limit - START_UP:
        return
    ours, theirs = (limit if side.cycles is None else side.cycles for side in (rtl, twin))
    if rtl.words != twin.words or ours != theirs:
        yield Difference(cycle=min(ours, theirs) - 1, engine=None, what="end of the program",
                         rtl=f"after {ours} cycles: {rtl.words or 'reached'}",
                         twin=f"after {theirs} cycles: {twin.words or 'reached'}")


def _counts(case: Case, rtl: Outcome, twin: Outcome) -> Iterator[Difference]:
    if rtl.counters is None or twin.counters is None:
        return
    for name, value in rtl.counters.items():
        if value != twin.counters[name] and name != "cycles":
            engine = next((each for each in Engine if name.startswith(each.name.lower())), None)
            yield Difference(cycle=_first_count(case, name, rtl.counters["cycles"]), engine=engine,
                             what=f"counter {name}", rtl=str(value),
                             twin=str(twin.counters[name]))


def _first_count(case: Case, name: str, end: int) -> int:
    """A cycle in which a counter that is equal before is not any more, by bisection.

    Reading a register takes time, but always the same: the hardware's own count of cycles, read
    in the same way, says when another counter was read. What others count comes there later.
    """
    late = _hardware(case).counter_after(1, "cycles") - 1
    equal, differs = late, end
    while differs - equal > 1:
        cycle = (equal + differs) // 2
        ours = _hardware(case).counter_after(cycle - late, name)
        theirs = run_cycles(case.program, timing=case.timing, failing=case.failing,
                            limit=cycle - COUNTED)
        if ours == theirs.counters[name]:
            equal = cycle
        else:
            differs = cycle
    return differs - 1 - COUNTED


def _memory(case: Case, rtl: Outcome, twin: Outcome) -> Iterator[Difference]:
    """Final memory, by segment. That of a program with races is whatever it is."""
    if rtl.memory is None or twin.memory is None:
        return
    pairs = enumerate(zip(rtl.memory, twin.memory, strict=True))
    differing = [(number, *pair) for number, pair in pairs if not np.array_equal(*pair)]
    if not differing or inspect(case.program).findings:
        return
    positions, stores = positions_of(case.program.code, Store)
    for number, ours, theirs in differing:
        places = np.flatnonzero(ours != theirs)
        writers = positions[stores["segment"] == number]
        yield Difference(
            cycle=int(rtl.timeline.end[writers].max(initial=0)), engine=Engine.STORE,
            what=f"segment {case.program.segments[number].name}, {len(places)} bytes from "
                 f"{places[0]:#x} on",
            rtl=f"{ours[places[0]]:#04x}", twin=f"{theirs[places[0]]:#04x}")
