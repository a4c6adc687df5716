"""A bench for the ALU engine: what it should do, and memories that refuse it at random."""

import itertools
import random
from typing import Any

import numpy as np

from microtron.isa.arithmetic import alu_array, requantize_array, scale_array
from microtron.isa.config import Config
from microtron.isa.faults import Fault
from microtron.isa.instructions import (
    Alu,
    AluI,
    Buffer,
    Instruction,
    Requantize,
    RequantizeFlags,
    Table,
)

from ..simulate import kept, simulate
from .decoding_alu import DecodingAlu

QUIET = 40                  # cycles after which an engine that was going to do something has


class Model:
    """The accumulator and out, and what instructions do to them, step by step."""

    def __init__(self, config: Config, seed: int):
        rng = np.random.default_rng(seed)
        lanes = config.batch * config.block_out
        self.config = config
        self.acc = rng.integers(-1 << 31, 1 << 31, (config.tiles(Buffer.ACC), lanes), np.int32)
        small = rng.random(self.acc.shape) < 0.5
        self.acc[small] = rng.integers(-200, 200, self.acc.shape)[small]
        self.out = rng.integers(-128, 128, (config.tiles(Buffer.OUT), lanes), np.int8)
        self.tables = np.zeros((8, 256), np.int8)

    def execute(self, instruction: Instruction) -> bool:
        """Do all steps, up to the first that reaches outside: then the answer is False."""
        try:
            if isinstance(instruction, Table):
                self._fill(instruction)
                return True
            for counters in itertools.product(*map(range, instruction.loops)):
                self._step(instruction, counters)
        except IndexError:
            return False
        return True

    def _step(self, each: Any, counters: tuple[int, ...]) -> None:
        at = _walk(each.dst, each.dst_stride, counters)
        match each:
            case Alu():
                right = self._read(_walk(each.rhs, each.rhs_stride, counters))
                left = right if not each.op.reads_left else self._read(
                    _walk(each.lhs, each.dst_stride, counters))
                self._write(each.target, at, alu_array(each.op, left, right))
            case AluI():
                left = 0 if not each.op.reads_left else self._read(
                    _walk(each.src, each.src_stride, counters))
                right = np.full(self.acc.shape[1], each.immediate, np.int32)
                self._write(each.target, at, alu_array(each.op, left, right))
            case Requantize():
                self._requantize(each, counters, at)

    def _requantize(self, each: Requantize, counters: tuple[int, ...], at: int) -> None:
        if counters[1:] == (0, 0):
            first = each.params + each.params_stride * counters[0]
            self.parameters = [self._read(first + number).copy() for number in range(3)]
        bias, multiplier, shift = self.parameters
        value = self._read(_walk(each.src, each.src_stride, counters))
        if each.flags & RequantizeFlags.WIDE:
            biased = (value.astype(np.int64) + bias).astype(np.int32)
            result = scale_array(biased, multiplier, shift, each.rounding)
        else:
            result = requantize_array(value, bias, multiplier, shift, zero_point=each.zero_point,
                                      low=each.low, high=each.high, rounding=each.rounding)
        if each.flags & RequantizeFlags.LOOKUP:
            result = self.tables[each.table][result.astype(np.int64) + 128]
        to_acc = each.flags & RequantizeFlags.ACC
        self._write(Buffer.ACC if to_acc else Buffer.OUT, at, result)

    def _fill(self, each: Table) -> None:
        """Step by step: a lane of a tile is a word of the table."""
        words = [self._read(each.src + word // self.acc.shape[1])[word % self.acc.shape[1]]
                 for word in range(64)]
        self.tables[each.table] = np.array(words, "<i4").view(np.int8)

    def _read(self, tile: int) -> Any:
        if tile < 0:
            raise IndexError
        return self.acc[tile]

    def _write(self, target: Buffer, tile: int, value: Any) -> None:
        if tile < 0:
            raise IndexError
        if target == Buffer.ACC:
            self.acc[tile] = value
        else:
            self.out[tile] = np.clip(value, -128, 127)


def _walk(base: int, strides: tuple[int, ...], counters: tuple[int, ...]) -> int:
    return base + sum(np.multiply(strides, counters).tolist())


def bits_of(tile: Any) -> int:
    return int.from_bytes(tile.tobytes(), "little")


class Port:
    """A read port of the accumulator: data three cycles after a grant, until those of the next."""

    def __init__(self) -> None:
        self.read: int | None = None
        self.fetched: int | None = None
        self.data = 0

    def clock(self, granted: int | None) -> None:
        if self.fetched is not None:
            self.data = self.fetched
        self.read, self.fetched = granted, self.read


class Bench:
    """Runs instructions on an engine and notes in which cycle things happened.

    `refusal` is the probability that a command, a token, a read or a write has to wait. With
    `alone`, an instruction comes only when the one before has ended. At every end the memories
    must hold what the model says. The run is over when the engine has been at rest for a while,
    or after `halt_at` or a fault had the time to do harm.
    """

    def __init__(self, config: Config, instructions: list[Instruction], *, seed: int = 0,
                 refusal: float = 0.0, alone: bool = False, halt_at: int | None = None):
        self.unit: Any = kept(DecodingAlu, config)
        self.config, self.instructions = config, instructions
        self.rng, self.refusal = random.Random(seed), refusal
        self.alone, self.halt_at = alone, halt_at
        self.memory, self.model = Model(config, seed), Model(config, seed)
        self.left, self.right = Port(), Port()
        self.offered = self.tokens_there = self.barred = False
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.writes: list[int] = []
        self.reads = 0
        self.fault: tuple[Fault, int] | None = None
        self.cycle = 0
        # Where there are tables, what is written to out comes two cycles after it is said to.
        self.late = 2 if config.tables else 0
        self.expected: list[tuple[int, Any]] = []       # of out, and when

    def run(self, limit: int = 6000) -> "Bench":
        simulate(self.unit, self._testbench, limit=limit)
        return self

    async def _testbench(self, ctx: Any) -> None:
        last_active = 0
        while self.cycle - last_active < QUIET:
            ctx.set(self.unit.halts, self.cycle + 1 == self.halt_at)
            self._offer(ctx)
            self._memories(ctx)
            if self._events(ctx):
                last_active = self.cycle
            await ctx.tick()
            self.cycle += 1

    @property
    def halted(self) -> bool:
        return self.halt_at is not None and self.cycle >= self.halt_at

    def _waits(self) -> bool:
        return self.rng.random() < self.refusal

    def _offer(self, ctx: Any) -> None:
        """A command and its tokens come when they like, and stay until they are taken."""
        unit, position = self.unit, len(self.starts)
        comes = position < len(self.instructions) and not (
            self.alone and len(self.ends) < len(self.starts))
        self.offered = comes and (self.offered or not self._waits())
        self.tokens_there = self.offered and (self.tokens_there or not self._waits())
        wait = 0
        if self.offered:
            wait = int(self.instructions[position].wait)
            word = int.from_bytes(self.instructions[position].encode(), "little")
            ctx.set(unit.commands.payload, {"word": word, "position": position + 1000})
        ctx.set(unit.commands.valid, self.offered)
        assert ctx.get(unit.tokens.wait) == wait
        ctx.set(unit.tokens.granted, (self.tokens_there or wait == 0) and not self.barred)
        ctx.set(unit.tokens.missing, 0 if self.tokens_there else wait)

    def _memories(self, ctx: Any) -> None:
        """Grant what is not refused; the right operand is more urgent than the left."""
        unit, acc = self.unit, self.memory.acc
        wanted = {}
        for name in ("right", "left"):
            port = getattr(unit, name)
            model = getattr(self, name)
            tile = ctx.get(port.index) if ctx.get(port.enable) else None
            granted = tile is not None and not self._waits() and not any(
                self._bank(other) == self._bank(tile) for other in wanted.values())
            if tile is not None:
                wanted[name] = tile
            self.reads += granted
            ctx.set(port.granted, granted)
            ctx.set(port.data, model.data)
            model.clock(bits_of(acc[tile]) if granted else None)
        granted = ctx.get(unit.acc.enable) != 0 and not self._waits()
        ctx.set(unit.acc.granted, granted)
        ctx.set(unit.acc.refused, not granted)
        if granted:
            tile = ctx.get(unit.acc.index)
            assert tile not in wanted.values(), "read and written in one cycle"
            self._write(self.memory.acc, tile, ctx.get(unit.acc.data))
        if ctx.get(unit.out.enable):
            self._write(self.memory.out, ctx.get(unit.out.index), ctx.get(unit.out.data))

    def _bank(self, tile: int) -> int:
        return tile // self.config.acc_bank_tiles

    def _write(self, memory: Any, tile: int, data: int) -> None:
        memory[tile] = np.frombuffer(data.to_bytes(memory[tile].nbytes, "little"), memory.dtype)
        self.writes.append(self.cycle)
        assert not self.halted
        assert self.fault is None

    def _events(self, ctx: Any) -> bool:
        """Note what the engine tells, compare the memories at every end. More is to come?"""
        unit, events = self.unit, self.unit.events
        assert ctx.get(events.busy) == (len(self.ends) < len(self.starts))
        start, end = ctx.get(events.start), ctx.get(events.end)
        assert ctx.get(unit.tokens.take) == ctx.get(unit.commands.ready)
        assert start == (self.offered and ctx.get(unit.commands.ready))
        self.barred = ctx.get(unit.tokens.bars)
        missing = ctx.get(events.wait)
        if start:
            assert ctx.get(unit.tokens.granted)
            assert not missing
            assert not self.halted
            assert ctx.get(events.start_position) == len(self.starts) + 1000
            self.starts.append(self.cycle)
            self.offered = self.tokens_there = False
        elif missing:
            assert missing == ctx.get(unit.tokens.missing)
        post = ctx.get(unit.tokens.post)
        if end:
            instruction = self.instructions[len(self.ends)]
            assert ctx.get(events.end_position) == len(self.ends) + 1000
            assert post == instruction.post
            assert not self.halted
            assert self.model.execute(instruction)
            np.testing.assert_array_equal(self.memory.acc, self.model.acc)
            self.expected.append((self.cycle + self.late, self.model.out.copy()))
            self.ends.append(self.cycle)
        else:
            assert post == 0
        while self.expected and self.expected[0][0] == self.cycle:
            np.testing.assert_array_equal(self.memory.out, self.expected.pop(0)[1])
        cause = ctx.get(events.fault.cause)
        if cause != Fault.NONE:
            self.fault = Fault(cause), ctx.get(events.fault.position) - 1000
        working = len(self.ends) < len(self.instructions)
        return working and self.fault is None and not self.halted

    @property
    def cycles(self) -> list[int]:
        """From start to end, by instruction."""
        return [end - start for start, end in zip(self.starts, self.ends, strict=True)]

    def compare(self) -> None:
        np.testing.assert_array_equal(self.memory.acc, self.model.acc)
        np.testing.assert_array_equal(self.memory.out, self.model.out)
