"""Translates Python statements to LLVM instructions: the body of a function."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from llvmlite import ir

from . import arithmetic
from .expressions import Expressions, Surroundings
from .values import (
    I64,
    WORD,
    Array,
    Kind,
    Number,
    Record,
    Value,
    element,
    from_words,
    kind_of,
    load,
    set_field,
    space,
    store,
    types_of,
    words_of,
)


class Body(Expressions):
    """Translates one function. Its variables are stack slots, which LLVM promotes to registers."""

    def __init__(self, functions: Surroundings, world: Mapping[str, object], node: ast.FunctionDef,
                 function: ir.Function, given: Mapping[str, Value], result: Kind):
        self.functions, self.world, self.result = functions, world, result
        self.where = f"{str(world['__name__']).rpartition('.')[2]}.{node.name}"
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self._given = dict(given)
        self._variables: dict[str, tuple[Kind, list[ir.Value]]] = {}
        self._assigned = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)
                          and isinstance(each.ctx, ast.Store)}
        # The targets of `continue` and `break`; None in an unrolled loop.
        self._loops: list[tuple[ir.Block, ir.Block] | None] = []
        for name in self._assigned & set(self._given):
            self._set_name(name, self._given.pop(name))
        self.block(node.body)
        if not self.builder.block.is_terminated:
            if result:
                self.builder.unreachable()      # here Python would return None
            else:
                self.builder.ret_void()

    def name(self, name: str) -> Value:
        if name in self._given:
            return self._given[name]
        if name in self._assigned:
            if name not in self._variables:
                raise TypeError(f"{name} has no value yet")
            kind, places = self._variables[name]
            return from_words(kind, iter([
                self.builder.load(place, typ=each)
                for place, each in zip(places, types_of(kind), strict=True)]))
        return super().name(name)

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for each in statements:
            writer = getattr(self, f"_{type(each).__name__.lower()}", None)
            if writer is None:
                raise TypeError(f"compiled code has no {type(each).__name__}")
            writer(each)
            if self.builder.block.is_terminated:
                break                           # the rest is unreachable

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):        # a docstring
            self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._set(target, value)

    def _augassign(self, node: ast.AugAssign) -> None:
        if any(isinstance(each, ast.Call) for each in ast.walk(node.target)):
            raise TypeError(f"{ast.unparse(node.target)} would be evaluated twice")
        before = self.number(node.target)
        self._set(node.target, arithmetic.emit_binary(self.builder, type(node.op), before,
                                                      self.number(node.value)))

    def _set(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self._set_name(name, value)
            case ast.Attribute(value=owner, attr=name):
                set_field(self.builder, self.value(owner), name, value)
            case ast.Subscript(value=owner, slice=ast.Slice() as cut):
                self.functions.copy(self.builder, self.part(self.value(owner), cut), value)
            case ast.Subscript(value=owner):
                array = self.value(owner)
                place = self.place(array, target)
                if isinstance(place, Array) or isinstance(array.pointer, ir.GlobalVariable):
                    raise TypeError(f"{ast.unparse(target)} is a row or in a constant table")
                store(self.builder, place, value)
            case ast.Tuple(elts=targets):
                parts = self._parts(value)
                if len(parts) != len(targets):
                    raise TypeError(f"{ast.unparse(target)} gets {len(parts)} values")
                for each, part in zip(targets, parts, strict=True):
                    self._set(each, part)
            case _:
                raise TypeError(f"nothing can be assigned to {ast.unparse(target)}")

    def _parts(self, value: Value) -> Sequence[Value]:
        if isinstance(value, Array):
            length, = value.shape
            assert isinstance(length, int), "only what has a known length is taken apart"
            return [load(self.builder, _only(element(self.builder, value, number)))
                    for number in range(length)]
        parts: Sequence[Value] = value
        return parts

    def _set_name(self, name: str, value: Value) -> None:
        kind = kind_of(value)
        if name not in self._variables:
            self._variables[name] = kind, [space(self.builder, WORD) for _ in types_of(kind)]
        known, places = self._variables[name]
        if known != kind:
            raise TypeError(f"{name} is not always the same kind of thing")
        for place, each in zip(places, words_of(self.builder, value), strict=True):
            self.builder.store(each, place)

    def _if(self, node: ast.If) -> None:
        yes, no, end = (self.builder.append_basic_block() for _ in range(3))
        self.condition(node.test, yes, no)
        for block, statements in ((yes, node.body), (no, node.orelse)):
            self.builder.position_at_end(block)
            self.block(statements)
            if not self.builder.block.is_terminated:
                self.builder.branch(end)
        self.builder.position_at_end(end)

    def _while(self, node: ast.While) -> None:
        _check_loop(node)
        test, body, end = (self.builder.append_basic_block() for _ in range(3))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        self.condition(node.test, body, end)
        self._repeat(body, node.body, test, end)

    def _for(self, node: ast.For) -> None:
        _check_loop(node)
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[*bounds]) if len(bounds) < 3:
                self._count(node, *([0] if len(bounds) == 1 else []), *map(self.number, bounds))
            case ast.Tuple(elts=parts):         # few, so the loop is unrolled
                self._loops.append(None)
                for each in parts:
                    self._set(node.target, self.value(each))
                    self.block(node.body)
                self._loops.pop()
            case _:
                raise TypeError(f"compiled code cannot go through {ast.unparse(node.iter)}")

    def _count(self, node: ast.For, begin: Number, end: Number) -> None:
        counter = space(self.builder, WORD)
        stop = words_of(self.builder, end)[0]
        self.builder.store(words_of(self.builder, begin)[0], counter)
        test, body, more, after = (self.builder.append_basic_block() for _ in range(4))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        at = self.builder.load(counter, typ=I64)
        self.builder.cbranch(self.builder.icmp_signed("<", at, stop), body, after)
        self.builder.position_at_end(more)
        self.builder.store(self.builder.add(self.builder.load(counter, typ=I64), I64(1)), counter)
        self.builder.branch(test)
        self.builder.position_at_end(body)
        self._set(node.target, at)
        self._repeat(body, node.body, more, after)

    def _repeat(self, body: ir.Block, statements: Sequence[ast.stmt], again: ir.Block,
                end: ir.Block) -> None:
        self.builder.position_at_end(body)
        self._loops.append((again, end))
        self.block(statements)
        self._loops.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(again)
        self.builder.position_at_end(end)

    def _continue(self, node: ast.Continue) -> None:
        self.builder.branch(self._loop()[0])

    def _break(self, node: ast.Break) -> None:
        self.builder.branch(self._loop()[1])

    def _loop(self) -> tuple[ir.Block, ir.Block]:
        loop = self._loops[-1]
        if loop is None:
            raise TypeError("a loop over a tuple always runs to its end")
        return loop

    def _return(self, node: ast.Return) -> None:
        value = () if node.value is None else self.value(node.value)
        words = words_of(self.builder, value)
        if len(words) != len(types_of(self.result)):
            raise TypeError(f"{ast.unparse(node)} is not what the function is said to return")
        if not words:
            self.builder.ret_void()
        elif len(words) == 1:
            self.builder.ret(words[0])
        else:
            self.builder.ret(_pack_words(self.builder, words))


def _check_loop(node: ast.While | ast.For) -> None:
    if node.orelse:
        raise TypeError("a loop of compiled code has no else")


def _pack_words(builder: ir.IRBuilder, words: Sequence[ir.Value]) -> ir.Value:
    """Several words as one value."""
    joined: ir.Value = ir.Constant(ir.LiteralStructType([each.type for each in words]),
                                   ir.Undefined)
    for number, each in enumerate(words):
        joined = builder.insert_value(joined, each, number)
    return joined


def _only(place: Array | Record) -> Record:
    assert isinstance(place, Record)
    return place
