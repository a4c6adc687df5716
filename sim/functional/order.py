"""Execution orders: program order, and any other that the tokens allow.

In hardware the engines run at the same time. A correct program has the same result in every order
in which each engine keeps its own order and no instruction starts without its tokens.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...base.checked_values import integer, quote
from ...base.errors import MicrotronError
from ...isa.instructions import Engine
from .flow import Flow

Effect = Callable[[], None]


class Machine(Protocol):
    """The interface that an order drives."""

    def execute(self, position: int) -> None:
        """Execute an instruction in one step."""

    def begin(self, position: int) -> Effect:
        """Do the reads of an instruction; calling the effect does its writes."""


class Order(Protocol):
    def drive(self, flow: Flow, machine: Machine) -> None:
        """Execute every instruction once, or raise the deadlock that prevents it."""


@dataclass(frozen=True)
class ProgramOrder:
    """Instruction by instruction, as written. Every wait must find its token posted."""

    def drive(self, flow: Flow, machine: Machine) -> None:
        for position, instruction in enumerate(flow.instructions):
            if instruction.engine is None:
                continue
            if not flow.may_start(instruction.engine):
                raise flow.deadlock(f" in program order at instruction {position}")
            machine.execute(flow.start(instruction.engine))
            flow.finish(position)


@dataclass(frozen=True)
class Adversarial:
    """An adversarial interleaving of the engines, reproducible from its seed.

    Consecutive seeds cycle through the strategies below. With half of the seeds an instruction
    reads when it starts and writes when it completes, with others in between; with the other half
    it is atomic.
    """

    seed: int

    def __post_init__(self) -> None:
        if integer(self.seed) is None:
            raise MicrotronError(f"seed is {quote(self.seed)}, but must be an integer")

    def drive(self, flow: Flow, machine: Machine) -> None:
        rng = random.Random(self.seed)
        pick = STRATEGIES[self.seed % len(STRATEGIES)](rng)
        in_two_steps = self.seed // len(STRATEGIES) % 2 == 1
        running: dict[Engine, tuple[int, Effect]] = {}
        while not flow.done:
            able = [engine for engine in Engine if engine in running or flow.may_start(engine)]
            if not able:
                raise flow.deadlock()
            engine = pick(able)
            if engine in running:
                position, effect = running.pop(engine)
                effect()
                flow.finish(position)
                continue
            position = flow.start(engine)
            if in_two_steps:
                running[engine] = position, machine.begin(position)
            else:
                machine.execute(position)
                flow.finish(position)


# A strategy repeatedly picks one of the engines that can step.
Pick = Callable[[Sequence[Engine]], Engine]


def uniform(rng: random.Random) -> Pick:
    """Any engine, with equal probability."""
    return rng.choice


def starve_one(rng: random.Random) -> Pick:
    """One engine steps only when no other can."""
    victim = rng.choice(list(Engine))
    return lambda able: rng.choice([each for each in able if each != victim] or able)


def hurry_one(rng: random.Random) -> Pick:
    """One engine runs ahead as far as its tokens allow."""
    favourite = rng.choice(list(Engine))
    return lambda able: favourite if favourite in able else rng.choice(able)


def changing_priorities(rng: random.Random) -> Pick:
    """A ranking of the engines that is drawn again now and then."""
    ranking = list(Engine)
    rng.shuffle(ranking)

    def pick(able: Sequence[Engine]) -> Engine:
        if rng.random() < 1 / 8:
            rng.shuffle(ranking)
        return min(able, key=ranking.index)
    return pick


def last_come_first_served(rng: random.Random) -> Pick:
    """The engine that became able to step last. One that has just stepped goes last."""
    line: list[Engine] = []

    def pick(able: Sequence[Engine]) -> Engine:
        newcomers = [each for each in able if each not in line]
        rng.shuffle(newcomers)
        line[:] = [each for each in line if each in able] + newcomers
        line.insert(0, line.pop())
        return line[0]
    return pick


STRATEGIES = (uniform, starve_one, hurry_one, changing_priorities, last_come_first_served)
