"""Translates Python expressions to LLVM instructions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Protocol

import numpy as np
from llvmlite import ir

from ...base.arrays import Array as NumpyArray
from ...base.arrays import Dtype
from . import arithmetic
from .branch_odds import Branch, Odds
from .decorators import Blank
from .values import (
    I1,
    I64,
    Array,
    Number,
    Record,
    Value,
    element,
    field,
    from_words,
    kind_of,
    load,
    space,
    truth,
    types_of,
    word,
    words_of,
)

# Built-in functions of compiled code; `range` is allowed in loops only.
KNOWN: Mapping[Value, Callable[..., Value]] = {
    min: arithmetic.emit_min, max: arithmetic.emit_max, int: arithmetic.emit_int, bool: truth,
    divmod: arithmetic.emit_divmod}
UNARY: Mapping[type[ast.unaryop], Callable[[ir.IRBuilder, Number], Number]] = {
    ast.Not: arithmetic.emit_not, ast.USub: arithmetic.emit_negation,
    ast.Invert: arithmetic.emit_complement}


class Surroundings(Protocol):
    """The interface of the module that contains an expression (see `functions.Functions`)."""

    odds: Odds

    def call(self, builder: ir.IRBuilder, function: FunctionType,
             given: Sequence[Value]) -> Value: ...
    def constant(self, array: NumpyArray) -> Array: ...
    def clear(self, builder: ir.IRBuilder, pointer: ir.Value, size: int) -> None: ...
    def copy(self, builder: ir.IRBuilder, target: Array, source: Array) -> None: ...


class Expressions:
    """Translates the expressions of a function. Instructions go to the end of the current block."""

    builder: ir.IRBuilder
    functions: Surroundings
    where: str              # the function's name, with its module's
    world: Mapping[str, Value]                    # the function's globals

    def name(self, name: str) -> Value:
        """The value of a name: here, a global."""
        if name in self.world:
            return self.constant(self.world[name])
        return getattr(builtins, name)

    def constant(self, thing: Value) -> Value:
        """An object that exists at compile time."""
        if isinstance(thing, int | np.integer):
            return int(thing)
        if isinstance(thing, np.ndarray):
            return self.functions.constant(thing)
        return thing

    def value(self, node: ast.expr) -> Value:
        writer = getattr(self, f"_{type(node).__name__.lower()}", None)
        if writer is None:
            raise TypeError(f"compiled code has no {type(node).__name__}: {ast.unparse(node)}")
        return writer(node)

    def number(self, node: ast.expr) -> Number:
        found = self.value(node)
        if not isinstance(found, int | ir.Value):
            raise TypeError(f"{ast.unparse(node)} is no number")
        return found

    def condition(self, node: ast.expr, yes: ir.Block, no: ir.Block) -> None:
        """Branch to one of two blocks."""
        if isinstance(node, ast.BoolOp):
            for each in node.values[:-1]:
                rest = self.builder.append_basic_block()
                self.condition(each, *((rest, no) if isinstance(node.op, ast.And)
                                       else (yes, rest)))
                self.builder.position_at_end(rest)
            self.condition(node.values[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, no, yes)
        else:
            number = self.number(node)
            if isinstance(number, int):
                self.builder.branch(yes if number else no)
            else:
                self.functions.odds.branch(self.builder, self._branch_key(node),
                                           truth(self.builder, number), yes, no)

    def _branch_key(self, node: ast.expr) -> Branch:
        return self.where, ast.unparse(node)

    def _constant(self, node: ast.Constant) -> Value:
        return self.constant(node.value)

    def _name(self, node: ast.Name) -> Value:
        return self.name(node.id)

    def _tuple(self, node: ast.Tuple) -> Value:
        return tuple(map(self.value, node.elts))

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, Record):
            return field(self.builder, owner, node.attr)
        if isinstance(owner, ModuleType | tuple):
            return self.constant(getattr(owner, node.attr))
        raise TypeError(f"{ast.unparse(node.value)} is no record")

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, tuple):
            return owner[self.number(node.slice)]
        if isinstance(node.slice, ast.Slice):
            return self.part(owner, node.slice)
        place = self.place(owner, node)
        return place if isinstance(place, Array) else load(self.builder, place)

    def part(self, owner: Array, cut: ast.Slice) -> Array:
        """The elements or rows of an array in a slice."""
        if not isinstance(owner, Array) or cut.step:
            raise TypeError(f"{ast.unparse(cut)} is no part of an array")
        begin = self.number(cut.lower) if cut.lower else 0
        end = self.number(cut.upper) if cut.upper else owner.shape[0]
        length = arithmetic.emit_binary(self.builder, ast.Sub, end, begin)
        return Array(owner.dtype, (length, *owner.shape[1:]),
                     element(self.builder, owner, begin).pointer)

    def place(self, owner: Value, node: ast.Subscript) -> Array | Record:
        """The element that a subscript refers to, as an address."""
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(owner, Array) or len(indices) > len(owner.shape):
            raise TypeError(f"{ast.unparse(node.value)} has no {len(indices)} axes")
        return element(self.builder, owner, *map(self.number, indices))

    def _binop(self, node: ast.BinOp) -> Value:
        return arithmetic.emit_binary(self.builder, type(node.op), self.number(node.left),
                                      self.number(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        return UNARY[type(node.op)](self.builder, self.number(node.operand))

    def _compare(self, node: ast.Compare) -> Value:
        if any(isinstance(each, ast.Call | ast.Subscript)
               for later in node.comparators[1:] for each in ast.walk(later)):
            raise TypeError(f"{ast.unparse(node)}: all of it is evaluated, whatever comes first")
        left, found = self.value(node.left), 1
        for sign, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each)
            found = arithmetic.both(self.builder, found, self._emit_comparison(sign, left, right))
            left = right
        return found

    def _emit_comparison(self, sign: ast.cmpop, left: Number, right: Value) -> Number:
        if not isinstance(sign, ast.In | ast.NotIn):
            return arithmetic.emit_comparison(self.builder, type(sign), left, right)
        found: Number = 0
        for each in right:
            same = arithmetic.emit_comparison(self.builder, ast.Eq, left, each)
            found = arithmetic.either(self.builder, found, same)
        return found if isinstance(sign, ast.In) else arithmetic.emit_not(self.builder, found)

    def _boolop(self, node: ast.BoolOp) -> Value:
        """`and` and `or`, with short-circuit evaluation."""
        end, found = self.builder.append_basic_block(), []
        for each in node.values:
            number = self.number(each)
            found.append((number, self.builder.block))
            if each is not node.values[-1]:
                rest = self.builder.append_basic_block()
                decides = truth(self.builder, number)
                self.functions.odds.branch(
                    self.builder, self._branch_key(each), decides,
                    *((rest, end) if isinstance(node.op, ast.And) else (end, rest)))
                self.builder.position_at_end(rest)
        self.builder.branch(end)
        kind = I1 if all(_is_bit(number) for number, _ in found) else I64
        return self._phi(end, kind, found)

    def _phi(self, end: ir.Block, kind: ir.Type, found: list[tuple[Number, ir.Block]]) -> ir.Value:
        """A phi node at the beginning of the block `end`."""
        incoming = []
        for number, block in found:
            self.builder.position_before(block.terminator)
            incoming.append(truth(self.builder, number) if kind == I1
                            else word(self.builder, number))
        self.builder.position_at_end(end)
        phi = self.builder.phi(kind)
        for number, (_, block) in zip(incoming, found, strict=True):
            phi.add_incoming(number, block)
        return phi

    def _ifexp(self, node: ast.IfExp) -> Value:
        yes, no, end = (self.builder.append_basic_block() for _ in range(3))
        self.condition(node.test, yes, no)
        found = []
        for block, each in ((yes, node.body), (no, node.orelse)):
            self.builder.position_at_end(block)
            value = self.value(each)
            found.append((value, words_of(self.builder, value), self.builder.block))
            self.builder.branch(end)
        kind = kind_of(found[0][0])
        if kind != kind_of(found[1][0]):
            raise TypeError(f"{ast.unparse(node)} is one of two kinds of things")
        self.builder.position_at_end(end)
        phis = []
        for number, each in enumerate(types_of(kind)):
            phis.append(self.builder.phi(each))
            for _, words, block in found:
                phis[-1].add_incoming(words[number], block)
        return from_words(kind, iter(phis))

    def _call(self, node: ast.Call) -> Value:
        called, given = self.value(node.func), [self.value(each) for each in node.args]
        if node.keywords:
            raise TypeError(f"{ast.unparse(node)}: arguments have no names in compiled code")
        if isinstance(called, FunctionType):
            return self.functions.call(self.builder, called, given)
        if isinstance(called, Blank):
            return self._blank(called.dtype)
        if isinstance(called, type) and issubclass(called, tuple):
            return called(*given)               # a NamedTuple
        if called is len:
            return given[0].shape[0] if isinstance(given[0], Array) else len(given[0])
        if called not in KNOWN:
            raise TypeError(f"compiled code cannot call {ast.unparse(node.func)}")
        return KNOWN[called](self.builder, *given)

    def _blank(self, dtype: Dtype) -> Record:
        record = space(self.builder, dtype.itemsize)
        self.functions.clear(self.builder, record, dtype.itemsize)
        return Record(dtype, record)


def _is_bit(number: Number) -> bool:
    return number in (0, 1) if isinstance(number, int) else number.type == I1
