"""The lines of one LLVM function while it is written: values, blocks and what they are called."""

from __future__ import annotations

import struct

import numpy as np

from ....base.classes.dataclass import dataclass
from ...expression.expression import BOOL, FLOATS, INDEX, INTEGERS

SCALARS = {"float16": "half", "float32": "float", "float64": "double", BOOL: "i1",
           **{each: f"i{each.lstrip('uint')}" for each in INTEGERS}}
SIZES = {"float16": 2, "float32": 4, "float64": 8, BOOL: 1,
         **{each: int(each.lstrip("uint")) // 8 for each in INTEGERS}}
UNSIGNED = ("uint8", "uint16", "uint32", "uint64", BOOL)


@dataclass(frozen=True)
class Value:
    """A scalar, or a vector of several lanes: the name of a result, or a number."""

    text: str
    dtype: str
    lanes: int = 1


class Writer:
    """Appends instructions. `word_bits` is the size of an index; `converts_halves` says whether
    there is an instruction between float16 and float32, and `saturates` whether that from floats to
    integers does."""

    def __init__(self, word_bits: int, *, converts_halves: bool, saturates: bool = True) -> None:
        self.word = f"i{word_bits}"
        self.converts_halves, self.saturates = converts_halves, saturates
        self.entry: list[str] = []          # allocations, before everything else
        self.lines: list[str] = []
        self.declared: set[str] = set()     # functions of LLVM that are used
        self.block = "entry"
        self._number = 0

    def scalar(self, dtype: str) -> str:
        return self.word if dtype == INDEX else SCALARS[dtype]

    def type(self, dtype: str, lanes: int = 1) -> str:
        scalar = self.scalar(dtype)
        return scalar if lanes == 1 else f"<{lanes} x {scalar}>"

    def operand(self, value: Value) -> str:
        return f"{self.type(value.dtype, value.lanes)} {value.text}"

    def fresh(self, stem: str = "v") -> str:
        self._number += 1
        return f"{stem}{self._number}"

    def add(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def name(self, instruction: str) -> str:
        """The name of an instruction's result."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def value(self, instruction: str, dtype: str, lanes: int = 1) -> Value:
        return Value(self.name(instruction), dtype, lanes)

    def call(self, name: str, result: str, *arguments: str) -> str:
        """The name of what a function of LLVM gives, declared on the way. Arguments have types."""
        self._declare(name, result, arguments)
        return self.name(f"call {result} @{name}({', '.join(arguments)})")

    def call_void(self, name: str, *arguments: str) -> None:
        """The same of a function that gives nothing."""
        self._declare(name, "void", arguments)
        self.add(f"call void @{name}({', '.join(arguments)})")

    def _declare(self, name: str, result: str, arguments: tuple[str, ...]) -> None:
        kinds = ", ".join(each[:each.rindex(" ")] if not each.endswith(")")
                          else each[:each.index(" splat")] for each in arguments)
        self.declared.add(f"declare {result} @{name}({kinds})")

    def constant(self, number: float, dtype: str, lanes: int = 1) -> Value:
        text = literal(number, dtype)
        return Value(text if lanes == 1 else f"splat ({self.scalar(dtype)} {text})", dtype, lanes)

    def broadcast(self, value: Value, lanes: int) -> Value:
        """A scalar in every lane; a vector as it is."""
        if value.lanes == lanes:
            return value
        assert value.lanes == 1, f"{value.lanes} lanes are no {lanes}"
        scalar = self.scalar(value.dtype)
        if not value.text.startswith("%"):
            return Value(f"splat ({scalar} {value.text})", value.dtype, lanes)
        kind = self.type(value.dtype, lanes)
        first = self.name(f"insertelement {kind} poison, {scalar} {value.text}, i32 0")
        return self.value(f"shufflevector {kind} {first}, {kind} poison, "
                          f"<{lanes} x i32> zeroinitializer", value.dtype, lanes)

    def gather(self, values: list[Value]) -> Value:
        """Scalars as the lanes of a vector."""
        dtype, lanes = values[0].dtype, len(values)
        kind, text = self.type(dtype, lanes), "poison"
        for lane, each in enumerate(values):
            text = self.name(f"insertelement {kind} {text}, {self.operand(each)}, i32 {lane}")
        return Value(text, dtype, lanes)

    def lane(self, value: Value, lane: int) -> Value:
        if value.lanes == 1:
            return value
        return self.value(f"extractelement {self.operand(value)}, i32 {lane}", value.dtype)

    def start(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block

    def jump(self, block: str) -> None:
        self.add(f"br label %{block}")

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        self.add(f"br i1 {condition.text}, label %{then}, label %{otherwise}")

    def allocate(self, dtype: str, count: int, align: int) -> str:
        """Memory that lives as long as the function runs."""
        name = f"%{self.fresh('memory')}"
        scalar = "i8" if dtype == BOOL else self.scalar(dtype)
        self.entry.append(f"  {name} = alloca [{count} x {scalar}], align {align}")
        return name


def literal(number: float, dtype: str) -> str:
    """A number as LLVM writes it. Floats are the bits of the double that they are."""
    if dtype in FLOATS:
        if dtype == "float16":
            return f"0xH{np.float16(number).view(np.uint16):04X}"
        if dtype == "float32":
            with np.errstate(over="ignore"):
                number = float(np.float32(number))
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    return str(int(number))
