"""Operands that the ALU reads in one cycle, in different banks of the accumulator.

A bank gives one operand a cycle. Where the usual places leave both operands of an operation in one
bank, all orders of the buffers are compared, each beginning where the one before it ends or in the
next bank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ....isa.config import Config
from ....isa.instructions import Buffer as Scratchpad
from ...nest.nest import (
    Allocate,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Nest,
    Scope,
    Statement,
    statements_of,
)
from .scratchpads import Place

COMBINED = 2                # buffers: a result, and what it is combined with
MOST_BUFFERS = 5            # whose orders are compared
REMEMBERED = 4096


class Lot(NamedTuple):
    """A buffer to be placed: the tiles of a copy, and how many copies there are."""

    tiles: int
    copies: int


class Wishes(NamedTuple):
    """What should not meet in a bank, by numbers of buffers: operands that are read in one cycle,
    and a buffer that is loaded with one that the ALU writes, which goes first."""

    operands: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]


class Places(NamedTuple):
    """Where each buffer begins, and what meets in a bank."""

    cost: tuple[int, int]
    begins: tuple[int, ...]


def separate_operands(nest: Nest, config: Config,
                      places: Mapping[Buffer, Place]) -> dict[Buffer, Place]:
    """The same places, or others with fewer operands of one operation in a bank."""
    statements = statements_of(nest.body)
    pairs = {pair for each in statements if isinstance(each, Invoke)
             for pair in combined_pairs(each)}
    buffers = [each.buffer for each in statements if isinstance(each, Allocate)
               and each.buffer.scope == Scope.ACC]
    if not pairs or _uses_macs(statements) or not _are_nested(statements, buffers) or any(
            places[each].pitch is not None or places[each].step < places[each].tiles
            for each in buffers):
        return {**places}
    number = {buffer: place for place, buffer in enumerate(buffers)}
    lots = tuple(Lot(places[each].tiles, places[each].copies) for each in buffers)
    wishes = Wishes(tuple(sorted((number[one], number[other]) for one, other in pairs)),
                    tuple(_writes(statements, number)))
    today = [[places[each].of(0, turn) for turn in range(places[each].copies)]
             for each in buffers]
    meetings, _ = _cost(today, lots, wishes, config.acc_bank_tiles)
    best = _best_places(lots, wishes, config.acc_bank_tiles,
                        config.tiles(Scratchpad.ACC)) if meetings else None
    if best is None or best.cost[0] >= meetings:
        return {**places}
    return {**places, **{buffer: replace(places[buffer], first=begin, step=places[buffer].tiles)
                         for buffer, begin in zip(buffers, best.begins, strict=True)}}


def combined_pairs(invoke: Invoke) -> Iterator[tuple[Buffer, Buffer]]:
    """The result of an intrinsic and what it is combined with: both are operands."""
    buffers = [region.buffer for region in invoke.regions]
    if len(buffers) == COMBINED and buffers[0] is not buffers[1] and all(
            each.scope == Scope.ACC for each in buffers):
        yield buffers[0], buffers[1]


def _uses_macs(statements: Sequence[Statement]) -> bool:
    """Whether the MAC array sums up, too: the usual places keep it and the ALU apart."""
    return any(isinstance(each, Allocate) and each.buffer.scope == Scope.WGT
               for each in statements)


def _are_nested(statements: Sequence[Statement], buffers: Sequence[Buffer]) -> bool:
    """Whether a few buffers are allocated once each, inside one another, and not for threads."""
    allocations = [each for each in statements
                   if isinstance(each, Allocate) and each.buffer in buffers]
    return len(allocations) == len(buffers) <= MOST_BUFFERS and all(
        inner in statements_of(outer.body) for outer, inner in pairwise(allocations)) and not any(
        isinstance(each, Loop) and each.kind == LoopKind.THREADS for each in statements)


def _writes(statements: Sequence[Statement],
            number: Mapping[Buffer, int]) -> Iterator[tuple[int, int]]:
    loaded = {each.target.buffer for each in statements if isinstance(each, Copy)}
    written = {each.regions[0].buffer for each in statements if isinstance(each, Invoke)}
    for one in number:
        for other in number:
            if one in loaded and other in written and one is not other:
                yield number[one], number[other]


def _cost(begins: Sequence[Sequence[int]], lots: Sequence[Lot], wishes: Wishes,
          bank: int) -> tuple[int, int]:
    """How many copies of operands meet in a bank, and how many loads with writes of the ALU."""
    banks = [[(begin // bank, (begin + lot.tiles - 1) // bank) for begin in each]
             for each, lot in zip(begins, lots, strict=True)]

    def meetings(pairs: Sequence[tuple[int, int]]) -> int:
        return sum(first <= end and begin <= last for one, other in pairs
                   for first, last in banks[one] for begin, end in banks[other])
    return meetings(wishes.operands), meetings(wishes.writes)


@lru_cache(REMEMBERED)
def _best_places(lots: tuple[Lot, ...], wishes: Wishes, bank: int,
                 capacity: int) -> Places | None:
    """The best of all orders; None if nothing fits."""
    found = [Places(_cost([[first + turn * lot.tiles for turn in range(lot.copies)]
                           for first, lot in zip(begins, lots, strict=True)], lots, wishes, bank),
                    begins)
             for begins in _orders(lots, {}, 0, bank, capacity)]
    return min(found, default=None)


def _orders(lots: Sequence[Lot], begins: Mapping[int, int], top: int, bank: int,
            capacity: int) -> Iterator[tuple[int, ...]]:
    if len(begins) == len(lots):
        yield tuple(begins[each] for each in range(len(lots)))
    for number, (tiles, copies) in enumerate(lots):
        if number not in begins:
            for begin in {top, -(-top // bank) * bank}:
                end = begin + tiles * copies
                if end <= capacity:
                    yield from _orders(lots, {**begins, number: begin}, end, bank, capacity)
