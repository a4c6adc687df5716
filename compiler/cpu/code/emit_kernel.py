"""A loop nest as a function, and functions as a module.

    int32_t kernel(void *const *table, intptr_t begin, intptr_t end)

`table` has the address of each buffer, at places that are part of the code; `begin` and `end` are
iterations of the outermost loops, if these are parallel, and 0 and 1 otherwise. The result is 0, or
1 if an index that was computed from data was outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from hashlib import sha256
from math import prod

from ....base.classes.dataclass import dataclass
from ....base.processor import Target
from ...nest.nest import Assign, Buffer, Loop, Statement, parallel_loops
from .emit_statements import NO_VECTORS, Statements
from .emit_values import Values
from .entry import Entry, calling, finder, finding, running_all
from .sharing import HELP_STEPS, RUN_STEPS, running_steps
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
        return prod(loop.axis.extent for loop in parallel_loops(self.body))

    @property
    def work(self) -> int:
        """How many elements it computes, over all iterations: what decides whether threads pay."""
        return _work(self.body)

    def with_buffers(self, renamed: Mapping[Buffer, Buffer]) -> Kernel:
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
        self.entries: list[Entry] = []
        self.bodies: dict[str, Body] = {}          # what kernels do, once for equal ones, by name

    def add(self, kernel: Kernel, places: Mapping[Buffer, int]) -> None:
        """A kernel whose buffers have these places in the table."""
        writer = Writer(self.target.word_bits, converts_halves=self.target.converts_halves,
                        saturates=self.target.saturates)
        values = Values(writer, self.target)
        values.pointers = {each: f"%b{kernel.buffers.index(kernel.arguments.get(each, each))}"
                           for each in (*kernel.reads, *kernel.writes)}
        values.status = "%status"
        statements, body = Statements(values), kernel.body
        if parallel_loops(body):
            statements.emit_shared(parallel_loops(body), "%begin", "%end")
        else:
            statements.add(body)
        text = _body(kernel, writer)
        name = f"body_{sha256(text.encode()).hexdigest()[:24]}"
        self.bodies[name] = Body(text, len(kernel.buffers), frozenset(writer.declared))
        self.entries.append(Entry(kernel.name, name, tuple(places[each] for each in kernel.buffers),
                                  kernel.iterations, kernel.work, kernel.node))

    def text(self, run: str = "") -> str:
        """All kernels as one module in LLVM's language, and a function of that name, if any, which
        runs them in a row."""
        word = f"i{self.target.word_bits}"
        return "\n".join((*_with_declarations(self.bodies, "internal "),
                          *(calling(each, word) for each in self.entries),
                          *([running_all(run, self.entries, word)] if run else ()),
                          _mark("".join(body.text for body in self.bodies.values()))))

    def functions(self) -> tuple[str, ...]:
        """What it takes to run kernels whose places are not part of the code, by name: bodies,
        functions that find buffers for these, and those that run kernels in a row."""
        finders = {finder(each.buffers) for each in self.bodies.values()}
        return (*self.bodies, *sorted(finders), RUN_STEPS, HELP_STEPS)

    def text_of(self, functions: Iterable[str]) -> str:
        """Some of these functions as a module: other parts have the same ones, and what was
        compiled for one is there for all."""
        word, names = f"i{self.target.word_bits}", frozenset(functions)
        bodies = {name: body for name, body in self.bodies.items() if name in names}
        found = {each.buffers for each in self.bodies.values() if finder(each.buffers) in names}
        return "\n".join((*_with_declarations(bodies),
                          *(finding(each, word) for each in sorted(found)),
                          *([running_steps(word)] if names & {RUN_STEPS, HELP_STEPS} else ()),
                          _mark("".join(body.text for body in bodies.values()))))


@dataclass(frozen=True)
class Body:
    """A function from its parameters on, and what it calls."""

    text: str
    buffers: int
    declared: frozenset[str]


def _with_declarations(bodies: Mapping[str, Body], linkage: str = "") -> Iterator[str]:
    yield from sorted({each for body in bodies.values() for each in body.declared})
    yield ""
    for name, body in bodies.items():
        yield f"define {linkage}i32 @{name}{body.text}"


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
    parallel = bool(parallel_loops(kernel.body))
    lines = [f"({parameters}{word} %begin, {word} %end) noinline nounwind {{", "entry:",
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
