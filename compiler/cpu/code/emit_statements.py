"""Statements of a loop nest in LLVM."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...errors import CompileError
from ...expression.expression import BOOL, INDEX, Axis, Binary, Constant, Expression, Select, walk
from ...expression.intervals import conjuncts
from ...nest.nest import (
    Access,
    Allocate,
    Assign,
    Loop,
    LoopKind,
    Marked,
    Scope,
    Sequence,
    Statement,
    When,
    statements_of,
)
from ...nest.places import weighted_sum
from .emit_arithmetic import cast, operate
from .emit_dot import DOTS, add_dot
from .emit_values import Values
from .writer import SIZES, Value

NO_VECTORS = "!0"               # marks a loop that has its vectors already
ALIGNED = 64                    # bytes: a cache line


class Statements:
    """Appends what statements do."""

    def __init__(self, values: Values) -> None:
        self.values, self.writer = values, values.writer

    def add(self, statement: Statement) -> None:
        match statement:
            case Sequence():
                for each in statement.statements:
                    self.add(each)
            case Loop():
                self._loop(statement)
            case When():
                self._when(statement)
            case Assign():
                self._assign(statement)
            case Allocate(slide=None):
                buffer = statement.buffer
                self.values.pointers[buffer] = self.writer.allocate(
                    buffer.dtype, prod(buffer.shape), ALIGNED)
                self.add(statement.body)
            case Marked():
                self._emit_marked(statement)
            case _:
                raise CompileError(f"a {type(statement).__name__.lower()} cannot be compiled for "
                                   f"the CPU")

    def _emit_marked(self, marked: Marked) -> None:
        """Loops that a processor with vectors has instructions for."""
        loop = marked.body
        if marked.intrinsic not in DOTS or not isinstance(loop, Loop):
            raise CompileError(f"{marked.intrinsic} is no intrinsic of the CPU; there are "
                               f"{', '.join(DOTS)}")
        if marked.starts:
            self._loop(Loop(loop.axis, loop.body, LoopKind.VECTORIZED))
        elif self.values.target.vector_bytes and loop.axis.extent > 1:
            with self.values.anew():
                add_dot(self.values, loop, marked.intrinsic)
        else:
            self._loop(Loop(loop.axis, loop.body, LoopKind.UNROLLED))

    def _loop(self, loop: Loop) -> None:
        values, axis = self.values, loop.axis
        if loop.kind == LoopKind.VECTORIZED and values.vector is None and axis.extent > 1:
            values.vector = axis
            self.add(loop.body)
            values.vector = None
        elif loop.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED) or axis.extent == 1:
            for iteration in range(axis.extent):
                values.fixed[axis] = iteration
                with values.anew():
                    self.add(loop.body)
            del values.fixed[axis]
        else:
            self.emit_loop(loop, "0", str(axis.extent))

    def emit_shared(self, loops: tuple[Loop, ...], first: str, end: str) -> None:
        """Loops directly inside each other as one, from one iteration to before another."""
        axis = Axis("shared", prod(loop.axis.extent for loop in loops))

        def emit_body() -> None:
            rest = self.values.axes[axis]
            first, *others = [loop for loop in loops if loop.axis.extent > 1] or loops[:1]
            for loop in loops:
                self.values.axes[loop.axis] = "0"
            for loop in reversed(others):
                word, extent = self.writer.word, loop.axis.extent
                self.values.axes[loop.axis] = self.writer.name(f"urem {word} {rest}, {extent}")
                rest = self.writer.name(f"udiv {word} {rest}, {extent}")
            self.values.axes[first.axis] = rest
            self.add(loops[-1].body)

        self.emit_loop(Loop(axis, loops[-1].body), first, end, emit_body)

    def emit_loop(self, loop: Loop, first: str, end: str,
                  inside: Callable[[], None] | None = None) -> None:
        """A loop from one index to before another, which is larger. What is inside is the body of
        the loop unless it is given."""
        writer, values = self.writer, self.values
        body, exit_ = writer.fresh("loop"), writer.fresh("done")
        counter, following = f"%{writer.fresh('i')}", f"%{writer.fresh('next')}"
        before = writer.block
        writer.jump(body)
        writer.start(body)
        place = len(writer.lines)                   # where the counter goes, when it is known
        values.axes[loop.axis] = counter            # which block the loop ends with
        with values.anew():
            if inside is None:
                self.add(loop.body)
            else:
                inside()
        writer.lines.insert(place, f"  {counter} = phi {writer.word} [{first}, %{before}], "
                                   f"[{following}, %{writer.block}]")
        writer.add(f"{following} = add nuw nsw {writer.word} {counter}, 1")
        more = writer.name(f"icmp ult {writer.word} {following}, {end}")
        vectors = any(isinstance(each, Loop) and each.kind == LoopKind.VECTORIZED
                      for each in statements_of(loop.body))
        writer.add(f"br i1 {more}, label %{body}, label %{exit_}"
                   + (f", !llvm.loop {NO_VECTORS}" if vectors else ""))
        writer.start(exit_)

    def _when(self, when: When) -> None:
        writer, values = self.writer, self.values
        if values.vector is not None and values.varies(when.condition):
            self._when_in_lanes(when.condition, when)
            return
        with values.fresh():
            condition = values.of(when.condition)
        then, end = writer.fresh("then"), writer.fresh("end")
        writer.branch(condition, then, end)
        writer.start(then)
        before, values.known = values.known, values.known_where(when.condition)
        with values.fresh():
            self.add(when.body)
        values.known = before
        writer.jump(end)
        writer.start(end)

    def _when_in_lanes(self, condition: Expression, when: When) -> None:
        """All lanes at once where all of them fulfil a condition, and one by one elsewhere, unless
        the processor loads and stores some lanes alone."""
        if isinstance(when.body, Assign) and self._can_mask(when.body):
            with self.values.anew(), self.values.under(self.values.of(condition)):
                self._store(when.body)
            return
        everywhere = self._in_all_lanes(list(conjuncts(condition)))

        def together() -> None:
            before, self.values.known = self.values.known, self.values.known_where(when.condition)
            self.add(when.body)
            self.values.known = before
        if everywhere is None:
            self._lane_by_lane(when)
        else:
            self._either(everywhere, together, when)

    def _can_mask(self, assign: Assign) -> bool:
        """Whether what is stored and loaded are neighbours, as far as it might lie outside."""
        values = self.values
        return values.target.masks_loads and values.stride(assign.target) == 1 and (
            assign.target.dtype != BOOL) and not self._risky(assign.value) and all(
            values.stride(each) == 1 or not values.is_outside(each)
            for each in walk(assign.value) if isinstance(each, Access))

    def _either(self, condition: Value, together: object, statement: Statement) -> None:
        """All lanes together if a condition holds, or a statement for one after the other."""
        assert callable(together)
        writer, values = self.writer, self.values
        then, otherwise, end = (writer.fresh(each) for each in ("vector", "lanes", "end"))
        writer.branch(condition, then, otherwise)
        writer.start(then)
        with values.fresh():
            together()
        writer.jump(end)
        writer.start(otherwise)
        self._lane_by_lane(statement)
        writer.jump(end)
        writer.start(end)

    def _lane_by_lane(self, statement: Statement) -> None:
        """A statement for one lane after the other."""
        axis, self.values.vector = self.values.vector, None
        assert axis is not None
        self.emit_loop(Loop(axis, statement), "0", str(axis.extent))
        del self.values.axes[axis]
        self.values.vector = axis

    def _in_all_lanes(self, conditions: list[Expression]) -> Value | None:
        """Whether conditions hold in every lane, or None where the first and the last lane do not
        tell."""
        values, found = self.values, []
        assert values.vector is not None
        for condition in conditions:
            test: Expression = condition
            if values.varies(condition):
                lowest = self._lowest_margin(condition)
                if lowest is None:
                    return None
                test = Binary("<=", Constant(0), lowest)
            with values.fresh():
                found.append(values.of(test))
        result = found[0]
        for each in found[1:]:
            result = operate(self.writer, "and", result, each)
        return result

    def _lowest_margin(self, condition: Expression) -> Expression | None:
        """By how much a comparison holds in the lane where it does so least, if that is the first
        or the last one."""
        axis, fixed = self.values.vector, self.values.fixed
        assert axis is not None
        if not (isinstance(condition, Binary) and condition.operator in ("<", "<=")
                and condition.left.dtype == INDEX):
            return None
        place = weighted_sum(((condition.right, 1), (condition.left, -1)), fixed)
        if any(term is not axis and self.values.varies(term) for term in place.terms):
            return None
        step = place.terms.get(axis, 0)
        result: Expression = Constant(place.constant - (condition.operator == "<")
                                      + min(step * (axis.extent - 1), 0))
        for term, factor in place.terms.items():
            if term is not axis:
                result = result + term * factor
        return result

    def _assign(self, assign: Assign) -> None:
        values = self.values
        with values.anew():
            if values.vector is None:
                self._store(assign)
                return
            if not self._is_vector(assign):
                self._lane_by_lane(assign)
                return
            risky = self._risky(assign.value)
            if not risky:
                self._store(assign)
                return
            if values.can_mask(risky):
                with values.masking(risky):
                    self._store(assign)
                return
            everywhere = self._in_all_lanes([part for each in risky
                                             for part in conjuncts(each.condition)])
            if everywhere is None:
                self._lane_by_lane(assign)
                return

            def together() -> None:
                with values.assuming(risky):
                    self._store(assign)
            self._either(everywhere, together, assign)

    def _is_vector(self, assign: Assign) -> bool:
        """Whether each lane writes an element of its own."""
        return self.values.stride(assign.target) != 0

    def _risky(self, value: Expression) -> list[Select]:
        """Selects that differ between lanes, and may read outside a buffer where not chosen."""
        return [node for node in walk(value) if isinstance(node, Select)
                and self.values.varies(node.condition) and self.values.may_leave(node)]

    def _store(self, assign: Assign) -> None:
        values, target = self.values, assign.target
        value, stride = values.of(assign.value), values.stride(target)
        axis = values.vector
        if axis is None:
            self._store_at(values.address(target), value)
        elif stride == 1:
            value = self.writer.broadcast(value, axis.extent)
            values.fixed[axis] = 0
            masked = values.mask is not None and target.buffer.scope != Scope.LOCAL
            pointer = values.address(target, "" if masked else " inbounds")
            del values.fixed[axis]
            if masked:
                values.store_masked(pointer, value)
            else:
                self._store_at(pointer, value)
        else:
            for lane in range(axis.extent):
                element = self.writer.lane(value, lane)
                with values.single_lane(axis, lane):
                    self._store_at(values.address(target), element)

    def _store_at(self, pointer: str, value: Value) -> None:
        assert value.dtype != INDEX
        size = SIZES[value.dtype]
        if value.dtype == BOOL:
            value = cast(self.writer, value, "uint8")
        self.writer.add(f"store {self.writer.operand(value)}, ptr {pointer}, align {size}")
