"""Decides which instructions may start: the queues of the four engines, their tokens, and syncs."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import ExecutionError
from ...isa.config import Config
from ...isa.instructions import Engine, Instruction
from ...isa.verification.bounds import place_of
from ..token_counters import (
    ENGINES,
    counter_name,
    format_awaited,
    format_counters,
    nonzero_counters,
)

# A counter is giver × ENGINES + taker; a mask of `wait` or `post` becomes a tuple of counters.
WAITS = {taker: [tuple(giver * ENGINES + taker for giver in Engine if mask >> giver & 1)
                 for mask in range(1 << ENGINES)] for taker in Engine}
POSTS = {giver: [tuple(giver * ENGINES + taker for taker in Engine if mask >> taker & 1)
                 for mask in range(1 << ENGINES)] for giver in Engine}


class Flow:
    """Queues and tokens between instructions. Queues are unbounded.

    Nothing after a sync starts before everything ahead of it is complete. The last sync ends the
    program.
    """

    def __init__(self, instructions: Sequence[Instruction], config: Config):
        self.instructions = instructions
        self.limit = config.token_limit
        self.tokens = [0] * ENGINES ** 2
        self.most = [0] * ENGINES ** 2
        self._waits: list[tuple[int, ...]] = []
        self._posts: list[tuple[int, ...]] = []
        self._queues: list[list[int]] = [[] for _ in Engine]
        self._syncs: list[int] = []
        for position, instruction in enumerate(instructions):
            self._append(position, instruction)
        for queue in (*self._queues, self._syncs):
            queue.reverse()             # the next one is the last: popping it is cheap
        self._unfinished = self._syncs[-1]
        self._pass_syncs()

    def _append(self, position: int, instruction: Instruction) -> None:
        engine = instruction.engine
        if engine is None:
            self._syncs.append(position)
            self._waits.append(())
            self._posts.append(())
        else:
            self._queues[engine].append(position)
            self._waits.append(WAITS[engine][instruction.wait])
            self._posts.append(POSTS[engine][instruction.post])

    @property
    def done(self) -> bool:
        return not self._syncs

    def head(self, engine: Engine) -> int | None:
        """The instruction that an engine would start next, whether or not it may."""
        queue = self._queues[engine]
        return queue[-1] if queue else None

    def may_start(self, engine: Engine) -> bool:
        """Whether an idle engine has its tokens and no sync blocks it."""
        queue = self._queues[engine]
        return bool(queue) and queue[-1] < self._syncs[-1] and all(
            self.tokens[counter] for counter in self._waits[queue[-1]])

    def start(self, engine: Engine) -> int:
        """Take the head of a queue and its tokens."""
        position = self._queues[engine].pop()
        for counter in self._waits[position]:
            self.tokens[counter] -= 1
        return position

    def finish(self, position: int) -> None:
        """Post the tokens of a complete instruction."""
        for counter in self._posts[position]:
            if self.tokens[counter] == self.limit:
                raise ExecutionError(f"{place_of(self.instructions[position], position)}: post "
                                     f"makes {self.limit + 1} tokens in "
                                     f"{counter_name(counter)}, but a counter holds {self.limit}")
            self.tokens[counter] += 1
            self.most[counter] = max(self.most[counter], self.tokens[counter])
        self._unfinished -= 1
        self._pass_syncs()

    def _pass_syncs(self) -> None:
        while self._unfinished == 0 and self._syncs:
            passed = self._syncs.pop()
            if self._syncs:
                self._unfinished = self._syncs[-1] - passed - 1

    def deadlock(self, order: str = "") -> ExecutionError:
        """The error for a deadlock: where every engine waits, for what, and which tokens there
        are."""
        waits = [self._waiting(engine, head) for engine in Engine
                 if (head := self.head(engine)) is not None]
        return ExecutionError(f"deadlock{order}: {'; '.join(waits)}; "
                              f"tokens: {format_counters(self.tokens)}")

    def _waiting(self, engine: Engine, head: int) -> str:
        place, name = place_of(self.instructions[head], head), engine.name.lower()
        if head > self._syncs[-1]:
            return f"{name} waits at {place} for instruction {self._syncs[-1]} (sync)"
        missing = [Engine(counter // ENGINES) for counter in self._waits[head]
                   if not self.tokens[counter]]
        return (f"{name} waits at {place} for {format_awaited(missing)}" if missing
                else f"{name} may start {place}")

    def most_tokens(self) -> dict[str, int]:
        """The highest value of every counter that was used."""
        return nonzero_counters(self.most)
