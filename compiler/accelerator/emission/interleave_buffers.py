"""Buffers whose tiles are narrower than those that lie in memory.

On an array with different blocks, results have tiles of `block_out` lanes and activations tiles of
`block_in`. Memory holds activations in tiles of the larger block. Where a program moves tiles of
the smaller one, several of them, side by side, are one of those in memory:

    block 0, 1 of a pixel    (n, c, y, x, lane)    →    (n, c // 2, y, x, c % 2, lane)

So channel blocks are interleaved in DRAM, and a buffer on the chip that is filled from there, or
stored, has the same order where its channels allow: then a transfer moves runs as long as those of
an array with equal blocks. Otherwise it moves tile by tile.

A depthwise product has the lanes of the smaller block, and addresses groups of so many lanes in
tiles of the larger one. A buffer of such tiles has narrow ones in a nest as well, in the same
order, but a group of them is one tile of the scratchpad: it is transferred, and computed on by the
ALU, as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ....isa.config import Config
from ...errors import CompileError
from ...expression.affine import Affine, affine
from ...expression.expression import Axis
from ...nest.nest import (
    TILE_RANK,
    Allocate,
    Buffer,
    Copy,
    Interleave,
    Invoke,
    Loop,
    LoopKind,
    Nest,
    Region,
    Scope,
    Start,
    Statement,
    When,
    statements_of,
    with_children,
)

IN_ORDER = (Scope.INP, Scope.ACC, Scope.OUT)    # in which instructions may walk in any order
ELEMENT_WISE_OPERANDS = 3               # a result, and what stands left and right
BLOCK_RANK = 5                          # dimensions of images from channel blocks on

Interleaves = Mapping[str, Interleave]  # by the name of a buffer in DRAM


def interleave_buffers(nest: Nest, interleaves: Interleaves, config: Config, *,
                       filled: bool = True) -> Nest:
    """The nest with some buffers of DRAM interleaved, and buffers on the chip where that helps:
    those of whole groups, and others if they may be `filled` up to whole groups. Buffers of groups
    of lanes always are."""
    found = {name: each for name, each in interleaves.items() if each.ways > 1}
    if not found:
        return nest
    known = {each.name for each in (*nest.inputs, *nest.outputs)}
    missing = [name for name in found if name not in known]
    if missing:
        raise CompileError(f"{missing[0]} is to be interleaved, but the nest has no such buffer")
    others = {each: replace(each, interleave=found[each.name])
              for each in (*nest.inputs, *nest.outputs) if each.name in found}
    others |= _on_chip(nest, others, filled) | _groups_of_lanes(nest, others, config)
    return replace(nest, inputs=tuple(others.get(each, each) for each in nest.inputs),
                   outputs=tuple(others.get(each, each) for each in nest.outputs),
                   body=_replace(nest.body, others))


def memory_shape(buffer: Buffer) -> tuple[int, ...]:
    """The dimensions of a buffer in the order in which they lie in memory."""
    order = buffer.interleave
    return buffer.shape if order is None else order.memory_shape(buffer.shape)


def is_spread(buffer: Buffer, order: Interleave) -> bool:
    """Whether neighbours along an interleaved dimension are apart without that: other dimensions
    lie between it and the tile. If none do, only its end is filled up."""
    return order.dimension < len(buffer.shape) - TILE_RANK - 1


class Run(NamedTuple):
    """Indices of an interleaved dimension that instructions walk through in at most two loops:
    whole groups, or a part of one."""

    first: int
    groups: int             # 0: a part of a group
    length: int             # indices of a group


def runs_of(first: int, count: int, ways: int) -> Iterator[Run]:
    """Indices from `first` on, in as few runs as possible."""
    end = first + count
    while first < end:
        groups = (end - first) // ways if first % ways == 0 else 0
        if groups:
            yield Run(first, groups, ways)
            first += groups * ways
        else:
            part = min(end, (first // ways + 1) * ways) - first
            yield Run(first, 0, part)
            first += part


def _on_chip(nest: Nest, in_dram: Mapping[Buffer, Buffer], filled: bool) -> dict[Buffer, Buffer]:
    """Buffers of scratchpads that may lie as those in DRAM do, from or to which they are copied."""
    wanted: dict[Buffer, Interleave] = {}
    barred: set[Buffer] = {each.buffer for each in statements_of(nest.body)
                           if isinstance(each, Allocate) and each.slide is not None}
    for each in statements_of(nest.body):
        if isinstance(each, Copy):
            for here, there in ((each.source, each.target), (each.target, each.source)):
                if here.buffer in in_dram:
                    order = in_dram[here.buffer].interleave
                    assert order is not None, "these are interleaved"
                    if not is_spread(here.buffer, order):
                        continue
                    if _is_copied_in_groups(here, there, order, filled) and (
                            wanted.setdefault(there.buffer, order) == order):
                        continue
                    barred.add(there.buffer)
    barred |= set(_conflicting_buffers(nest.body, wanted))
    while more := {each for pair in _results_and_left_operands(nest) if len(barred & pair) == 1
                   or not pair <= wanted.keys() for each in pair} - barred:
        barred |= more
    return {buffer: replace(buffer, interleave=order) for buffer, order in wanted.items()
            if buffer not in barred}


def _results_and_left_operands(nest: Nest) -> Iterator[set[Buffer]]:
    """Buffers that an element-wise operation walks through alike: its result and left operand."""
    for each in statements_of(nest.body):
        if isinstance(each, Invoke) and len(each.regions) == ELEMENT_WISE_OPERANDS and all(
                region.buffer.scope == Scope.ACC for region in each.regions):
            result, left, _ = each.regions
            yield {result.buffer, left.buffer}


def _is_copied_in_groups(dram: Region, chip: Region, order: Interleave, filled: bool) -> bool:
    """Whether a copy moves whole groups, so that both sides can have the same order."""
    place, ways = order.dimension, order.ways
    if chip.buffer.scope not in IN_ORDER or chip.buffer.tile_rows:
        return False
    count, size = chip.extents[place], dram.buffer.shape[place]
    if count < ways or count != chip.buffer.shape[place]:
        return False
    if count == size and (filled or count % ways == 0):
        return True                         # all of them: no loop moves them
    return count % ways == 0 and all(_is_multiple(affine(each.start[place]), ways)
                                     for each in (dram, chip))


def _groups_of_lanes(nest: Nest, in_dram: Mapping[Buffer, Buffer],
                     config: Config) -> dict[Buffer, Buffer]:
    """Buffers of scratchpads whose tiles are groups of lanes of those that the scratchpad has."""
    found: dict[Buffer, Buffer] = {}
    dimensions = _grouped_dimensions(nest, in_dram)
    blocks = {Scope.INP: config.block_in, Scope.ACC: config.block_out, Scope.OUT: config.block_out}
    for each in statements_of(nest.body):
        if isinstance(each, Allocate) and not each.buffer.tile_rows:
            buffer = each.buffer
            ways = blocks.get(buffer.scope, buffer.shape[-1]) // buffer.shape[-1]
            if ways > 1 and each.slide is not None:
                raise CompileError(f"{buffer.name} slides, which groups of lanes cannot")
            if ways > 1:
                order = Interleave(dimensions.get(buffer, max(0, len(buffer.shape) - BLOCK_RANK)),
                                   ways, whole=True)
                found[buffer] = replace(buffer, interleave=order)
    for each in statements_of(nest.body):
        if isinstance(each, Copy):
            for chip, dram in ((each.source, each.target), (each.target, each.source)):
                if chip.buffer in found and not _moves_whole_tiles(
                        dram, chip, found[chip.buffer].interleave, in_dram.get(dram.buffer)):
                    raise CompileError(f"a copy of {dram.buffer.name} cuts through its tiles; only "
                                       f"whole tiles are moved")
    return found


def _grouped_dimensions(nest: Nest, in_dram: Mapping[Buffer, Buffer]) -> dict[Buffer, int]:
    """Which dimension of a buffer is interleaved in DRAM, from or to which it is copied: channel
    blocks, or columns that share a tile."""
    found: dict[Buffer, int] = {}
    for each in statements_of(nest.body):
        if isinstance(each, Copy):
            for chip, dram in ((each.source, each.target), (each.target, each.source)):
                order = in_dram[dram.buffer].interleave if dram.buffer in in_dram else None
                if order is not None:
                    found[chip.buffer] = order.dimension
    return found


def _moves_whole_tiles(dram: Region, chip: Region, order: Interleave | None,
                       known: Buffer | None) -> bool:
    """Whether a copy of groups of lanes moves whole tiles, of which the last may be filled up."""
    if order is None or known is None or known.interleave is None or (
            known.interleave.dimension, known.interleave.ways) != (order.dimension, order.ways):
        return False
    place = order.dimension
    count, size = chip.extents[place], dram.buffer.shape[place]
    return count == chip.buffer.shape[place] and (count == size or (
        count % order.ways == 0
        and all(_is_multiple(affine(each.start[place]), order.ways) for each in (dram, chip))))


def _is_multiple(form: Affine | None, ways: int) -> bool:
    return form is not None and all(each % ways == 0
                                    for each in (form.constant, *form.terms.values()))


def _conflicting_buffers(statement: Statement, wanted: Mapping[Buffer, Interleave],
                         loops: tuple[Axis, ...] = ()) -> Iterator[Buffer]:
    """Buffers whose interleaved dimension an intrinsic walks along in more than one of the loops
    around it, in steps, or unlike that of another buffer."""
    if isinstance(statement, Loop) and statement.kind == LoopKind.SERIAL:
        yield from _conflicting_buffers(statement.body, wanted, (*loops, statement.axis))
    elif isinstance(statement, When):
        yield from _conflicting_buffers(statement.body, wanted, loops)
    elif isinstance(statement, Invoke):
        touched = [each for each in statement.regions if each.buffer in wanted]
        forms = [affine(each.start[wanted[each.buffer].dimension]) for each in touched]
        alike = len({wanted[each.buffer].ways for each in touched}) < 2 and all(
            each == forms[0] for each in forms)
        for region, form in zip(touched, forms, strict=True):
            steps = [] if form is None else [form.of(axis) for axis in loops if form.of(axis)]
            if form is None or not alike or steps not in ([], [1]):
                yield region.buffer
    elif isinstance(statement, Start):
        yield statement.target.buffer
    else:
        for child in statement.children():
            yield from _conflicting_buffers(child, wanted)


def _replace(statement: Statement, others: Mapping[Buffer, Buffer]) -> Statement:
    def region(each: Region) -> Region:
        return replace(each, buffer=others.get(each.buffer, each.buffer))

    match statement:
        case Copy():
            return replace(statement, target=region(statement.target),
                           source=region(statement.source))
        case Invoke():
            return replace(statement, regions=tuple(map(region, statement.regions)))
        case Start():
            return replace(statement, target=region(statement.target))
        case Allocate() if statement.buffer in others:
            statement = replace(statement, buffer=others[statement.buffer])
    children = tuple(_replace(child, others) for child in statement.children())
    return with_children(statement, children) if children else statement
