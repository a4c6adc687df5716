"""Nests as programs to read."""

from __future__ import annotations

from microtron.compiler.expression.expression import (
    Axis,
    Call,
    Constant,
    Function,
    both,
    minimum,
    select,
)
from microtron.compiler.nest import listing as module
from microtron.compiler.nest.listing import Printer, listing
from microtron.compiler.nest.nest import (
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Marked,
    Nest,
    Scope,
    Sequence,
    Start,
    When,
    make_sequence,
)

from .nests import Relu, access, loop, region


def expression_text(expression) -> str:
    return Printer(Nest((), (), Sequence(()))).expression(expression)


def test_the_example_in_the_documentation_is_what_is_printed():
    example = module.__doc__.split("\n\n")[1]
    assert listing(Relu().nest()) == "".join(
        line.removeprefix("    ") + "\n" for line in example.splitlines())


def test_printing_is_deterministic():
    assert listing(Relu().nest()) == listing(Relu().nest())


def test_a_buffer_whose_block_goes_on_has_its_body_indented():
    x, y = Buffer("x", (1,), "int8"), Buffer("y", (1,), "int8")
    a = Buffer("a", (1,), "int8", Scope.LOCAL)
    fill = Assign(access(a, 0), access(x, 0))
    assert listing(Nest((x,), (y,), make_sequence(
        Allocate(a, fill), Assign(access(y, 0), access(x, 0))))) == (
        "x: int8[1] in dram, given\n"
        "y: int8[1] in dram, result\n"
        "allocate a: int8[1] in local:\n"
        "    a[0] = x[0]\n"
        "y[0] = x[0]\n")


def test_a_sequence_in_a_sequence_is_one_block():
    x = Buffer("x", (1,), "int8")
    a = Buffer("a", (1,), "int8", Scope.LOCAL)
    fill = Assign(access(a, 0), access(x, 0))
    body = Sequence((Sequence((Allocate(a, fill),)), Assign(access(x, 0), access(x, 0))))
    assert listing(Nest((x,), (x,), body)).splitlines() == [
        "x: int8[1] in dram, given and result",
        "allocate a: int8[1] in local:",
        "    a[0] = x[0]",
        "x[0] = x[0]"]


def test_every_kind_of_statement_has_its_line():
    x = Buffer("x", (8, 4), "int8")
    acc = Buffer("acc", (8, 4), "int32", Scope.ACC)
    i, j = Axis("i", 8), Axis("j", 4)
    call = Invoke("gemm", (region(acc, (i, 1), (0, 4)), region(x, (i, 1), (0, 4))))
    body = Allocate(acc, loop(i, Start("gemm", region(acc, (i, 1), (0, 4)), -1),
                              When(i * 2 + 1 < 9, call),
                              Loop(j, Assign(access(acc, i, j), access(x, i, j).cast("int32")),
                                   LoopKind.UNROLLED),
                              Marked("gemm", Sequence(()), starts=True),
                              Marked("gemm", Copy(region(x, (0, 2), (0, 4)),
                                                  region(x, (i - 1, 2), (0, 4))))), copies=2)
    assert listing(Nest((x,), (x,), body, {"schedule": "by hand"})) == (
        "# schedule: by hand\n"
        "x: int8[8, 4] in dram, given and result\n"
        "allocate acc: int32[8, 4] in acc, 2 copies\n"
        "for i < 8:\n"
        "    start of gemm: acc[i, 0 :+ 4] = -1\n"
        "    when i * 2 + 1 < 9:\n"
        "        gemm(acc[i, 0 :+ 4], x[i, 0 :+ 4])\n"
        "    unroll j < 4:\n"
        "        acc[i, j] = int32(x[i, j])\n"
        "    start of gemm:\n"
        "        nothing\n"
        "    gemm:\n"
        "        copy x[0 :+ 2, 0 :+ 4] from x[i - 1 :+ 2, 0 :+ 4]\n")


def test_names_that_are_shared_get_numbers():
    first, second = Buffer("x", (4,), "int8"), Buffer("x", (4,), "int8")
    i, again = Axis("i", 4), Axis("i", 4)
    nest = Nest((first,), (second,), make_sequence(
        loop(i, Assign(access(second, i), access(first, i))),
        loop(again, Assign(access(second, again), access(first, again)))))
    assert listing(nest).splitlines() == [
        "x: int8[4] in dram, given",
        "x_2: int8[4] in dram, result",
        "for i < 4:",
        "    x_2[i] = x[i]",
        "for i_2 < 4:",
        "    x_2[i_2] = x[i_2]"]


def test_a_number_never_makes_a_name_that_something_else_has():
    buffers = [Buffer(name, (1,), "int8") for name in ("x", "x", "x_2", "x_2", "x")]
    names = module.unique_names(Nest(tuple(buffers), (), Sequence(())))
    assert [names[buffer] for buffer in buffers] == ["x", "x_3", "x_2", "x_2_2", "x_4"]


def test_an_axis_and_a_buffer_never_share_a_name():
    x, i = Buffer("i", (4,), "int8"), Axis("i", 4)
    assert listing(Nest((x,), (x,), loop(i, Assign(access(x, i), Constant(1, "int8"))))) == (
        "i: int8[4] in dram, given and result\n"
        "for i_2 < 4:\n"
        "    i[i_2] = 1\n")


def test_parentheses_are_where_they_change_the_meaning_and_nowhere_else():
    i, j = Axis("i", 8), Axis("j", 8)
    assert expression_text((i + j) * 2 % 5 - i // 2) == "(i + j) * 2 % 5 - i // 2"
    assert expression_text((i - j).cast("int8") - (i.cast("int8") - j.cast("int8"))) == (
        "int8(i - j) - (int8(i) - int8(j))")
    assert expression_text(i + (j + 1)) == "i + j + 1"
    assert expression_text((i * 2) // 3 % 4) == "i * 2 // 3 % 4"
    assert expression_text(i * (j // 2)) == "i * (j // 2)"
    assert expression_text(both(i < 3, j + 1 <= i)) == "i < 3 and j + 1 <= i"
    assert expression_text((i < 3).equals(j < 3)) == "(i < 3) == (j < 3)"
    assert expression_text(minimum(i + 1, j)) == "min(i + 1, j)"
    assert expression_text(select(i < 3, j, 0)) == "select(i < 3, j, 0)"
    assert expression_text(Call(Function("half", "int8", None), (i,))) == "half(i)"


def test_sums_of_indices_are_written_the_short_way():
    i, j = Axis("i", 8), Axis("j", 8)
    assert expression_text(Constant(-1) + i * 2 + j) == "i * 2 + j - 1"
    assert expression_text(i - (j - 3)) == "i - j + 3"
    assert expression_text(i - (-3)) == "i + 3"
    assert expression_text(4 - i) == "4 - i"
    assert expression_text(i * -2 + j) == "j - i * 2"
    assert expression_text(0 - i - 1) == "-i - 1"
    assert expression_text((i + 1) * 2) == "(i + 1) * 2"
    assert expression_text(i * -2 < 3) == "i * (-2) < 3"
    assert expression_text(Constant(1) + i - 1) == "i"


def test_sums_of_floats_keep_their_order():
    x, y = Buffer("x", (1,), "float32"), Buffer("y", (1,), "float32")
    a, b = access(x, 0), access(y, 0)
    assert expression_text(a + (b + a)) == "x[0] + (y[0] + x[0])"
