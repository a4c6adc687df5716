"""Where the cycles of a program go: by engine and cause, and how far from the best possible."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ...base.classes.dataclass import dataclass
from ...base.keywords import check_keywords
from ...base.notebooks.html_table import html_table
from ...isa.instructions import Engine
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program, engines_of
from ...sim.cycle.stop_reasons import text_of
from ...sim.report import Report
from ...sim.simulate import simulate
from ...sim.timeline import Cycles, Timeline
from .token_pairs import tokens_of

MOST_WAITS = 5              # shown: the screen has an end


@dataclass(frozen=True, kw_only=True)
class EngineProfile:
    """Where the cycles of one engine went. All but `instructions` add up to those of the run."""

    engine: str
    instructions: int
    working: int
    memory: int                 # had begun an instruction, but waited for DRAM
    tokens: dict[str, int]      # was at rest until a token came; from whom the last one came
    queue: int                  # was at rest while nothing had been handed to it
    idle: int                   # had completed its last instruction


@dataclass(frozen=True, kw_only=True)
class Wait:
    """An instruction that kept its engine at rest until another posted a token."""

    position: int
    text: str
    cycles: int
    giver: str                  # engine that posted the token
    poster: int                 # instruction that did
    poster_text: str


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """The least cycles that the work needs on any schedule, and what sets them."""

    macs_per_byte: float | None # of the program; None if it moves nothing
    balance: float              # of the accelerator: with fewer, memory is the limit
    mac_cycles: float           # if only the MAC array counted: a tile product each
    memory_cycles: float        # if only the bus counted
    alu_cycles: float           # if only the ALU counted: `vector_cycles` a vector
    bound: float                # the largest of these three
    limit: str                  # what it comes from: macs, memory or alu
    efficiency: float           # bound / cycles
    utilization: float          # multiply-adds / what the MAC array could have done


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Where the cycles of a program went."""

    report: Report
    engines: tuple[EngineProfile, ...]
    roofline: Roofline
    waits: tuple[Wait, ...]     # the most expensive ones, first

    def _repr_html_(self) -> str:
        """In a notebook: where the cycles of each engine went."""
        rows = [(each.engine, *(f"{number:,}" for number in (
                    each.instructions, each.working, each.memory, sum(each.tokens.values()),
                    each.queue, each.idle)))
                for each in self.engines]
        return html_table(
            f"{self.report.name or 'A program'}: {self.report.cycles or 0:,} cycles, of which "
            f"each engine", ("engine", "instructions", "works", "waits for memory",
                             "waits for tokens", "waits for instructions", "is done"), rows)

    def to_dict(self) -> dict[str, object]:
        """Plain data, fit for JSON."""
        return {**self.report.to_dict(), "roofline": dataclasses.asdict(self.roofline),
                "engines": [dataclasses.asdict(each) for each in self.engines],
                "waits": [dataclasses.asdict(each) for each in self.waits]}


@check_keywords
def profile(program: Program, memory: MemoryTiming | None = None, *,
            limit: int | None = None) -> Profile:
    """Simulate a program without data and say where its cycles went: what each engine did and
    waited for, the roofline, the most expensive waits. Arguments are those of `simulate`."""
    memory = memory or MemoryTiming()
    report = simulate(program, memory=memory, limit=limit)
    rests = _rests_of(program, report)
    return Profile(report=report, roofline=_roofline(report, memory),
                   waits=_waits(program, rests.values()), engines=_engines(rests, report))


def profile_engines(program: Program, report: Report) -> tuple[EngineProfile, ...]:
    """What each engine did in a run that has been simulated, and what it waited for."""
    return _engines(_rests_of(program, report), report)


@dataclass(frozen=True, kw_only=True)
class _Rests:
    """How long an engine was at rest before each of its instructions, and after them all."""

    positions: npt.NDArray[np.intp]
    total: Cycles               # from the end of all before to the start
    for_token: Cycles           # of these, the last ones, in which a token was missing
    giver: npt.NDArray[np.intp] # the engine whose token came last
    after: int


def _rests_of(program: Program, report: Report) -> dict[Engine, _Rests]:
    assert report.timeline is not None
    assert report.cycles is not None
    engines = engines_of(program)
    return {engine: _rests(np.flatnonzero(engines == engine), report.timeline, report.cycles)
            for engine in Engine}


def _engines(rests: dict[Engine, _Rests], report: Report) -> tuple[EngineProfile, ...]:
    assert report.cycles is not None
    return tuple(_engine(engine, rests[engine], report.counters, report.cycles)
                 for engine in Engine)


def _rests(positions: npt.NDArray[np.intp], timeline: Timeline, cycles: int) -> _Rests:
    """An instruction keeps its engine busy in the cycles after its start, until its end."""
    assert timeline.waits is not None, "the simulator knows what instructions waited for"
    ends = np.maximum.accumulate(np.concatenate([[-1], timeline.end[positions]]))
    total = np.maximum(timeline.start[positions] - ends[:-1], 0)
    waits = timeline.waits[positions]
    return _Rests(positions=positions, total=total, giver=waits.argmax(1),
                  for_token=np.minimum(total, waits.max(1)), after=cycles - 1 - int(ends[-1]))


def _engine(engine: Engine, rests: _Rests, counters: dict[str, int], cycles: int) -> EngineProfile:
    name = engine.name.lower()
    at_rest = int(rests.total.sum())
    tokens = {giver.name.lower(): int(rests.for_token[rests.giver == giver].sum())
              for giver in Engine if giver != engine}
    memory = counters.get(f"{name}_wait_memory", 0)     # GEMM and ALU have no such counter
    return EngineProfile(
        engine=name, instructions=len(rests.positions), memory=memory, tokens=tokens,
        working=cycles - at_rest - rests.after - memory,
        queue=at_rest - sum(tokens.values()), idle=rests.after)


def _waits(program: Program, rests: Iterable[_Rests]) -> tuple[Wait, ...]:
    """The most expensive waits; of equal ones, the first in the program."""
    posters = {(token.taker, token.giver): token.poster for token in tokens_of(program)}
    found = sorted((-cycles, position, giver) for each in rests for cycles, position, giver
                   in zip(each.for_token.tolist(), each.positions.tolist(), each.giver.tolist(),
                          strict=True) if cycles)
    waits = []
    for cycles, position, giver in found[:MOST_WAITS]:
        poster = posters[position, giver]
        waits.append(Wait(position=position, text=text_of(program, position), cycles=-cycles,
                          giver=Engine(giver).name.lower(), poster=poster,
                          poster_text=text_of(program, poster)))
    return tuple(waits)


def _roofline(report: Report, memory: MemoryTiming) -> Roofline:
    config, counts = report.config, report.counts
    assert report.cycles
    rate = config.bus_bytes / memory.cycles_per_beat
    loaded, stored = sum(counts.bytes_loaded.values()), sum(counts.bytes_stored.values())
    cycles = {"macs": float(counts.tile_products),
              "alu": float(counts.alu_vectors * config.vector_cycles),
              "memory": (loaded + stored if memory.shared else max(loaded, stored)) / rate}
    limit = max(("macs", "memory", "alu"), key=lambda name: cycles[name])
    return Roofline(
        macs_per_byte=report.macs / report.bytes if report.bytes else None,
        balance=config.macs_per_cycle / rate, mac_cycles=cycles["macs"],
        memory_cycles=cycles["memory"], alu_cycles=cycles["alu"], bound=cycles[limit],
        limit=limit, efficiency=cycles[limit] / report.cycles,
        utilization=report.macs / (report.cycles * config.macs_per_cycle))
