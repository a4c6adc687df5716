"""A nest as tables of numbers, for compiled code to walk through (`walk`).

Loops, conditions and allocations become operations with jumps; indices become affine forms over the
values of loops; intrinsics and transfers become sites. What no table can say, such as virtual
threads or a rule whose instructions do not simply follow their operands, is left to `emit.Emitter`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .....base.arrays import Array
from .....isa.instructions import INSTRUCTION_BYTES, Engine
from .....isa.instructions import Buffer as Scratchpad
from .....isa.stream import Stream, from_bytes
from ....errors import CompileError
from ....expression.affine import margin
from ....expression.expression import Axis
from ....expression.intervals import conjuncts
from ....nest import nest as ir
from ...selection.instruction_rules import Products
from ...selection.instructions import longest_sequence
from ...selection.intrinsic import Intrinsic, find_intrinsic
from ..conditions import Limit
from ..placed_nest import PlacedNest, ahead_of, ahead_sections
from ..sites import CopySite, IntrinsicSite, Peeled, constant_start, peel_loops
from ..sum_starts import copied_tiles
from ..transfers import Transfer
from . import nest_arrays as tables
from .around import Around, along_run
from .form_table import FormTable, records_of, slices_of
from .jit import bind
from .nest_arrays import MOST_AXES
from .plans import current_store, plan_intrinsic
from .walk import walk
from .walk_memory import MOST_OPERANDS, MOST_RANK, Sizes, new_room, with_more_room
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
NOT_CLIPPED = 0, 0, -1, 0               # limits, their number, that of a slide, and its step
NO_RUNS = 0, 0, -1, 0, 0, 0             # ways, where they begin, loop, by tile, and two sites
WRITTEN_OUT = (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)
SCOPES = {scope: number for number, scope in enumerate(ir.Scope)}


class Builder:
    """Makes the tables of a nest, and the plans of visits that a walk asks for."""

    def __init__(self, placed: PlacedNest):
        self.placed, self.config = placed, placed.config
        self.store = current_store()
        self.operations: list[list[int]] = []
        self.forms = FormTable()
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
        self.visited: list[tuple[Around, Intrinsic]] = []
        self.asks_all = not all(is_known(find_intrinsic(each.intrinsic, placed.intrinsics))
                                for each in ir.statements_of(placed.nest.body)
                                if isinstance(each, ir.Invoke))
        self.add(placed.nest.body)

    # Statements

    def add(self, statement: ir.Statement) -> None:
        """The operations of a statement."""
        if isinstance(statement, ir.Sequence):
            for each in statement.statements:
                self.add(each)
        elif isinstance(statement, ir.Allocate):
            self._allocate(statement)
            self.add(statement.body)
        elif isinstance(statement, ir.Copy):
            self._copy(statement)
        else:
            peeled = peel_loops(statement)
            if isinstance(peeled.innermost, ir.Invoke | ir.Start):
                self._intrinsic(peeled, peeled.innermost)
            else:
                self._around(statement, peeled.innermost)

    def _around(self, statement: ir.Statement, innermost: ir.Statement) -> None:
        """Loops and conditions, as far as they are around no intrinsic alone."""
        if isinstance(statement, ir.Sequence | ir.Allocate | ir.Copy):
            self.add(statement)
        elif isinstance(statement, ir.Loop) and statement.kind in WRITTEN_OUT:
            self._loop(statement, innermost)
        elif isinstance(statement, ir.When):
            at = self._when(statement)
            self._body(statement, innermost)
            self.operations[at][4] = len(self.operations)
        else:
            raise UnsupportedError

    def _body(self, statement: ir.Loop | ir.When, innermost: ir.Statement) -> None:
        if statement is innermost:              # what is inside has not been looked at
            self.add(statement.body)
        else:
            self._around(statement.body, innermost)

    def _operation(self, kind: int, *, slot: int = 0, first: int = 0, count: int = 0,
                   target: int = 0, delay: int = 0, extent: int = 0, sections: int = 1) -> int:
        operations = self.operations
        operations.append([kind, slot, first, count, target, delay, extent, sections])
        return len(operations) - 1

    def _loop(self, loop: ir.Loop, innermost: ir.Statement) -> None:
        if loop.axis.extent < 1:
            raise UnsupportedError
        if ahead_of(loop):
            self._ahead(loop)
            return
        slot = self.forms.slot(loop.axis)
        begin = self._operation(tables.LOOP, slot=slot) + 1
        self._body(loop, innermost)
        self._operation(tables.NEXT, slot=slot, extent=loop.axis.extent, target=begin)

    def _ahead(self, loop: ir.Loop) -> None:
        """A counter runs through all iterations and some more; each section of the body is in an
        iteration of its own (`placed_nest.ahead_sections`)."""
        allocated, sections = ahead_sections(loop)
        slot, extent, first = self.forms.slot(loop.axis), loop.axis.extent, len(self.saved)
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
        forms = [self.forms.add(each) for each in rooms if each is not None]
        if len(forms) < len(rooms):
            raise UnsupportedError
        return self._operation(tables.WHEN, first=forms[0], count=len(forms))

    def _allocate(self, statement: ir.Allocate) -> None:
        buffer, placed = statement.buffer, self.placed
        if buffer not in self.buffers or buffer in self.contents:
            raise UnsupportedError
        start = constant_start(statement, placed.nest.inputs) if buffer in placed.stable else None
        self.contents[buffer] = (0, -1) if start is None else (
            self.forms.add_row(start), len(start))
        self._operation(tables.ALLOCATE, first=self.buffers[buffer])

    # Sites

    def _intrinsic(self, peeled: Peeled, innermost: ir.Invoke | ir.Start) -> None:
        placed = self.placed
        intrinsic = find_intrinsic(innermost.intrinsic, placed.intrinsics)
        is_start = isinstance(innermost, ir.Start)
        try:
            site = IntrinsicSite(peeled, placed.places, placed.slides, by_tile=(
                intrinsic.engine == Engine.ALU and not is_start))
        except CompileError:
            raise UnsupportedError from None        # the emitter says why
        if (intrinsic.motion is None and not is_start) or (
                len(site.axes) >= MOST_AXES or len(site.operands) > MOST_OPERANDS):
            raise UnsupportedError
        local = {axis: place for place, axis in enumerate(site.axes)}
        limits = [self._limit(each, local) for each in site.limits]
        slide = -1
        if site.slide is not None:
            slide = len(self.limits)
            self.limits.append(self._limit(site.slide, local))
        clipped = (len(self.limits), len(limits), slide, site.ring_step)
        self.limits += limits
        around = Around(site.axes, [operand.steps for operand in site.operands])
        number = self._site(site, intrinsic, innermost, around, clipped, self._runs(
            site, intrinsic, innermost))
        self._operation(tables.START if is_start else tables.INVOKE, first=number)

    def _runs(self, site: IntrinsicSite, intrinsic: Intrinsic,
              innermost: ir.Invoke | ir.Start) -> tuple[int, ...]:
        """How a site walks along a dimension that is interleaved, with the numbers of the sites
        that its visits are."""
        blocks = site.blocks
        if blocks is None:
            return NO_RUNS
        alike = all(each.blocks is None or each.blocks[1:3] == blocks[1:3]
                    for each in site.operands)
        if site.slide is not None or not alike:
            raise UnsupportedError
        groups, part = [self._site(site, intrinsic, innermost, along_run(site, groups=each))
                        for each in (True, False)]
        return (blocks.ways, self.forms.number(blocks.start),
                -1 if blocks.loop is None else blocks.loop, int(site.by_tile), groups, part)

    def _site(self, site: IntrinsicSite, intrinsic: Intrinsic, innermost: ir.Invoke | ir.Start,
              around: Around, clipped: tuple[int, ...] = NOT_CLIPPED,
              runs: tuple[int, ...] = NO_RUNS) -> int:
        """The number of a site with these loops around it."""
        motion = None if isinstance(innermost, ir.Start) else intrinsic.motion
        rule, word = self._rule(intrinsic, innermost)
        kind = 0 if rule != tables.BY_PLAN else self.store.kind_of((
            intrinsic, self.config, tuple(site.in_acc), site.blocks is None,
            *map(tuple, around.steps)))
        limits, limit_count, slide, ring_step = clipped
        self.sites.append((
            len(self.extents), len(around.axes), limits, limit_count, len(self.operands),
            len(site.operands), int(intrinsic.begins),
            innermost.value if isinstance(innermost, ir.Start) else _mode_of(intrinsic), slide,
            ring_step, kind, rule, word, *runs))
        self.extents += [axis.extent for axis in around.axes]
        for place, (operand, steps) in enumerate(zip(site.operands, around.steps, strict=True)):
            anchor, multiple = (place, 1) if motion is None else (
                motion.anchors[place], motion.multiples[place])
            group, behind = 0, -1
            if operand.blocks is not None and site.blocks is not None:
                group, behind = operand.blocks.group, self.forms.number(
                    operand.blocks.start + site.blocks.start.times(-1))
            self.operands.append((self.buffers[operand.buffer], self.forms.number(operand.start),
                                  len(self.steps), int(place in site.in_acc), anchor, multiple,
                                  group, behind))
            self.steps += steps
        self.visited.append((around, intrinsic))
        return len(self.sites) - 1

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
        return (self.forms.number(limit.room), -1 if limit.axis is None else local[limit.axis],
                limit.step)

    def _copy(self, copy: ir.Copy) -> None:
        placed = self.placed
        site = CopySite(copy, self.config, placed.places, placed.bits)
        transfer, chip, target, order = (site.transfer, site.chip.buffer, copy.target,
                                         site.transfer.interleave)
        if 3 * (len(transfer.sides) + 1) > tables.KEY or len(site.start) > MOST_RANK:
            raise UnsupportedError
        bordered = transfer.loads and target.extents == target.buffer.shape and (
            target.buffer in placed.stable)
        in_acc, segment = chip.scope == ir.Scope.ACC, placed.segments[site.dram.buffer]
        scratchpad, padding = transfer.scratchpad, copy.padding or 0
        word, inside = [self._word(load_word(scratchpad, segment, each))
                        for each in (padding, 0)] if transfer.loads else [
                            self._word(store_word(scratchpad, segment))] * 2
        runs = (-1, 1, 0) if order is None else (
            order.dimension, order.ways, int(not transfer.alike))
        self.transfers.append((
            self.buffers[chip], self.buffers[chip] if transfer.loads else -1,
            self.forms.number(site.tile), self.forms.add_row(site.start), len(site.start),
            len(self.sides), len(transfer.sides), transfer.tile_rows, transfer.part_rows,
            int(transfer.loads), int(bordered), self._walk(site) if in_acc else 0, int(in_acc),
            int(copy.padding is not None), transfer.tile_bytes, word, inside, *runs))
        self.sides += _side_rows(transfer)
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
        begin, slots, coefficients, constants, extents, steps, saved, fields = slices_of([
            *self.forms.columns(), self.extents, self.steps, self.saved,
            [self.config.tiles(Scratchpad.UOP), int(lanes), longest_sequence(self.config)]])
        operations, buffers, sites, limits, operands, transfers, sides = records_of([
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
                         SCOPES[buffer.scope], buffer.parts,
                         *self.contents.get(buffer, (0, -1)), copy, place.period))
            copy += place.copies
        return rows

    def sizes(self) -> Sizes:
        """Of what a walk remembers."""
        return Sizes(
            len(self.forms.slots), len(self.buffers),
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


def _side_rows(transfer: Transfer) -> list[tuple[int, ...]]:
    """The sides of a transfer. Where the scratchpad is interleaved too, they are those of groups,
    of which the last walks along the tiles."""
    order = transfer.interleave
    rows: list[tuple[int, ...]] = []
    for place, (size, side) in enumerate(zip(transfer.sizes, transfer.sides, strict=True)):
        extent, dram, pad, scale = side.extent, side.dram, side.pad, 1
        if order is not None and transfer.alike and place == order.dimension:
            size, extent = -(-size // order.ways), -(-extent // order.ways)
        if order is not None and transfer.alike and not transfer.whole and (
                place == len(transfer.sides) - 1):
            dram, pad, scale = transfer.tile_bytes, 1, order.ways
        rows.append((size, extent, side.dram, dram, pad, scale))
    return rows


def emit_words(placed: PlacedNest, most: int) -> tuple[Stream, Array] | None:
    """The instructions of a nest, at most so many, and its micro-ops, without tokens. None if only
    the emitter itself can emit it, or refuses to and says why."""
    try:
        builder = Builder(placed)
        fixed, room = bind(builder.arrays()), new_room(builder.sizes())
        while True:
            end = walk(fixed, builder.store.arrays(), *room.words)
            state, output, _ = room
            if end == tables.REFUSED or state.numbers[tables.WRITTEN] > most:
                return None
            if end == tables.DONE:
                break
            if end == tables.MISSING:
                builder.plan(state)
            else:
                room = with_more_room(state, output)
    except UnsupportedError:
        return None
    written, uops = state.numbers[tables.WRITTEN], state.numbers[tables.UOPS]
    return from_bytes(output.words[:written].tobytes()), output.uops[:uops].copy()
