"""Scalar expressions in LLVM. Inside a vectorized loop, what depends on its axis is a vector: all
lanes are computed at once. What does not is a scalar until it meets a vector.

A part that is used twice is computed once. Of a `select`, only the chosen side may have to exist;
if the other might lie outside its buffer, it is not computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ....base.classes.dataclass import dataclass
from ....base.processor import Target
from ...errors import CompileError
from ...expression.expression import (
    BOOL,
    INDEX,
    Axis,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Select,
    walk,
)
from ...expression.functions import CHECKED
from ...expression.intervals import Known, implied_intervals, interval_of
from ...nest.nest import Access, Buffer
from ...nest.places import place_of
from .emit_arithmetic import as_bits, cast, function, operate, operate_plain, select_lanes, suffix
from .ranges import fits_in_32
from .writer import SIZES, Value, Writer


@dataclass(frozen=True, eq=False)
class Given(Expression):
    """A value that is there already, as an argument of a function's definition."""

    value: Value

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.value.dtype

    def __str__(self) -> str:
        return self.value.text


class Values:
    """Computes expressions at one point of a function, given pointers and loops."""

    def __init__(self, writer: Writer, target: Target) -> None:
        self.writer, self.target = writer, target
        self.pointers: dict[Buffer, str] = {}
        self.axes: dict[Axis, str] = {}         # names of the loops' counters
        self.fixed: dict[Axis, int] = {}        # axes whose value is known
        self.vector: Axis | None = None         # the one that is all its values at once
        self.known: Known = {}                  # where the code stands
        self.status: str | None = None          # where a wrong index is noted
        self._found: dict[int, tuple[Expression, Value]] = {}
        self._reads: dict[int, tuple[Expression, list[Access]]] = {}
        self._assumed: set[int] = set()         # selects that choose their first side
        self._masked: set[int] = set()          # selects whose first side is read by lanes
        self.mask: Value | None = None          # lanes that may be read

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Forget, at the end, what is computed from here on: it may not be computed always."""
        before, self._found = self._found, dict(self._found)
        try:
            yield
        finally:
            self._found = before

    @contextmanager
    def anew(self) -> Iterator[None]:
        """Compute everything again, for loops have other values."""
        before, self._found = self._found, {}
        try:
            yield
        finally:
            self._found = before

    @contextmanager
    def single_lane(self, axis: Axis, lane: int) -> Iterator[None]:
        """One lane of a vector by itself."""
        self.fixed[axis], self.vector = lane, None
        try:
            with self.anew():
                yield
        finally:
            del self.fixed[axis]
            self.vector = axis

    @contextmanager
    def assuming(self, selects: list[Select]) -> Iterator[None]:
        """Where the conditions of some selects hold in every lane."""
        self._assumed |= {id(each) for each in selects}
        try:
            yield
        finally:
            self._assumed -= {id(each) for each in selects}

    @contextmanager
    def masking(self, selects: list[Select]) -> Iterator[None]:
        """Where the first side of some selects is loaded in the lanes that choose it."""
        self._masked |= {id(each) for each in selects}
        try:
            yield
        finally:
            self._masked -= {id(each) for each in selects}

    @contextmanager
    def under(self, condition: Value) -> Iterator[None]:
        """Where only the lanes are loaded, and stored, in which a condition holds."""
        assert self.vector is not None
        before, condition = self.mask, self.writer.broadcast(condition, self.vector.extent)
        self.mask = condition if before is None else operate(self.writer, "and", before, condition)
        try:
            yield
        finally:
            self.mask = before

    def can_mask(self, selects: list[Select]) -> bool:
        """Whether what the first sides of selects might read outside are neighbours, and the
        processor loads some lanes of a vector alone. Indices that are read are read lane by
        lane."""
        return self.target.masks_loads and all(
            self.stride(each) == 1 and id(each) not in _read_as_indices(self._reads_of(select))
            for select in selects for each in self._reads_of(select) if self.is_outside(each))

    def of(self, node: Expression) -> Value:
        """The value of an expression."""
        found = self._found.get(id(node))
        if found is None:
            found = node, self._compute(node)      # the node too, so that its id stays its own
            self._found[id(node)] = found
        return found[1]

    def _compute(self, node: Expression) -> Value:
        writer = self.writer
        match node:
            case Given():
                return node.value
            case Constant():
                return writer.constant(node.value, node.dtype)
            case Axis():
                return self._axis(node)
            case Binary(operator="//" | "%") if self._is_counted(node):
                return operate_plain(writer, "udiv" if node.operator == "//" else "urem",
                                     self.of(node.left), self.of(node.right))
            case Binary():
                return operate(writer, node.operator, self.of(node.left), self.of(node.right))
            case Cast():
                return cast(writer, self.of(node.value), node.dtype,
                            fits_in_32=fits_in_32(node.value))
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Access():
                return self._load(node)
        raise CompileError(f"{node} cannot be compiled for the CPU")

    def _is_counted(self, node: Binary) -> bool:
        """Whether it is the quotient or the rest of a loop's index, which is not negative."""
        if node.dtype != INDEX or not isinstance(node.right, Constant) or self.varies(node):
            return False
        try:
            return interval_of(node.left, self.known)[0] >= 0
        except CompileError:
            return False

    def _axis(self, axis: Axis) -> Value:
        if axis in self.fixed:
            return self.writer.constant(self.fixed[axis], INDEX)
        if axis is self.vector:
            lanes = ", ".join(f"{self.writer.word} {lane}" for lane in range(axis.extent))
            return Value(f"<{lanes}>", INDEX, axis.extent)
        return Value(self.axes[axis], INDEX)

    def _select(self, node: Select) -> Value:
        if id(node) in self._assumed:
            return self.of(node.then)
        condition = self.of(node.condition)
        if id(node) in self._masked and self.vector is not None:    # not one lane by itself
            return self._select_masked(node, condition)
        if not self.may_leave(node):
            return select_lanes(self.writer, condition, self.of(node.then), self.of(node.otherwise))
        if condition.lanes == 1:
            return self._branches(node, condition)
        assert self.vector is not None
        axis, lanes = self.vector, []
        for lane in range(axis.extent):
            with self.single_lane(axis, lane):
                lanes.append(self.of(node))
        return self.writer.gather(lanes)

    def _select_masked(self, node: Select, condition: Value) -> Value:
        with self.fresh(), self.under(condition):
            then = self.of(node.then)
        return select_lanes(self.writer, condition, then, self.of(node.otherwise))

    def _branches(self, node: Select, condition: Value) -> Value:
        """Only one side is computed."""
        writer = self.writer
        then, otherwise, end = (writer.fresh(each) for each in ("then", "else", "end"))
        lanes = self.vector.extent if self.vector is not None else 1
        writer.branch(condition, then, otherwise)
        arms = []
        for label, side in ((then, node.then), (otherwise, node.otherwise)):
            writer.start(label)
            with self.fresh():
                value = writer.broadcast(self.of(side), lanes)
            arms.append(f"[{value.text}, %{writer.block}]")
            writer.jump(end)
        writer.start(end)
        return writer.value(f"phi {writer.type(node.dtype, lanes)} {', '.join(arms)}", node.dtype,
                            lanes)

    def may_leave(self, node: Select) -> bool:
        """Whether the first side of a select might read outside a buffer where it is not chosen."""
        return any(map(self.is_outside, self._reads_of(node)))

    def _reads_of(self, node: Select) -> list[Access]:
        """What the first side reads. It is looked for once: this is asked for each lane."""
        if id(node) not in self._reads:
            self._reads[id(node)] = node, [each for each in walk(node.then)
                                           if isinstance(each, Access)]
        return self._reads[id(node)][1]

    def is_outside(self, access: Access) -> bool:
        try:
            ranges = [interval_of(index, self.known) for index in access.indices]
        except CompileError:
            return True
        return any(low < 0 or high >= extent for (low, high), extent
                   in zip(ranges, access.buffer.shape, strict=True))

    def _call(self, node: Call) -> Value:
        name, arguments = node.function.intrinsic, [self.of(each) for each in node.arguments]
        if node.function.name == CHECKED:
            return self._check_index(*arguments)
        if name == "bitcast":
            return as_bits(self.writer, arguments[0], node.dtype)
        if name is not None:
            return function(self.writer, name.removeprefix("llvm."), *arguments)
        if node.function.definition is None:
            raise CompileError(f"{node.function.name} has neither a definition nor an instruction "
                               f"for the CPU")
        return self.of(node.function.definition(*map(Given, arguments)))

    def _check_index(self, index: Value, extent: Value) -> Value:
        """An index moved inside, after it was noted that it was not."""
        writer, lanes = self.writer, index.lanes
        assert self.status is not None
        kind, extent = writer.type(INDEX, lanes), writer.broadcast(extent, lanes)
        wrong = writer.value(f"icmp uge {kind} {index.text}, {extent.text}", BOOL, lanes)
        some = wrong.text if lanes == 1 else writer.call(
            f"llvm.vector.reduce.or.v{lanes}i1", "i1", writer.operand(wrong))
        before = writer.name(f"load i32, ptr {self.status}")
        bit = writer.name(f"zext i1 {some} to i32")
        writer.add(f"store i32 {writer.name(f'or i32 {before}, {bit}')}, ptr {self.status}")
        zero = writer.constant(0, INDEX, lanes)
        return select_lanes(writer, wrong, zero, index)

    def _load(self, node: Access) -> Value:
        stride = self.stride(node)
        if stride == 0:
            return self._scalar_load(node)
        assert self.vector is not None
        axis, dtype = self.vector, node.dtype
        if stride == 1:
            self.fixed[axis] = 0
            masked = self.mask is not None and self.is_outside(node)
            pointer = self.address(node, "" if masked else " inbounds")
            del self.fixed[axis]
            return (self._masked_load if masked else self.load)(pointer, dtype, axis.extent)
        if stride == 2 and axis.extent % 2 == 0 and dtype != BOOL:
            return self._every_other(node, axis)
        lanes = []
        for lane in range(axis.extent):
            with self.single_lane(axis, lane):
                lanes.append(self._scalar_load(node))
        return self.writer.gather(lanes)

    def _every_other(self, node: Access, axis: Axis) -> Value:
        """Two vectors that overlap by one element, and the elements of even places of both; no
        element after the last one is touched."""
        count, dtype, halves = axis.extent, node.dtype, []
        self.fixed[axis] = 0
        pointer = self.address(node)
        del self.fixed[axis]
        for first in (0, count - 1):
            there = self.writer.name(f"getelementptr inbounds {self.writer.scalar(dtype)}, ptr "
                                     f"{pointer}, {self.writer.word} {first}")
            halves.append(self.load(there, dtype, count))
        places = [*range(0, count, 2), *range(count + 1, 2 * count, 2)]
        mask = ", ".join(f"i32 {place}" for place in places)
        return self.writer.value(
            f"shufflevector {self.writer.operand(halves[0])}, {self.writer.operand(halves[1])}, "
            f"<{count} x i32> <{mask}>", dtype, count)

    def _scalar_load(self, node: Access) -> Value:
        return self.load(self.address(node), node.dtype, 1)

    def load(self, pointer: str, dtype: str, lanes: int) -> Value:
        writer, size = self.writer, SIZES[dtype]
        if dtype == BOOL:
            kind = writer.type("int8", lanes)
            byte = writer.value(f"load {kind}, ptr {pointer}, align 1", "int8", lanes)
            return cast(writer, byte, BOOL)
        return writer.value(f"load {writer.type(dtype, lanes)}, ptr {pointer}, align {size}",
                            dtype, lanes)

    def _masked_load(self, pointer: str, dtype: str, lanes: int) -> Value:
        """The lanes of the mask, and zeros."""
        writer, mask = self.writer, self.mask
        assert mask is not None
        stored = "int8" if dtype == BOOL else dtype
        zeros = Value("zeroinitializer", stored, lanes)
        text = writer.call(f"llvm.masked.load.{suffix(writer, zeros)}.p0",
                           writer.type(stored, lanes), f"ptr {pointer}", f"i32 {SIZES[dtype]}",
                           writer.operand(mask), writer.operand(zeros))
        return cast(writer, Value(text, stored, lanes), dtype)

    def store_masked(self, pointer: str, value: Value) -> None:
        """Store the lanes of the mask."""
        writer, mask = self.writer, self.mask
        assert mask is not None
        value = writer.broadcast(value, mask.lanes)
        writer.call_void(f"llvm.masked.store.{suffix(writer, value)}.p0", writer.operand(value),
                         f"ptr {pointer}", f"i32 {SIZES[value.dtype]}", writer.operand(mask))

    def stride(self, node: Access) -> int | None:
        """Elements from one lane to the next, or None where it is not the same for all."""
        if self.vector is None:
            return 0
        terms = place_of(node, self.fixed).terms
        if any(term is not self.vector and self.varies(term) for term in terms):
            return None
        return terms.get(self.vector, 0)

    def varies(self, node: Expression) -> bool:
        """Whether an expression differs between lanes."""
        return any(each is self.vector or (isinstance(each, Given) and each.value.lanes > 1)
                   for each in walk(node))

    def address(self, node: Access, inbounds: str = " inbounds") -> str:
        """A pointer to an element, in the scalar sense."""
        writer, place = self.writer, place_of(node, self.fixed)
        vector, self.vector = self.vector, None
        text = None
        for term, factor in place.terms.items():
            value = self.of(term)
            part = value.text if factor == 1 else writer.name(
                f"mul nsw {writer.word} {value.text}, {factor}")
            text = part if text is None else writer.name(
                f"add nsw {writer.word} {text}, {part}")
        self.vector = vector
        pointer = self.pointers[node.buffer]
        scalar = "i8" if node.dtype == BOOL else writer.scalar(node.dtype)
        if text is not None:
            pointer = writer.name(f"getelementptr{inbounds} {scalar}, ptr {pointer}, "
                                  f"{writer.word} {text}")
        if place.constant:
            pointer = writer.name(f"getelementptr{inbounds} {scalar}, ptr {pointer}, "
                                  f"{writer.word} {place.constant}")
        return pointer

    def known_where(self, condition: Expression) -> Known:
        """What is known where a condition holds, besides what is known here."""
        try:
            return {**self.known, **implied_intervals(condition, self.known)}
        except CompileError:
            return self.known


def _read_as_indices(reads: list[Access]) -> set[int]:
    """Those that the indices of others are, by id."""
    return {id(each) for read in reads for index in read.indices for each in walk(index)
            if isinstance(each, Access)}
