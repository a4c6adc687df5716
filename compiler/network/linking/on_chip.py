"""Tensors that stay on the chip between two layers: their places in out, and both layers'
instructions changed accordingly.

Between neighbours that share one, a tensor lives as long as both; what else a layer has in out, as
long as the layer. Both are planned like tensors in DRAM are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import Buffer, Gemm, GemmFlags, Load, Opcode, Window
from ....isa.program import Program
from ....isa.stream import Stream, join
from ...accelerator.emission.footprint import footprint
from ...errors import CompileError
from .dram_places import Grid
from .memory_plan import Life, plan_memory
from .on_chip_analysis import Input, Result, input_of, leaves_late, result_of, segment_of
from .retarget_alu import retarget

OUTPUT = "output"
REMEMBERED = 128            # programs of layers


class Linked(Protocol):
    """What is asked of a layer."""

    @property
    def program(self) -> Program: ...
    @property
    def takes(self) -> str: ...         # the input that the layer before left on the chip, if any
    @property
    def stays(self) -> bool: ...        # whether its result is left there


@dataclass(frozen=True)
class Stay:
    """A tensor in out, from a tile on, as its reader wants it."""

    first: int
    wanted: Input


@dataclass(frozen=True)
class OnChip:
    """What of a layer is in out: what it takes there, what it leaves, and where all else begins, if
    that matters."""

    taken: Stay | None = None
    left: Stay | None = None
    rest: int | None = None


def plan_on_chip(layers: Sequence[Linked], config: Config) -> list[OnChip]:
    """For each layer of a stream. A layer's turn has two halves: in the second, nothing is read any
    more of what it took, if all that is read before it leaves a result."""
    wanted = [_expected_input(layers, number) for number in range(len(layers))]
    lives: dict[str, Life] = {}
    for number, layer in enumerate(layers):
        if layer.stays or layer.takes:
            lives[f"rest {number}"] = Life(_other_tiles(layer), 2 * number, 2 * number + 1)
        each = wanted[number]
        if each is not None:
            lives[f"tensor {number}"] = Life(
                each.tiles, 2 * number + leaves_late(layer.program, OUTPUT),
                2 * number + 2 + (not leaves_late(layers[number + 1].program, OUTPUT)))
    plan = plan_memory(lives, Grid(config.inp_groups, config.inp_groups))   # whole activation tiles
    if lives and plan.peak > config.tiles(Buffer.OUT):
        raise CompileError(f"what stays on the chip takes {plan.peak} tiles of out, but there are "
                           f"{config.tiles(Buffer.OUT)}")
    stays = [None if each is None else Stay(plan.offsets[f"tensor {number}"], each)
             for number, each in enumerate(wanted)]
    return [OnChip(taken, left, plan.offsets.get(f"rest {number}"))
            for number, (taken, left) in enumerate(zip([None, *stays], stays, strict=False))]


def can_stay(first: Program, second: Program) -> bool:
    """Whether the result of a program may be left on the chip for another, as its data."""
    try:
        left = Stay(0, _expected_by(first, second, "data"))
        made = result_of(first, OUTPUT)
        assert made is not None, "it is wanted"
        _leaving(first.code, made, left)
    except CompileError:
        return False
    return left.wanted.tiles <= first.config.tiles(Buffer.OUT)


def _expected_input(layers: Sequence[Linked], number: int) -> Input | None:
    """How the next layer wants to find the result of a layer that stays on the chip."""
    if not layers[number].stays:
        return None
    after = layers[number + 1]
    return _expected_by(layers[number].program, after.program, after.takes)


def _expected_by(first: Program, second: Program, name: str) -> Input:
    wanted = input_of(second, name)
    if wanted is None or result_of(first, OUTPUT) is None:
        raise CompileError("a tensor cannot stay on the chip: it is not read, or not made, whole")
    return wanted


def _other_tiles(layer: Linked) -> int:
    """Tiles of out that a layer uses besides what it leaves there."""
    made = result_of(layer.program, OUTPUT) if layer.stays else None
    return _out_tiles(layer.program) if made is None else made.rest


@lru_cache(REMEMBERED)
def _out_tiles(program: Program) -> int:
    return footprint(program.code)[Buffer.OUT]


def rewrite_layer(code: Stream, program: Program, takes: str, here: OnChip) -> Stream:
    """The instructions of a layer, all of which have their tiles but for what it takes and
    leaves."""
    if here.taken is None and here.left is None:
        return code
    dropped = np.zeros(len(code), bool)
    replaced: dict[int, Stream] = {}
    if here.taken is not None:
        loads = program.code.view(Load.dtype())
        dropped |= (code["opcode"] == Opcode.LOAD) & (
            loads["segment"] == segment_of(program, takes))
        for kind in (Gemm, Window):
            code.view(kind.dtype())["flags"][code["opcode"] == kind.opcode] |= np.uint8(
                GemmFlags.OUT)
    if here.left is not None:
        made = result_of(program, OUTPUT)
        assert made is not None, "planned"
        dropped[made.stores] = True
        replaced = _leaving(code, made, here.left)
        begin = min(replaced) if leaves_late(program, OUTPUT) else int(
            np.flatnonzero(code["opcode"] != Opcode.LOAD)[0])
        replaced[begin] = join([here.left.wanted.fill_border(here.left.first),
                                replaced.get(begin, code[begin:begin + 1])])
    pieces, end = [], 0
    for position in sorted(replaced):
        pieces += [code[end:position][~dropped[end:position]]]
        pieces += [replaced[position]] if not dropped[position] else []
        end = position + 1
    return join([*pieces, code[end:][~dropped[end:]]])


def _leaving(code: Stream, made: Result, left: Stay) -> dict[int, Stream]:
    """Instructions that make the tensor, where its reader wants it."""
    found: dict[int, Stream] = {}
    for position, tiles in made.made.items():
        fitted = retarget(code[position:position + 1], left.first + left.wanted.places[tiles])
        if fitted is None:
            raise CompileError("a tensor cannot stay on the chip: three loops do not write it as "
                               "its reader wants it")
        found[position] = fitted
    return found
