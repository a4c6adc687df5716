"""An LLVM module of Python functions, specialized for the kinds of their arguments.

The language is the subset of Python that the twins are written in: 64-bit integers, records, arrays
and tuples; assignments, `if`, `while`, `for … in range` and calls. It has the semantics of Python,
as long as no number needs more than 64 bits, no index is negative or out of range, no divisor is
zero, and every variable has a value when it is read: none of this is checked. A function declares
that it returns `int`, `bool`, a `tuple[…]` of these, a NamedTuple of numbers, or `None`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType

import numpy as np
from llvmlite import ir

from ...base.arrays import Array as NumpyArray
from .branch_odds import Odds
from .decorators import NOT_INLINED
from .statements import Body
from .values import (
    I1,
    I8,
    I64,
    NUMBER,
    POINTER,
    Array,
    Kind,
    Value,
    from_words,
    kind_of,
    types_of,
    words_of,
)


class Functions:
    """The module, with the functions compiled so far."""

    def __init__(self, name: str, odds: Odds):
        self.module, self.odds = ir.Module(name), odds
        self._known: dict[tuple[FunctionType, tuple[Kind, ...]], tuple[ir.Function, Kind]] = {}
        self._constants: dict[int, Array] = {}
        # Copies are emitted inline: those of every cycle are short, and a call would be slower.
        self._copy = self._intrinsic("llvm.memcpy.inline.p0.p0.i64", POINTER, POINTER, I64, I1)
        self._clear = self._intrinsic("llvm.memset.p0.i64", POINTER, I8, I64, I1)

    def _intrinsic(self, name: str, *types: ir.Type) -> ir.Function:
        """An LLVM intrinsic by its full name: older versions of llvmlite do not know those with
        pointers."""
        return ir.Function(self.module, ir.FunctionType(ir.VoidType(), types), name)

    def call(self, builder: ir.IRBuilder, function: FunctionType, given: Sequence[Value]) -> Value:
        """Call a Python function, which is compiled first unless it has been for such values."""
        kinds = tuple(map(kind_of, given))
        compiled, result = self.compile(function, kinds)
        found = builder.call(compiled, [each for value in given
                                        for each in words_of(builder, value)])
        count = len(types_of(result))
        words = [found] if count == 1 else [builder.extract_value(found, number)
                                            for number in range(count)]
        return from_words(result, iter(words))

    def compile(self, function: FunctionType, kinds: tuple[Kind, ...]) -> tuple[ir.Function, Kind]:
        key = function, kinds
        if key not in self._known:
            self._known[key] = self._translate(function, kinds)
        return self._known[key]

    def _translate(self, function: FunctionType,
                   kinds: tuple[Kind, ...]) -> tuple[ir.Function, Kind]:
        node = definition(function)
        result = _result(node.returns, function.__globals__)
        types = types_of(result)
        returned = (ir.VoidType() if not types else types[0] if len(types) == 1
                    else ir.LiteralStructType(types))
        made = ir.Function(self.module, ir.FunctionType(returned, types_of(kinds)),
                           self.module.get_unique_name(f"{function.__module__}.{node.name}"))
        made.linkage = "internal"
        made.attributes.add("noinline" if function in NOT_INLINED else "alwaysinline")
        made.attributes.add("nounwind")
        values = from_words(kinds, iter(made.args))
        given = dict(zip([each.arg for each in node.args.args], values, strict=True))
        try:
            Body(self, function.__globals__, node, made, given, result)
        except TypeError as error:
            error.add_note(f"in {function.__module__}.{node.name}")
            raise
        return made, result

    def entry(self, function: FunctionType, kinds: Sequence[Kind]) -> None:
        """Define the C function that Python calls. It takes the address of the words of its
        arguments and returns a number."""
        compiled, _ = self.compile(function, tuple(kinds))
        compiled.attributes.discard("alwaysinline")
        made = ir.Function(self.module, ir.FunctionType(I64, [POINTER]), ENTRY)
        builder = ir.IRBuilder(made.append_basic_block())
        words = [builder.load(builder.gep(made.args[0], [I64(number)], source_etype=I64), typ=each)
                 for number, each in enumerate(types_of(tuple(kinds)))]
        builder.ret(builder.call(compiled, words))

    def constant(self, array: NumpyArray) -> Array:
        """A constant table of numbers."""
        if id(array) not in self._constants:
            values = [I64(int(each)) for each in array.ravel()]
            kind = ir.ArrayType(I64, len(values))
            table = ir.GlobalVariable(self.module, kind, self.module.get_unique_name("table"))
            table.initializer, table.global_constant = ir.Constant(kind, values), True
            table.linkage, table.type = "internal", POINTER
            self._constants[id(array)] = Array(np.dtype(np.int64), array.shape, table)
        return self._constants[id(array)]

    def copy(self, builder: ir.IRBuilder, target: Array, source: Array) -> None:
        """Copy the elements of one array to another."""
        size, = source.shape
        if kind_of(target) != kind_of(source) or not isinstance(size, int):
            raise TypeError("only as many elements as are known to be there can be copied")
        if source.dtype.itemsize == I64.width // 8 and size <= MOST_COPIED:
            _copy_words(builder, target.pointer, source.pointer, size)
        else:
            builder.call(self._copy, [target.pointer, source.pointer,
                                      I64(size * source.dtype.itemsize), I1(0)])

    def clear(self, builder: ir.IRBuilder, pointer: ir.Value, size: int) -> None:
        builder.call(self._clear, [pointer, I8(0), I64(size), I1(0)])


ENTRY = "entry"
MOST_COPIED, VECTOR = 256, 4        # words of an inline copy, and of a vector of it


def _copy_words(builder: ir.IRBuilder, target: ir.Value, source: ir.Value, size: int) -> None:
    """An inline copy: for a few hundred words LLVM would use an instruction with a slow start."""
    for begin in range(0, size, VECTOR):
        kind = ir.VectorType(I64, min(VECTOR, size - begin))
        from_, to = (builder.gep(each, [I64(begin)], source_etype=I64) for each in (source, target))
        builder.store(builder.load(from_, typ=kind, align=I64.width // 8), to,
                      align=I64.width // 8)


def _result(annotation: ast.expr | None, world: Mapping[str, Value]) -> Kind:
    match annotation:
        case ast.Constant(value=None):
            return ()
        case ast.Name(id="int" | "bool"):
            return NUMBER
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
            return tuple(_result(each, world) for each in parts)
        case ast.Name(id=name) if fields := getattr(world.get(name), "_fields", ()):
            kind: Kind = world[name]._make([NUMBER] * len(fields))      # a NamedTuple of numbers
            return kind
    raise TypeError("a compiled function must say that it returns int, bool, tuple[…], None or a "
                    "NamedTuple of numbers")


def definition(function: FunctionType) -> ast.FunctionDef:
    """The source of a function."""
    code = function.__code__
    return _definitions(code.co_filename)[function.__name__, code.co_firstlineno]


@cache
def _definitions(path: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions in a file by name and first line, including decorators."""
    return {(node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)])): node
            for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef)}
