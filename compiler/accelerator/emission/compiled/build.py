"""A nest as tables of numbers, for compiled code to walk through (`walk`).

Loops, conditions and allocations become operations with jumps; indices become affine forms over the
values of loops; intrinsics and transfers become sites. What no table can say, such as virtual
threads or a rule whose instructions do not simply follow their operands, is left to `emit.Emitter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np

from .....base.arrays import Array
from .....isa.instructions import INSTRUCTION_BYTES
from .....isa.instructions import Buffer as Scratchpad
from .....isa.stream import Stream, from_bytes
from ....expression.affine import Affine, margin
from ....expression.expression import Axis
from ....expression.intervals import conjuncts
from ....nest import nest as ir
from ...selection.instruction_rules import Products
from ...selection.instructions import longest_sequence
from ...selection.intrinsic import Intrinsic, find_intrinsic
from ..conditions import Limit
from ..placed_nest import PlacedNest, ahead_of, ahead_sections
from ..sites import CopySite, IntrinsicSite, constant_start, peel_loops
from ..sum_starts import copied_tiles
from . import nest_arrays as tables
from .jit import bind
from .nest_arrays import MOST_AXES
from .plans import current_store, plan_intrinsic
from .walk import walk
from .walk_memory import MOST_OPERANDS, MOST_RANK, Sizes, new_state, with_more_room
from .words import (
    UOP_WORD,
    UnsupportedError,
    fill_word,
    is_known,
    load_word,
    store_word,
    word_of,
)

KIND = (tables.SITE.names or ()).index("kind")
SCOPES = list(ir.Scope)


class Builder:
    """Makes the tables of a nest, and the plans of visits that a walk asks for."""

    def __init__(self, placed: PlacedNest):
        self.placed, self.config = placed, placed.config
        self.store = current_store()
        self.operations: list[list[int]] = []
        self.slots: dict[Axis, int] = {}
        self.form_numbers: dict[tuple[object, ...], int] = {}
        self.constants: list[int] = []                  # of forms ...
        self.ends = [0]                                 # ... and where their terms end,
        self.term_slots: list[int] = []                 # each with the slot of an axis ...
        self.coefficients: list[int] = []
        self.buffers = {buffer: number for number, buffer in enumerate(placed.places)}
        self.contents: dict[ir.Buffer, tuple[int, int]] = {}
        self.sites: list[tuple[int, ...]] = []
        self.extents: list[int] = []
        self.limits: list[tuple[int, ...]] = []
        self.operands: list[tuple[int, ...]] = []
        self.steps: list[int] = []
        self.transfers: list[tuple[int, ...]] = []
        self.sides: list[tuple[int, ...]] = []
        self.words: dict[bytes, int] = {UOP_WORD: tables.UOP_LOAD, fill_word(0): tables.CLEAR}
        self.walks: list[tuple[int, ...]] = []
        self.walk_steps: list[tuple[int, int]] = []
        self.saved: list[int] = []
        self.delays = 1
        self.visited: list[tuple[IntrinsicSite, Intrinsic]] = []
        self.asks_all = not all(is_known(find_intrinsic(each.intrinsic, placed.intrinsics))
                                for each in ir.statements_of(placed.nest.body)
                                if isinstance(each, ir.Invoke))
        self.add(placed.nest.body)

    # Statements

    def add(self, statement: ir.Statement) -> None:
        """The operations of a statement."""
        innermost = peel_loops(statement)[2]
        if isinstance(innermost, ir.Invoke | ir.Start):
            self._intrinsic(statement, innermost)
            return
        match statement:
            case ir.Sequence():
                for each in statement.statements:
                    self.add(each)
            case ir.Allocate():
                self._allocate(statement)
                self.add(statement.body)
            case ir.Loop(kind=ir.LoopKind.SERIAL | ir.LoopKind.UNROLLED):
                self._loop(statement)
            case ir.When():
                at = self._when(statement)
                self.add(statement.body)
                self.operations[at][4] = len(self.operations)
            case ir.Copy():
                self._copy(statement)
            case _:
                raise UnsupportedError

    def _operation(self, kind: int, *, slot: int = 0, first: int = 0, count: int = 0,
                   target: int = 0, delay: int = 0, extent: int = 0, sections: int = 1) -> int:
        self.operations.append([kind, slot, first, count, target, delay, extent, sections])
        return len(self.operations) - 1

    def _slot(self, axis: Axis) -> int:
        """Where the value of an axis lies; beside it is room for a counter."""
        return self.slots.setdefault(axis, 2 * len(self.slots))

    def _loop(self, loop: ir.Loop) -> None:
        if loop.axis.extent < 1:
            raise UnsupportedError
        if ahead_of(loop):
            self._ahead(loop)
            return
        slot = self._slot(loop.axis)
        begin = self._operation(tables.LOOP, slot=slot) + 1
        self.add(loop.body)
        self._operation(tables.NEXT, slot=slot, extent=loop.axis.extent, target=begin)

    def _ahead(self, loop: ir.Loop) -> None:
        """A counter runs through all iterations and some more; each section of the body is in an
        iteration of its own (`placed_nest.ahead_sections`)."""
        allocated, sections = ahead_sections(loop)
        slot, extent, first = self._slot(loop.axis), loop.axis.extent, len(self.saved)
        self.delays = max(self.delays, len(sections))
        self.saved += [self.buffers[each.buffer] for each in allocated]
        begin = self._operation(tables.LOOP, slot=slot + 1) + 1
        select = self._operation(tables.SELECT, slot=slot, extent=extent)
        for each in allocated:
            self._allocate(each)
        self._operation(tables.SAVE, slot=slot, first=first, count=len(allocated),
                        sections=len(sections))
        self.operations[select][4] = len(self.operations)
        for delay, parts in enumerate(sections):
            select = self._operation(tables.SELECT, slot=slot, extent=extent, delay=delay,
                                     first=first, count=len(allocated), sections=len(sections))
            for part in parts:
                self.add(part)
            self.operations[select][4] = len(self.operations)
        self._operation(tables.NEXT, slot=slot + 1, extent=extent + len(sections) - 1,
                        target=begin)

    def _when(self, statement: ir.When) -> int:
        rooms = [margin(each) for each in conjuncts(statement.condition)]
        forms = [self._fresh_form(each) for each in rooms if each is not None]
        if len(forms) < len(rooms):
            raise UnsupportedError
        return self._operation(tables.WHEN, first=forms[0], count=len(forms))

    def _allocate(self, statement: ir.Allocate) -> None:
        buffer, placed = statement.buffer, self.placed
        if buffer not in self.buffers or buffer in self.contents:
            raise UnsupportedError
        start = constant_start(statement, placed.nest.inputs) if buffer in placed.stable else None
        self.contents[buffer] = (0, -1) if start is None else (self._fresh_forms(start), len(start))
        self._operation(tables.ALLOCATE, first=self.buffers[buffer])

    # Indices

    def _form(self, form: Affine) -> int:
        """The number of an affine form. The value of each of its axes is known where it is used."""
        key = (form.constant, *form.terms.items())
        if key not in self.form_numbers:
            self.form_numbers[key] = self._fresh_form(form)
        return self.form_numbers[key]

    def _fresh_form(self, form: Affine) -> int:
        for axis, each in form.terms.items():
            slot = self.slots.get(axis)
            if slot is None:
                raise UnsupportedError
            self.term_slots.append(slot)
            self.coefficients.append(each)
        self.constants.append(form.constant)
        self.ends.append(len(self.term_slots))
        return len(self.constants) - 1

    def _fresh_forms(self, forms: Iterable[Affine]) -> int:
        """The number of the first of several, one after the other."""
        first = len(self.constants)
        for each in forms:
            self._fresh_form(each)
        return first

    # Sites

    def _intrinsic(self, statement: ir.Statement, innermost: ir.Invoke | ir.Start) -> None:
        placed = self.placed
        intrinsic = find_intrinsic(innermost.intrinsic, placed.intrinsics)
        site = IntrinsicSite(statement, placed.places, placed.slides)
        motion, is_start = intrinsic.motion, isinstance(innermost, ir.Start)
        if site.blocks is not None or (motion is None and not is_start) or (
                len(site.axes) > MOST_AXES or len(site.operands) > MOST_OPERANDS):
            raise UnsupportedError
        local = {axis: place for place, axis in enumerate(site.axes)}
        limits = [self._limit(each, local) for each in site.limits]
        slide = -1
        if site.slide is not None:
            slide = len(self.limits)
            self.limits.append(self._limit(site.slide, local))
        rule, word = self._rule(intrinsic, innermost)
        kind = 0 if rule != tables.BY_PLAN else self.store.kind_of((
            intrinsic, self.config, tuple(site.in_acc),
            tuple(tuple(operand.steps) for operand in site.operands)))
        self.sites.append((
            len(self.extents), len(site.axes), len(self.limits), len(limits), len(self.operands),
            len(site.operands), int(intrinsic.begins),
            innermost.value if isinstance(innermost, ir.Start) else _mode_of(intrinsic), slide,
            site.ring_step, kind, rule, word))
        self.limits += limits
        self.extents += [axis.extent for axis in site.axes]
        for place, operand in enumerate(site.operands):
            anchor, multiple = ((motion.anchors[place], motion.multiples[place])
                                if motion is not None and not is_start else (place, 1))
            self.operands.append((self.buffers[operand.buffer], self._form(operand.start),
                                  len(self.steps), int(place in site.in_acc), anchor, multiple))
            self.steps += operand.steps
        self.visited.append((site, intrinsic))
        self._operation(tables.START if is_start else tables.INVOKE, first=len(self.sites) - 1)

    def _rule(self, intrinsic: Intrinsic, innermost: ir.Invoke | ir.Start) -> tuple[int, int]:
        """Who writes the words of a site, and the word that they begin with. Micro-ops are shared,
        so rules of others and those of products are asked in the same way."""
        if isinstance(innermost, ir.Start):
            return tables.FILL, 0 if intrinsic.begins else self._word(fill_word(innermost.value))
        rule, word = word_of(intrinsic)
        if rule == tables.BY_PLAN or (rule == tables.PRODUCT and self.asks_all):
            return tables.BY_PLAN, 0
        return rule, self._word(word)

    def _word(self, word: bytes) -> int:
        return self.words.setdefault(word, len(self.words))

    def _limit(self, limit: Limit, local: Mapping[Axis, int]) -> tuple[int, int, int]:
        return (self._form(limit.room), -1 if limit.axis is None else local[limit.axis],
                limit.step)

    def _copy(self, copy: ir.Copy) -> None:
        placed = self.placed
        site = CopySite(copy, self.config, placed.places, placed.bits)
        transfer, chip, target = site.transfer, site.chip.buffer, copy.target
        if transfer.interleave is not None or chip.interleave is not None or (
                2 * len(transfer.sides) > tables.KEY or len(site.start) > MOST_RANK):
            raise UnsupportedError
        bordered = transfer.loads and target.extents == target.buffer.shape and (
            target.buffer in placed.stable)
        in_acc, segment = chip.scope == ir.Scope.ACC, placed.segments[site.dram.buffer]
        scratchpad, padding = transfer.scratchpad, copy.padding or 0
        word, inside = [self._word(load_word(scratchpad, segment, each))
                        for each in (padding, 0)] if transfer.loads else [
                            self._word(store_word(scratchpad, segment))] * 2
        self.transfers.append((
            self.buffers[chip], self.buffers[chip] if transfer.loads else -1,
            self._form(site.tile), self._fresh_forms(site.start), len(site.start),
            len(self.sides), len(transfer.sides), transfer.tile_rows, transfer.part_rows,
            int(transfer.loads), int(bordered), self._walk(site) if in_acc else 0, int(in_acc),
            int(copy.padding is not None), transfer.tile_bytes, word, inside))
        self.sides += [(size, side.extent, side.dram, side.pad) for size, side
                       in zip(transfer.sizes, transfer.sides, strict=True)]
        self._operation(tables.COPY, first=len(self.transfers) - 1)

    def _walk(self, site: CopySite) -> int:
        """The number of the walk of a copy through its tiles."""
        walks = copied_tiles(0, site.chip).walks
        reach = [(walk.extent - 1) * walk.steps[0] for walk in walks]
        self.walks.append((len(self.walk_steps), len(walks), sum(min(each, 0) for each in reach),
                           sum(max(each, 0) for each in reach), 0))
        self.walk_steps += [(walk.extent, walk.steps[0]) for walk in walks]
        return len(self.walks) - 1

    # Arrays

    def arrays(self) -> tables.Tables:
        """The tables, complete."""
        lanes = any(buffer.scope == ir.Scope.ACC and buffer.parts > 1 for buffer in self.buffers)
        begin, slots, coefficients, constants, extents, steps, saved, fields = _slices([
            self.ends, self.term_slots, self.coefficients, self.constants, self.extents,
            self.steps, self.saved, [self.config.tiles(Scratchpad.UOP), int(lanes),
                                     longest_sequence(self.config)]])
        operations, buffers, sites, limits, operands, transfers, sides = _records([
            (self.operations, tables.OPERATION), (self._buffer_rows(), tables.BUFFER),
            (self.sites, tables.SITE), (self.limits, tables.LIMIT),
            (self.operands, tables.OPERAND), (self.transfers, tables.TRANSFER),
            (self.sides, tables.SIDE)])
        return tables.Tables(
            operations, tables.Forms(begin, slots, coefficients, constants), buffers, sites,
            extents, limits, operands, steps, transfers, sides, saved, fields,
            np.frombuffer(bytearray().join(self.words), np.uint8).reshape(-1, INSTRUCTION_BYTES))

    def _buffer_rows(self) -> list[tuple[int, ...]]:
        rows: list[tuple[int, ...]] = []
        copy = 0
        for buffer, place in self.placed.places.items():
            rows.append((place.first, place.tiles, place.step, place.copies,
                         SCOPES.index(buffer.scope), buffer.parts,
                         *self.contents.get(buffer, (0, -1)), copy))
            copy += place.copies
        return rows

    def sizes(self) -> Sizes:
        """Of what a walk remembers."""
        return Sizes(
            len(self.slots), len(self.buffers),
            sum(each.copies for each in self.placed.places.values()), self.delays,
            self.config.tiles(Scratchpad.ACC) * max(1, self.config.acc_groups), self.walks,
            self.walk_steps)

    def plan(self, state: tables.State) -> None:
        """Make the plan that a walk misses."""
        number = int(state.key[tables.KEY])
        key = state.key[:state.numbers[tables.KEYS]].tolist()
        with self.store.lock:
            plan_intrinsic(self.store, self.sites[number][KIND],
                           *self.visited[number], self.config, key)


def _mode_of(intrinsic: Intrinsic) -> int:
    """The mode of products: micro-ops of another mode mean other tiles."""
    return int(intrinsic.rule.mode) if isinstance(intrinsic.rule, Products) else 0


def _slices(columns: Sequence[Sequence[int]]) -> list[tables.Numbers]:
    """Arrays of several columns, made at once: there are many, and all are short."""
    ends = [0, *accumulate(map(len, columns))]
    numbers = np.array([*chain.from_iterable(columns)], np.int64)
    return [numbers[begin:end] for begin, end in pairwise(ends)]


def _records(given: Sequence[tuple[Sequence[Sequence[int]], np.dtype[np.void]]]) -> list[
        tables.Records]:
    """The same for rows of several kinds."""
    found = _slices([[*chain.from_iterable(rows)] for rows, _ in given])
    return [each.view(kind) for each, (_, kind) in zip(found, given, strict=True)]


def emit_words(placed: PlacedNest, most: int) -> tuple[Stream, Array] | None:
    """The instructions of a nest, at most so many, and its micro-ops, without tokens. None if only
    the emitter itself can emit it, or refuses to and says why."""
    try:
        builder = Builder(placed)
        arrays, (state, output) = builder.arrays(), new_state(builder.sizes())
        fixed, room = bind(arrays), (bind(state), bind(output))
        while True:
            end = walk(fixed, builder.store.arrays(), *room)
            if end == tables.REFUSED or state.numbers[tables.WRITTEN] > most:
                return None
            if end == tables.DONE:
                break
            if end == tables.MISSING:
                builder.plan(state)
            else:
                state, output = with_more_room(state, output)
                room = bind(state), bind(output)
    except UnsupportedError:
        return None
    written, uops = state.numbers[tables.WRITTEN], state.numbers[tables.UOPS]
    return from_bytes(output.words[:written].tobytes()), output.uops[:uops].copy()
