"""How kernels are called: functions that find the buffers of a kernel and hand them to its body,
and one that runs several kernels in a row.

Ahead of time, a kernel's places in the table are part of the code. Here and now they are numbers in
memory, so that nothing but bodies has to be compiled, and these are the same in many networks. One
function finds the buffers of all bodies that have the same number of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....base.classes.dataclass import dataclass


@dataclass(frozen=True)
class Entry:
    """A kernel: its body, the places of the buffers that this is given, all its iterations, how
    many elements it computes in them, and the node of the graph that it is part of."""

    name: str
    body: str
    places: tuple[int, ...]
    iterations: int
    work: int
    node: str


def calling(entry: Entry, word: str) -> str:
    """A kernel as a function of the table and of iterations."""
    lines = [f"define i32 @{entry.name}(ptr %table, {word} %begin, {word} %end) nounwind "
             f"noinline {{"]
    for number, place in enumerate(entry.places):
        lines += [f"  %p{number} = getelementptr inbounds ptr, ptr %table, {word} {place}",
                  f"  %b{number} = load ptr, ptr %p{number}"]
    return "\n".join([*lines, *_call(f"@{entry.body}", len(entry.places), word)])


def finder(buffers: int) -> str:
    """The name of the function that finds so many buffers."""
    return f"find_{buffers}"


def finding(buffers: int, word: str) -> str:
    """A function of the table, places in it, a body, and iterations: hands the buffers at these
    places to the body."""
    lines = [f"define i32 @{finder(buffers)}(ptr %table, ptr %places, ptr %body, {word} %begin, "
             f"{word} %end) nounwind {{"]
    for number in range(buffers):
        lines += [f"  %q{number} = getelementptr inbounds i32, ptr %places, {word} {number}",
                  f"  %n{number} = load i32, ptr %q{number}",
                  f"  %p{number} = getelementptr inbounds ptr, ptr %table, i32 %n{number}",
                  f"  %b{number} = load ptr, ptr %p{number}"]
    return "\n".join([*lines, *_call("%body", buffers, word)])


def _call(body: str, buffers: int, word: str) -> list[str]:
    arguments = "".join(f"ptr %b{number}, " for number in range(buffers))
    return [f"  %s = call i32 {body}({arguments}{word} %begin, {word} %end)", "  ret i32 %s", "}",
            ""]


def running_all(name: str, entries: Iterable[Entry], word: str) -> str:
    """A function that runs kernels `first` to before `last` one after the other, each as a whole:
    0, or the number of the one that failed, from 1 on."""
    lines = [f"define i32 @{name}(ptr %table, i32 %first, i32 %last) {{", "  br label %k0"]
    count = 0
    for number, entry in enumerate(entries):
        count = number + 1
        lines += [
            f"k{number}:",
            f"  %a{number} = icmp sle i32 %first, {number}",
            f"  %b{number} = icmp sgt i32 %last, {number}",
            f"  %c{number} = and i1 %a{number}, %b{number}",
            f"  br i1 %c{number}, label %r{number}, label %k{count}",
            f"r{number}:",
            f"  %s{number} = call i32 @{entry.name}(ptr %table, {word} 0, {word} "
            f"{entry.iterations})",
            f"  %f{number} = icmp eq i32 %s{number}, 0",
            f"  br i1 %f{number}, label %k{count}, label %e{number}",
            f"e{number}:",
            f"  ret i32 {count}"]
    return "\n".join([*lines, f"k{count}:", "  ret i32 0", "}", ""])
