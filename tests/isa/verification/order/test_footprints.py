"""Which tiles an access touches: exactly those of its iterations, however many these are."""

from itertools import product

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from microtron.isa.verification.order.accesses import NO_COLUMN, ROW
from microtron.isa.verification.order.footprints import is_empty, mark, new_workspace

counts = st.sampled_from([0, 1, 1, 2, 3, 5, 9])
strides = st.integers(-20, 20)
triples = st.tuples(counts, counts, counts)
bases = st.lists(st.integers(400, 450), min_size=1, max_size=5)


def row_of(loops, stride, *, base=0, uops=None, divisor=1, span=1):
    row = np.zeros(1, ROW)
    row["loops"], row["base"], row["divisor"], row["span"] = loops, base, divisor, span
    row["stride"] = [each * span for each in stride]
    row["column"], row["count"] = (NO_COLUMN, 1) if uops is None else (2, len(uops))
    return row[0]


def marked(row, uops=()):
    """The cells that are marked, and which of them is first."""
    columns = np.zeros((4, len(uops)), np.int32)
    columns[2] = uops
    room = new_workspace(1 << 17)
    room.mask[:] = 1                    # what was there before does not matter
    first, count = mark(row, columns, room)
    return (first + np.flatnonzero(room.mask[:count])).tolist()


@settings(max_examples=300)
@given(loops=triples, stride=st.tuples(strides, strides, strides), uops=bases,
       units=st.sampled_from([(1, 1), (1, 1), (2, 1), (16, 1), (1, 2), (1, 8)]))
def test_the_cells_are_those_of_every_iteration(loops, stride, uops, units):
    divisor, span = units
    indices = {(base + sum(at * step for at, step in zip(each, stride, strict=True))) * span + cell
               for base in uops for each in product(*map(range, loops)) for cell in range(span)}
    row = row_of(loops, stride, uops=uops, divisor=divisor, span=span)
    event("empty" if 0 in loops else "some")
    assert is_empty(row) == (0 in loops)
    if 0 not in loops:
        assert marked(row, uops) == sorted({index // divisor for index in indices})


def test_a_loop_of_any_length_is_spread_exactly():
    for count in range(1, 70):
        assert marked(row_of((1, count, 1), (0, 3, 0), base=5)) == [*range(5, 5 + 3 * count, 3)]


def test_millions_of_iterations_on_few_tiles():
    row = row_of((65535, 65535, 65535), (0, 0, 1), base=1)
    assert marked(row) == [*range(1, 65536)]
    # Every number from 8 on is a sum of threes and fives, and the other end mirrors the first.
    loops = (4000, 4000, 1)
    last = 3999 * 8
    missing = {1, 2, 4, 7}
    expected = [each for each in range(last + 1)
                if each not in missing and last - each not in missing]
    assert marked(row_of(loops, (3, 5, 9))) == expected
