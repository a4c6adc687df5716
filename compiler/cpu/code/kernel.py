"""A loop nest as a function, and functions as a module.

    int32_t kernel(void *const *table, intptr_t begin, intptr_t end)

`table` has the address of each buffer, at places that are part of the code; `begin` and `end` are
iterations of the outermost loops, if these are parallel, and 0 and 1 otherwise. The result is 0, or
1 if an index that was computed from data was outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import prod

from ....native.target import Target
from ...nest.nest import Assign, Buffer, Loop, Statement, shared_loops
from .statements import NO_VECTORS, Statements
from .values import Values
from .writer import Writer


@dataclass(frozen=True)
class Kernel:
    """One step of a part: a statement over buffers, of which threads may share the iterations."""

    name: str                       # of the function
    body: Statement
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    node: str = ""                  # of the graph that it is part of
    arguments: Mapping[Buffer, Buffer] = field(default_factory=dict)    # that it is given instead

    @property
    def iterations(self) -> int:
        """Of the loops that threads share; 1 if there are none."""
        return prod(loop.axis.extent for loop in shared_loops(self.body))

    @property
    def work(self) -> int:
        """How many elements it computes, over all iterations: what decides whether threads pay."""
        return _work(self.body)

    def on(self, renamed: Mapping[Buffer, Buffer]) -> Kernel:
        """The same kernel on other buffers."""
        return replace(self, arguments={**self.arguments, **renamed})

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """That it is given."""
        return tuple(dict.fromkeys(self.arguments.get(each, each)
                                   for each in (*self.reads, *self.writes)))


def _work(statement: Statement) -> int:
    inside = sum(_work(child) for child in statement.children())
    if isinstance(statement, Loop):
        return inside * statement.axis.extent
    return inside + isinstance(statement, Assign)


class Module:
    """Functions for one processor."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.functions: list[str] = []              # that find a kernel's buffers in the table
        self.bodies: dict[str, _Body] = {}          # what kernels do, once for equal ones, by name

    def add(self, kernel: Kernel, places: Mapping[Buffer, int]) -> None:
        """A kernel whose buffers have these places in the table."""
        writer = Writer(self.target.word_bits)
        values = Values(writer, self.target)
        values.pointers = {each: f"%b{kernel.buffers.index(kernel.arguments.get(each, each))}"
                           for each in (*kernel.reads, *kernel.writes)}
        values.status = "%status"
        statements, body = Statements(values), kernel.body
        if shared_loops(body):
            statements.shared(shared_loops(body), "%begin", "%end")
        else:
            statements.add(body)
        text = _body(kernel, writer)
        name = f"body_{sha256(text.encode()).hexdigest()[:24]}"
        self.bodies[name] = _Body(text, len(kernel.buffers), frozenset(writer.declared))
        self.functions.append(_entry(kernel, places, writer.word, name))

    def add_run(self, name: str, kernels: Iterable[Kernel]) -> None:
        """A function that runs kernels `first` to before `last` one after the other, each as a
        whole: 0, or the number of the one that failed, from 1 on."""
        word = f"i{self.target.word_bits}"
        lines = [f"define i32 @{name}(ptr %table, i32 %first, i32 %last) {{", "  br label %k0"]
        count = 0
        for number, kernel in enumerate(kernels):
            count = number + 1
            lines += [
                f"k{number}:",
                f"  %a{number} = icmp sle i32 %first, {number}",
                f"  %b{number} = icmp sgt i32 %last, {number}",
                f"  %c{number} = and i1 %a{number}, %b{number}",
                f"  br i1 %c{number}, label %r{number}, label %k{count}",
                f"r{number}:",
                f"  %s{number} = call i32 @{kernel.name}(ptr %table, {word} 0, "
                f"{word} {kernel.iterations})",
                f"  %f{number} = icmp eq i32 %s{number}, 0",
                f"  br i1 %f{number}, label %k{count}, label %e{number}",
                f"e{number}:",
                f"  ret i32 {count}"]
        self.functions.append("\n".join([*lines, f"k{count}:", "  ret i32 0", "}", ""]))

    def text(self) -> str:
        """All functions as one module in LLVM's language; kernels and `run` are seen outside."""
        declared = sorted({each for body in self.bodies.values() for each in body.declared})
        bodies = [f"define internal i32 @{name}{body.text}" for name, body in self.bodies.items()]
        return "\n".join((*declared, "", *bodies, *self.functions,
                          _mark("".join(body.text for body in self.bodies.values()))))

    def pieces(self) -> tuple[str, ...]:
        """The same as several modules, one for each body: other parts have some of them too, and
        what was compiled for one is there for all."""
        word = f"i{self.target.word_bits}"
        declared = [f"declare i32 @{name}({'ptr, ' * body.buffers}{word}, {word})"
                    for name, body in self.bodies.items()]
        return (*("\n".join((*sorted(body.declared), f"define i32 @{name}{body.text}",
                             _mark(body.text))) for name, body in self.bodies.items()),
                "\n".join((*declared, *self.functions)))


@dataclass(frozen=True)
class _Body:
    """A function from its parameters on, and what it calls."""

    text: str
    buffers: int
    declared: frozenset[str]


def _mark(text: str) -> str:
    """The definition of the mark for loops, if it is used."""
    return ('!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.vectorize.enable", i1 false}\n'
            if NO_VECTORS in text else "")


def _body(kernel: Kernel, writer: Writer) -> str:
    """The function of a kernel, from its parameters on: two kernels may have the same."""
    word = writer.word
    written = {kernel.arguments.get(each, each) for each in kernel.writes}
    parameters = "".join(
        f"ptr noalias nocapture{'' if buffer in written else ' readonly'} %b{number}, "
        for number, buffer in enumerate(kernel.buffers))
    parallel = bool(shared_loops(kernel.body))
    lines = [f"({parameters}{word} %begin, {word} %end) nounwind {{", "entry:",
             "  %status = alloca i32", *writer.entry, "  store i32 0, ptr %status"]
    if parallel:
        lines += [f"  %some = icmp ult {word} %begin, %end",
                  "  br i1 %some, label %start, label %none", "start:"]
        first = next(place for place, line in enumerate(writer.lines) if " = phi " in line)
        writer.lines[first] = writer.lines[first].replace("%entry]", "%start]", 1)
    lines += [*writer.lines, "  %result = load i32, ptr %status", "  ret i32 %result"]
    if parallel:
        lines += ["none:", "  ret i32 0"]
    return "\n".join([*lines, "}", ""])


def _entry(kernel: Kernel, places: Mapping[Buffer, int], word: str, body: str) -> str:
    lines = [f"define i32 @{kernel.name}(ptr %table, {word} %begin, {word} %end) nounwind "
             f"noinline {{"]
    arguments = ""
    for number, buffer in enumerate(kernel.buffers):
        lines += [f"  %p{number} = getelementptr inbounds ptr, ptr %table, {word} "
                  f"{places[buffer]}",
                  f"  %b{number} = load ptr, ptr %p{number}"]
        arguments += f"ptr %b{number}, "
    return "\n".join([*lines, f"  %s = call i32 @{body}({arguments}{word} %begin, "
                              f"{word} %end)", "  ret i32 %s", "}", ""])
