"""A program for each instruction that runs every variant of it: for self-tests of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..isa.config import Config
from ..isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
    Window,
)
from ..isa.program import Program
from .random_programs import CONSTANTS, MAKERS, Draft, begin_draft, finish_draft

ATTEMPTS = 2_000                # to draw one variant
ROUNDINGS = RequantizeFlags.EVEN | RequantizeFlags.AWAY
Accepts = Callable[[Instruction], bool]


@dataclass(frozen=True)
class InstructionProgram:
    """A program that fills the scratchpads, runs variants of one instruction and writes out what
    became of them."""

    name: str
    program: Program
    instructions: range         # the positions of what is tested


def instruction_programs(config: Config, seed: int = 0) -> Iterator[InstructionProgram]:
    """One program for each instruction that the configuration has."""
    for name in ("load", "gemm", *(["window"] if config.has_windows else []), "alu", "alui",
                 "requantize", *(["table"] if config.tables else []), "store", "sync"):
        draft = begin_draft(config, f"{config.digest} {name} {seed}")
        first = len(draft.code)
        if name == "load":
            draft.code += _reload_micro_ops(draft)
        for accepts in _variants(name, config):
            draft.code += _draw_variant(draft, name, accepts)
        body = range(first, len(draft.code))
        yield InstructionProgram(name, finish_draft(draft, f"{name}, seed {seed}"), body)


def _variants(name: str, config: Config) -> list[Accepts]:
    """What the instructions of a program must be, one after the other."""
    def is_load(buffer: Buffer) -> Accepts:
        return lambda each: isinstance(each, Load) and each.buffer == buffer

    def is_padded(buffer: Buffer) -> Accepts:
        return lambda each: is_load(buffer)(each) and isinstance(each, Load) and any(each.pad)

    def is_gemm(*, depthwise: bool) -> Accepts:
        return lambda each: (isinstance(each, Gemm)
                             and bool(each.flags & GemmFlags.DEPTHWISE) == depthwise)

    def is_operation(kind: type[Alu] | type[AluI], op: AluOp) -> Accepts:
        return lambda each: isinstance(each, kind) and each.op == op

    def is_requantize(rounding: RequantizeFlags, to_acc: RequantizeFlags) -> Accepts:
        return lambda each: (isinstance(each, Requantize)
                             and each.flags & (ROUNDINGS | RequantizeFlags.ACC)
                             == rounding | to_acc)

    def is_store(buffer: Buffer) -> Accepts:
        return lambda each: isinstance(each, Store) and each.buffer == buffer

    found: dict[str, list[Accepts]] = {
        "load": [make(buffer) for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8)
                 for make in (is_load, is_padded)],
        "gemm": [is_gemm(depthwise=depthwise) for depthwise in (False, True)] * 3,
        "window": [lambda each: isinstance(each, Window)] * 4,
        "alu": [is_operation(Alu, op) for op in AluOp],
        "alui": [is_operation(AluI, op) for op in AluOp],
        "requantize": [is_requantize(rounding, to_acc)
                       for rounding in (RequantizeFlags(0), RequantizeFlags.EVEN,
                                        RequantizeFlags.AWAY)
                       for to_acc in (RequantizeFlags(0), RequantizeFlags.ACC)],
        "table": [lambda each: True] * 2,
        "store": [is_store(buffer) for buffer in (Buffer.OUT, Buffer.ACC)] * 2,
        "sync": [lambda each: True] * 2,
    }
    return found[name]


def _draw_variant(draft: Draft, name: str, accepts: Accepts) -> list[Instruction]:
    """An instruction, and what makes its effect visible: products of what was loaded, results that
    were looked up."""
    if name == "sync":
        return [Sync(action=SyncAction.BARRIER), _draw(draft, "alui", accepts)]
    found = _draw(draft, name, accepts)
    if isinstance(found, Load) and found.buffer in (Buffer.INP, Buffer.WGT):
        return [found, _draw(draft, "gemm", lambda each: True)]
    if name == "table":
        return [found, _draw(draft, "requantize", lambda each: isinstance(each, Requantize)
                             and bool(each.flags & RequantizeFlags.LOOKUP))]
    return [found]


def _draw(draft: Draft, name: str, accepts: Accepts) -> Instruction:
    for _ in range(ATTEMPTS):
        found = MAKERS[name](draft)
        if found is not None and accepts(found) and _does_something(found):
            return found
    raise AssertionError(f"{name}: no such variant in {ATTEMPTS} attempts")


def _does_something(instruction: Instruction) -> bool:
    """Random programs also have instructions with empty loops."""
    sizes = (*getattr(instruction, "loops", ()), *getattr(instruction, "shape", ()),
             getattr(instruction, "count", 1))
    return all(sizes)


def _reload_micro_ops(draft: Draft) -> list[Instruction]:
    """Micro-ops in the place of others, then all in their own again, and a product."""
    window, tile = draft.windows[Buffer.UOP], draft.config.tile_bytes(Buffer.UOP)
    shifted, right = (Load(buffer=Buffer.UOP, segment=CONSTANTS, sram=window.first,
                           offset=first * tile, shape=(1, 1, window.tiles - first))
                      for first in (1, 0))
    return [shifted, right, _draw(draft, "gemm", lambda each: True)]
