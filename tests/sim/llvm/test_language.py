"""Compiled code means what Python means by the same text."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.machine_code import assembly, object_file
from microtron.sim.llvm.decorators import Blank, inline, noinline
from microtron.sim.llvm.entry import Entry, bind_array, entry_of
from microtron.sim.llvm.values import NUMBER, Array, Record

from .interpreted import interpret

TABLE = np.array([[3, 1, 4], [1, 5, 9]])
FACTOR = np.uint8(7)
RECORD = np.dtype({"names": ["small", "wide", "list", "inner"],
                   "formats": [np.int32, np.int64, (np.int64, (4,)),
                               np.dtype([("deep", np.int64)])],
                   "offsets": [4, 8, 16, 48], "itemsize": 64})
blank = Blank(np.dtype([("first", np.int64), ("second", np.int64)]))


class Pair(NamedTuple):
    one: int
    other: int


def compiled(function, **kinds):
    """An entry that is compiled at once, and not kept."""
    entry = Entry(function, kinds, name="test", sources="")
    entry._code = entry_of(object_file(entry.text()))
    return entry


def operators(a: int, b: int) -> int:
    return ((a + b) * 3 - (a - b) ^ (a & b) | (a << 3)) + (b >> 2) + -a + ~b


def divisions(a: int, b: int) -> int:
    quotient, rest = divmod(a, b)
    return a // b * 1000 + a % b + quotient * 7 + rest


def comparisons(a: int, b: int) -> int:
    return ((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b)
            + 64 * (0 <= a < b) + 128 * (a in (b, 3, -1)) + 256 * (a not in (b, 5)))


def deciding(a: int, b: int) -> int:
    """The value of `and` and `or` is that of an operand."""
    return (a and b) * 3 + (a or b) * 5 + (not a) + ((a > 0 and b > 0) or a == b) + bool(a)


def choose(a: int, b: int) -> int:
    one, other = (a, b) if a < b else (b, a)
    return min(a, b, 4) * 100 + max(a, -b) + one - other * 3


def branches(a: int, b: int) -> int:
    if a < 0 or not b:
        return a
    elif a > 10 and b > 10:
        a = b - a
    else:
        b += a
    while a > 0:
        a -= 3
        if a == 4:
            break
    return a * 1000 + b


def loops(a: int, b: int) -> int:
    total, last = 0, 0
    for number in range(a % 7, 5):
        if number == b:
            continue
        total += number
        last = number
        number = 100                    # the loop goes on as if nothing had happened
    for count, weight in ((a, 2), (b, 3)):
        total += count * weight
    for _ in range(b % 3):
        for column in range(len(TABLE[0])):
            total += TABLE[1, column] * FACTOR
    return total * 10 + last


@inline
def exchanged(pair: Pair, by: int) -> tuple[int, int]:
    return pair.other + by, pair.one


@noinline
def far(a: int, b: int) -> bool:
    if a > b:
        return True
    return b - a > 5


def turned(pair: Pair) -> Pair:
    return Pair(pair.other, pair.one - 1)


def calls(a: int, b: int) -> int:
    wires = blank()
    wires.first = a
    pair = Pair(a, b)
    left, right = exchanged(pair, 1)
    other = turned(turned(pair))
    return (left * 3 + right + wires.first * 5 + wires.second + int(far(a, b)) + pair[1]
            + other.one * 7 + other.other * 11)


small = st.integers(-12, 12)
FUNCTIONS = (operators, divisions, comparisons, deciding, choose, branches, loops, calls)


@pytest.fixture(scope="module")
def entries():
    return {each: compiled(each, a=NUMBER, b=NUMBER) for each in FUNCTIONS}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
@given(a=small, b=small)
def test_numbers_are_those_of_python(entries, function, a, b):
    if function is divisions and b == 0:
        return
    assert entries[function](a, b) == function(a, b)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_variables_and_records_are_the_first_things_in_a_function(function):
    """LLVM turns them into values only there. Behind a call, inlining would move them."""
    text = Entry(function, {"a": NUMBER, "b": NUMBER}, name="test", sources="").text()
    for body in text.split("entry:")[1:]:
        made = ["alloca" in line for line in body.splitlines() if line.startswith("  ")]
        assert made == sorted(made, reverse=True)


CORNERS = (-1 << 63, -1, 0, 1, (1 << 63) - 1)


@pytest.mark.parametrize("function", [operators, comparisons], ids=lambda each: each.__name__)
def test_numbers_have_64_bits(entries, function):
    for a in CORNERS:
        for b in CORNERS:
            wrapped = (function(a, b) + (1 << 63)) % (1 << 64) - (1 << 63)
            assert entries[function](a, b) == wrapped


def records(rows: object, table: object, single: object, number: int) -> int:
    row = rows[1]
    row.small, row.wide = number, row.small
    row.list[2] += number
    row.inner.deep = len(rows) * 10 + len(table)
    rows[0].wide -= 1
    table[1, 2] = row.list[2]
    part = table[1:]
    part[0, 0] += 5
    low, middle, high = table[0]
    line = table[1]
    line[:2] = table[0][1:3]
    return low + 10 * middle + 100 * high + single.wide + part[0, 1]


RECORDS = {"rows": Array(RECORD, (None,)), "table": Array(np.dtype(np.uint16), (None, 3)),
           "single": Record(RECORD), "number": NUMBER}


@pytest.mark.parametrize("number", [0, 1, 77, -3])
def test_memory_is_that_of_numpy(number):
    def memory():
        rows, single = np.zeros(3, RECORD), np.zeros(1, pickle.loads(pickle.dumps(RECORD)))
        rows["list"][1], rows["small"], single["wide"] = (9, 8, 7, 6), -5, 1 << 40
        return rows, np.arange(6, dtype=np.uint16).reshape(2, 3), single

    ours, theirs = memory(), memory()
    entry = compiled(records, **RECORDS)
    assert entry(*ours, number) == interpret(entry)(*theirs, number)
    for one, other in zip(ours, theirs, strict=True):
        assert one.tobytes() == other.tobytes()


def test_arrays_that_are_known_are_the_same_arrays():
    rows, table, single = np.zeros(3, RECORD), np.zeros((2, 3), np.uint16), np.zeros(1, RECORD)
    single.flags.writeable = False
    entry = compiled(records, **RECORDS)
    given = [bind_array(RECORDS[name], each) for name, each in zip(RECORDS, (rows, table, single),
                                                                   strict=False)]
    for number in (3, 4):
        entry(*given, number)
    assert rows["small"].tolist() == [0, 4, 0]
    assert rows["list"][1].tolist() == [0, 0, 7, 0]
    with pytest.raises(AssertionError, match="instead of"):
        entry(given[2], *given[1:], 0)
    with pytest.raises(TypeError, match="another process"):
        pickle.dumps(given[0])


def copy(table: object) -> int:
    table[:100] = table[100:200]
    return table[0]


def test_memory_is_copied_without_a_call():
    text = Entry(copy, {"table": Array(np.dtype(np.int64), (200,))}, name="test",
                 sources="").text()
    assert "memcpy" not in assembly(text)
    table = np.arange(200)
    assert compiled(copy, table=Array(np.dtype(np.int64), (200,)))(table) == 100
    assert table.tolist() == [*range(100, 200), *range(100, 200)]


def test_an_array_that_is_not_what_was_said_is_refused():
    entry = compiled(records, **RECORDS)
    with pytest.raises(AssertionError):
        entry(np.zeros(3, RECORD), np.zeros((2, 3), np.int32), np.zeros(1, RECORD), 0)
    with pytest.raises(AssertionError):
        entry(np.zeros(3, RECORD), np.zeros((2, 4), np.uint16), np.zeros(1, RECORD), 0)


def no_return(a: int):
    return a


def with_lambda(a: int) -> int:
    return (lambda: a)()


def other_kind(a: int) -> int:
    a = (a, 1)
    return 0


def with_assert(a: int) -> int:
    assert a
    return a


def foreign_call(a: int) -> int:
    return sum(a, 1)


def later(a: int) -> int:
    a += value      # noqa: F821
    value = 1
    return a + value


def wrong_count(a: int) -> tuple[int, int]:
    return a


def calls_wrong_count(a: int) -> int:
    one, _ = wrong_count(a)
    return one


def through_a_list(a: int) -> int:
    for each in [a]:
        a += each
    return a


def loop_with_else(a: int) -> int:
    while a > 0:
        a -= 1
    else:
        a = 7
    return a


def count_with_else(a: int) -> int:
    for _ in range(a):
        a += 1
    else:
        a = 7
    return a


def break_of_a_tuple(a: int) -> int:
    while a:
        for each in (1, 2, 3):
            if each == a:
                break
        a -= 1
    return a


def with_a_step(a: int) -> int:
    for each in range(0, a, 2):
        a += each
    return a


def true_division(a: int) -> int:
    return a / 2


def power(a: int) -> int:
    return a ** 2


def identity(a: int) -> int:
    return a is FACTOR


def chain(a: int) -> int:
    return 0 <= a < TABLE[0, a]


def twice(a: int) -> int:
    wires = blank()
    wires.first += 1
    TABLE[0, int(far(a, 1))] += 1
    return wires.first


def two_kinds(a: int) -> int:
    either = (a, 1) if a else a
    return either


def too_few(a: int) -> int:
    one, other, third = a, 1
    return one + other + third


def longer_than_its_place(a: int) -> int:
    line = TABLE[0]
    line[:2] = TABLE[1][:3]
    return a


def write_to_a_table(a: int) -> int:
    TABLE[0, 1] = a
    return a


@pytest.mark.parametrize(("function", "words"), [
    (two_kinds, "one of two kinds of things"), (too_few, r"\(one, other, third\) gets 2 values"),
    (longer_than_its_place, "only as many elements as are known"),
    (write_to_a_table, "a row or in a constant table"),
    (loop_with_else, "has no else"), (count_with_else, "has no else"),
    (break_of_a_tuple, "always runs to its end"), (with_a_step, r"cannot go through range\(0, a"),
    (true_division, "no Div"), (power, "no Pow"),
    (identity, "no Is"), (chain, "all of it is evaluated"), (twice, "evaluated twice"),
    (no_return, "must say that it returns int, bool"), (with_lambda, "no Lambda"),
    (other_kind, "a is not always the same kind"), (with_assert, "no Assert"),
    (foreign_call, "cannot call sum"), (later, "no value yet"),
    (calls_wrong_count, "not what the function is said to return"),
    (through_a_list, r"cannot go through \[a\]")])
def test_what_is_not_in_the_language_is_named(function, words):
    with pytest.raises(TypeError, match=words):
        compiled(function, a=NUMBER)
