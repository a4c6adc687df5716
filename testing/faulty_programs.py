"""Valid programs made wrong in one place, each way that an accelerator must notice or endure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..isa.address_map import place_windows
from ..isa.instructions import ISA, AluI, Buffer, Engine, Engines, Load, Store
from ..isa.program import Access, Program
from ..isa.record import fields_of
from ..isa.stream import BY_OPCODE, Stream, as_bytes, encode, from_bytes, positions_of

INDICES = ("sram", "dst", "src", "lhs", "rhs", "params", "uop")
LARGE = (255, 256, 511, 512, 1000, 4095, 65535)


def inject_fault(program: Program, rng: random.Random) -> tuple[Program, range]:
    """The program with one thing wrong, and the addresses that fail, which may be none."""
    if rng.random() < 0.2:
        return program, _failing(program, rng)
    while True:
        code = rng.choice(WAYS)(program, rng)
        if code is not None:
            wrong = replace(program, code=code, labels={})
            if not _computes_micro_ops(wrong):
                return wrong, range(0)


def _failing(program: Program, rng: random.Random) -> range:
    sizes = [as_bytes(program.code).size, *(segment.size for segment in program.segments)]
    number = rng.randrange(len(sizes))
    start = place_windows(program)[number] + rng.randrange(sizes[number])
    return range(start, start + rng.choice((1, 8, 64, 500)))


def _bad_index(program: Program, rng: random.Random) -> Stream | None:
    return _change_field(program, rng, INDICES, lambda value: rng.choice(LARGE))


def _bad_stride(program: Program, rng: random.Random) -> Stream | None:
    names = ("dst_stride", "src_stride", "wgt_stride", "rhs_stride", "params_stride",
             "sram_pitch")
    return _change_field(program, rng, names,
                         lambda value: rng.choice((-300, -40, 7, 40, 300, 5000)))


def _bad_alignment(program: Program, rng: random.Random) -> Stream | None:
    return _change_field(program, rng, ("offset", "stride"),
                         lambda value: value + rng.randint(1, 3))


def _leave_window(program: Program, rng: random.Random) -> Stream | None:
    name = rng.choice(("offset", "stride", "segment", "shape"))
    value = {"offset": rng.choice((1 << 13, 1 << 16, (1 << 32) - 64)),
             "stride": rng.choice((-4096, 4096, 1 << 20)), "segment": rng.randrange(8),
             "shape": rng.choice((40, 300))}[name]
    return _change_field(program, rng, (name,), lambda _: value)


def _change_field(program: Program, rng: random.Random, names: tuple[str, ...],
                  change: Callable[[int], int]) -> Stream | None:
    """One field of one instruction that has one of these."""
    code = program.code.copy()
    position = rng.randrange(len(code))
    kind = BY_OPCODE[int(code["opcode"][position])]
    there = [field.name for field in fields_of(kind) if field.name in names]
    if not there:
        return None
    word = code.view(kind.dtype())[position]
    name = rng.choice(there)
    values = np.atleast_1d(word[name]).copy()
    place, limits = rng.randrange(values.size), np.iinfo(values.dtype)
    values[place] = min(max(change(int(values[place])), limits.min), limits.max)
    word[name] = values.reshape(np.shape(word[name])) if np.ndim(word[name]) else values[0]
    return code


def _lose_token(program: Program, rng: random.Random) -> Stream | None:
    """A wait or post that is not made, or made in vain."""
    code = program.code.copy()
    position, name = rng.randrange(len(code)), rng.choice(("wait", "post"))
    engine = BY_OPCODE[int(code["opcode"][position])].engine
    other = Engine(rng.randrange(len(Engine)))
    if engine is None or other == engine:
        return None
    code[name][position] ^= 1 << other
    return code


def _too_many_tokens(program: Program, rng: random.Random) -> Stream | None:
    if rng.random() < 0.7:
        return None             # it makes long programs
    many = encode([AluI(loops=(0, 1, 1), post=Engines.STORE)] * (program.config.token_limit + 1))
    if len(many) > 1000:
        return None
    place = rng.randrange(len(program.code))
    return np.concatenate([program.code[:place], many, program.code[place:]])


def _cut_off(program: Program, rng: random.Random) -> Stream:
    return program.code[:rng.choice((-1, rng.randrange(len(program.code))))].copy()


def _any_byte(program: Program, rng: random.Random) -> Stream:
    """Any byte of any instruction: most of the words are then no instructions."""
    raw = as_bytes(program.code).copy()
    raw[rng.randrange(len(raw)), rng.randrange(raw.shape[1])] = rng.choice(
        (0, 1, 2, 255, rng.randrange(256)))
    return from_bytes(raw.tobytes())


def _any_opcode(program: Program, rng: random.Random) -> Stream:
    code = program.code.copy()
    code["opcode"][rng.randrange(len(code))] = rng.choice((0, 255, *(each.opcode for each in ISA)))
    return code


WAYS: tuple[Callable[[Program, random.Random], Stream | None], ...] = (
    _bad_index, _bad_index, _bad_stride, _bad_alignment, _leave_window, _leave_window,
    _lose_token, _lose_token, _too_many_tokens, _cut_off, _any_byte, _any_byte, _any_opcode)


def _computes_micro_ops(program: Program) -> bool:
    """Whether micro-ops may come from where stores write: then time depends on computed data,
    which the twin does not follow."""
    _, loads = positions_of(program.code, Load)
    _, stores = positions_of(program.code, Store)
    written = {number for number in stores["segment"].tolist()
               if number < len(program.segments)
               and program.segments[number].access == Access.WRITE}
    return bool(np.isin(loads["segment"][loads["buffer"] == Buffer.UOP], sorted(written)).any())
