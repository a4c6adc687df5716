"""A loop nest as a program to read.

    x: int8[4, 10] in dram, given
    y: int8[4, 10] in dram, result
    threads i < 4:
        allocate a: int8[1, 16] in inp
        copy a[0, 0 :+ 16] from x[i, 0 :+ 16], padding 0
        for j < 10:
            y[i, j] = max(a[0, j], 0)

A buffer exists from its `allocate` to the end of that block or, if the lines below it are indented
further, to the end of those. `s :+ n` means n elements from s on. Where two axes or buffers share a
name, the later ones get a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..expression.expression import (
    COMPARISONS,
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
from .nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    Marked,
    Nest,
    Region,
    Start,
    Statement,
    When,
    statements_of,
)
from .nest import Sequence as Statements

INDENT = "    "
# How tightly an operator binds its operands; a looser one inside needs parentheses.
PRECEDENCE = {operator: level for level, operators in enumerate((
    ("or",), ("and",), ("==", "!=", "<", "<="), ("|",), ("^",), ("&",), (">>", "<<"),
    ("+", "-"), ("*", "/", "//", "%")))
    for operator in operators}
REGROUPS = ("+", "*", "and", "or")      # a + (b + c) is a + b + c
TIGHT = max(PRECEDENCE.values()) + 1


def listing(nest: Nest) -> str:
    """The whole nest, a statement a line."""
    printer = Printer(nest)
    lines = [f"# {key}: {value}" for key, value in nest.notes.items()]
    for buffer in dict.fromkeys((*nest.inputs, *nest.outputs)):
        roles = [role for role, group in (("given", nest.inputs), ("result", nest.outputs))
                 if buffer in group]
        lines.append(f"{printer.declaration(buffer)}, {' and '.join(roles)}")
    lines += printer.block(nest.body, 0)
    return "\n".join(lines) + "\n"


class Printer:
    """Statements and expressions of one nest as text, with names that are unique in it."""

    def __init__(self, nest: Nest):
        self.names = unique_names(nest)

    def block(self, statement: Statement, depth: int) -> Iterator[str]:
        """The lines of a statement and everything inside it."""
        statements = list(_flat(statement))
        if not statements:
            yield f"{INDENT * depth}nothing"
        for place, each in enumerate(statements):
            rest_of_block = isinstance(each, Allocate) and place == len(statements) - 1
            inside = depth if rest_of_block else depth + 1
            opens = each.children() and not rest_of_block
            yield f"{INDENT * depth}{self.line(each)}{':' if opens else ''}"
            for child in each.children():
                yield from self.block(child, inside)

    def line(self, statement: Statement) -> str:
        """One statement, without the statements inside it."""
        match statement:
            case Loop():
                axis = statement.axis
                return f"{statement.kind.value} {self.expression(axis)} < {axis.extent}"
            case When():
                return f"when {self.expression(statement.condition)}"
            case Allocate():
                copies = f", {statement.copies} copies" if statement.copies > 1 else ""
                slides = f", sliding by {statement.slide.step}" if statement.slide else ""
                period = f" for {statement.period} contents" if statement.period else ""
                return f"allocate {self.declaration(statement.buffer)}{copies}{period}{slides}"
            case Marked():
                return f"{'start of ' if statement.starts else ''}{statement.intrinsic}"
            case Assign():
                return f"{self.expression(statement.target)} = {self.expression(statement.value)}"
            case Copy():
                padding = "" if statement.padding is None else f", padding {statement.padding}"
                return (f"copy {self.region(statement.target)} from "
                        f"{self.region(statement.source)}{padding}")
            case Invoke():
                return f"{statement.intrinsic}({', '.join(map(self.region, statement.regions))})"
            case Start():
                return (f"start of {statement.intrinsic}: {self.region(statement.target)} = "
                        f"{statement.value}")
        return type(statement).__name__.lower()

    def declaration(self, buffer: Buffer) -> str:
        shape = ", ".join(map(str, buffer.shape))
        return f"{self.buffer(buffer)}: {buffer.dtype}[{shape}] in {buffer.scope.value}"

    def buffer(self, buffer: Buffer) -> str:
        return self.names.get(buffer, buffer.name)

    def region(self, region: Region) -> str:
        # Not strict: a region that the verifier refuses for its length must print too.
        parts = [self.expression(start) if extent == 1 else f"{self.expression(start)} :+ {extent}"
                 for start, extent in zip(region.start, region.extents, strict=False)]
        return f"{self.buffer(region.buffer)}[{', '.join(parts)}]"

    def expression(self, node: Expression, level: int = 0) -> str:
        """An expression; in parentheses if it binds its operands less tightly than `level`."""
        match node:
            case Axis():
                return self.names.get(node, node.name)
            case Constant():
                text = str(node)
                return f"({text})" if level and text.startswith("-") else text
            case Access():
                return f"{self.buffer(node.buffer)}[{self._list(node.indices)}]"
            case Cast():
                return f"{node.dtype}({self.expression(node.value)})"
            case Select():
                return f"select({self._list(node.operands())})"
            case Call():
                return f"{node.function.name}({self._list(node.arguments)})"
            case Binary():
                return self._binary(node, level)
        return str(node)

    def _binary(self, node: Binary, level: int) -> str:
        if node.operator not in PRECEDENCE:
            return f"{node.operator}({self._list(node.operands())})"
        own = PRECEDENCE[node.operator]
        if node.dtype == INDEX and node.operator in ("+", "-"):
            text = self._sum(list(_terms(node, 1)))
            return f"({text})" if own < level else text
        same = isinstance(node.right, Binary) and node.right.operator == node.operator
        regroups = node.operator in REGROUPS and same and not node.dtype.startswith("float")
        right = self.expression(node.right, own if regroups else own + 1)
        left = self.expression(node.left, own + (node.operator in COMPARISONS))
        text = f"{left} {node.operator} {right}"
        return f"({text})" if own < level else text

    def _sum(self, terms: list[tuple[int, Expression]]) -> str:
        """A sum with its number at the end, or at the start if everything else is subtracted."""
        number = sum(sign * int(term.value) for sign, term in terms if isinstance(term, Constant))
        signed = [(sign, self.expression(term, PRECEDENCE["*"])) for sign, term in terms
                  if not isinstance(term, Constant)]
        if number or not signed:
            signed.append((-1 if number < 0 else 1, str(abs(number))))
        first = next((each for each in signed if each[0] > 0), signed[0])
        signed.remove(first)
        start = first[1] if first[0] > 0 else f"-{first[1]}"
        return start + "".join(f" {'+' if sign > 0 else '-'} {text}" for sign, text in signed)

    def _list(self, nodes: Sequence[Expression]) -> str:
        return ", ".join(map(self.expression, nodes))


def _terms(node: Expression, sign: int) -> Iterator[tuple[int, Expression]]:
    """The terms of an index, each with 1 or -1. Indices never wrap, so the order is free."""
    match node:
        case Binary(operator="+" | "-", left=left, right=right):
            yield from _terms(left, sign)
            yield from _terms(right, sign if node.operator == "+" else -sign)
        case Binary(operator="*", left=left, right=Constant(value=value)) if value < 0:
            yield -sign, left * -int(value)
        case _:
            yield sign, node


def _flat(statement: Statement) -> Iterator[Statement]:
    """The statements of a sequence and of the sequences in it; any other statement by itself."""
    if isinstance(statement, Statements):
        for each in statement.statements:
            yield from _flat(each)
    else:
        yield statement


def unique_names(nest: Nest) -> dict[Axis | Buffer, str]:
    """A name for each axis and buffer: its own, unless another one had it first."""
    named = dict.fromkeys(_named_items(nest))
    taken = {each.name for each in named}
    names: dict[Axis | Buffer, str] = {}
    given: set[str] = set()
    for each in named:
        name, number = each.name, 1
        while name in given or (number > 1 and name in taken):
            number += 1
            name = f"{each.name}_{number}"
        given.add(name)
        names[each] = name
    return names


def _named_items(nest: Nest) -> Iterator[Axis | Buffer]:
    """Everything in a nest that has a name, in the order in which it is printed."""
    yield from (*nest.inputs, *nest.outputs)
    for statement in statements_of(nest.body):
        match statement:
            case Loop():
                yield statement.axis
            case Allocate():
                yield statement.buffer
            case Copy():
                yield from _named_items_in(statement.target, statement.source)
            case Invoke():
                yield from _named_items_in(*statement.regions)
            case Start():
                yield from _named_items_in(statement.target)
            case When():
                yield from _named_items_in(statement.condition)
            case Assign():
                yield from _named_items_in(statement.target, statement.value)


def _named_items_in(*parts: Region | Expression) -> Iterator[Axis | Buffer]:
    for part in parts:
        if isinstance(part, Region):
            yield part.buffer
        for expression in part.start if isinstance(part, Region) else (part,):
            for node in walk(expression):
                if isinstance(node, Axis):
                    yield node
                elif isinstance(node, Access):
                    yield node.buffer
