"""Boxes of DRAM: rows of cells at two strides, and whether two boxes have a cell in common.

A transfer touches `base + i × outer stride + j × inner stride + k` for `k` below a length. Tidied
up, strides are positive and rows lie apart: what touches has become one longer row, so that the
usual box is a single row. Two boxes of a billion rows are compared plane by plane, and the rows
of two planes all at once: where they first meet is the first multiple of one stride that falls
into an interval modulo the other. Compiled with numba.
"""

# No postponed annotations here: numba reads the functions as they are.
import numpy as np
import numpy.typing as npt

from .jit import entry, helper

Numbers = npt.NDArray[np.int64]
OUTER, INNER, LENGTH = range(3)     # columns of `loops` and, but for the last, of `stride`


@entry
def normalize_box(count: Numbers, step: Numbers) -> int:
    """Change a box to one with the same cells whose rows lie apart, and return by how much its base
    moves. One without rows stays without.

    The inner loop is the one that there is, if one is enough. Otherwise the outer loop is the one
    whose planes are quicker to compare with others: that of the larger stride, which leaves each
    plane few others to meet, unless planes overlap or there are very many of them.
    """
    moved = 0
    for each in range(LENGTH):
        moved += min(step[each], 0) * max(count[each] - 1, 0)
        step[each] = abs(step[each])
    for turn in range(2):           # rows that touch or overlap are one row
        if count[INNER] == 1 or (turn == 0 and count[OUTER] > 1 and step[OUTER] < step[INNER]):
            _swap(count, step)
        if count[INNER] > 1 and step[INNER] <= count[LENGTH]:
            count[LENGTH] += (count[INNER] - 1) * step[INNER]
            count[INNER] = 1
    if count[OUTER] > 1 and count[INNER] > 1 and step[OUTER] % step[INNER] == 0 and (
            step[OUTER] <= count[INNER] * step[INNER]):     # planes that go on are one plane
        count[INNER] += (count[OUTER] - 1) * (step[OUTER] // step[INNER])
        count[OUTER] = 1
    extent = (count[INNER] - 1) * step[INNER] + count[LENGTH]
    pairs = count[INNER] if step[OUTER] < extent else count[INNER] ** 2
    if count[INNER] > 1 and count[OUTER] > pairs:
        _swap(count, step)
    for each in range(LENGTH):
        if count[each] == 1:
            step[each] = 1
    return moved


@helper
def _swap(count: Numbers, step: Numbers) -> None:
    count[OUTER], count[INNER] = count[INNER], count[OUTER]
    step[OUTER], step[INNER] = step[INNER], step[OUTER]


@entry
def find_common_run(base: int, loops: Numbers, stride: Numbers, base2: int, loops2: Numbers,
                    stride2: Numbers, work: Numbers, limit: int) -> tuple[int, int]:
    """First and last cell of a run that two boxes have in common; (0, -1) if there is none.

    Adds the planes it compares to `work[0]` and stops when that is beyond the limit.
    """
    extent = (loops[INNER] - 1) * stride[INNER] + loops[LENGTH]
    extent2 = (loops2[INNER] - 1) * stride2[INNER] + loops2[LENGTH]
    end2 = base2 + (loops2[OUTER] - 1) * stride2[OUTER] + extent2
    first = max(0, -((base + extent - 1 - base2) // stride[OUTER]))
    last = min(loops[OUTER] - 1, (end2 - 1 - base) // stride[OUTER])
    for plane in range(first, last + 1):
        start = base + plane * stride[OUTER]
        begin = max(0, -((base2 + extent2 - 1 - start) // stride2[OUTER]))
        end = min(loops2[OUTER] - 1, (start + extent - 1 - base2) // stride2[OUTER])
        work[0] += 1 + max(0, end - begin + 1)
        if work[0] > limit:
            break
        for plane2 in range(begin, end + 1):
            start2 = base2 + plane2 * stride2[OUTER]
            row = _first_meeting(start, loops, stride, start2, loops2, stride2)
            if row >= 0:
                return _run(start + row * stride[INNER], loops[LENGTH], start2, loops2, stride2)
    return 0, -1


@helper
def _first_meeting(start: int, loops: Numbers, stride: Numbers, start2: int, loops2: Numbers,
                   stride2: Numbers) -> int:
    """The first row of one plane that shares a cell with a row of the other; -1 if none does.

    Row i meets row j where low ≤ i × step - j × step2 ≤ high. For each i the largest j with
    low ≤ … is the one to try, unless there are not that many rows.
    """
    step, step2, last2 = stride[INNER], stride2[INNER], loops2[INNER] - 1
    low = start2 - start - loops[LENGTH] + 1
    high = start2 - start + loops2[LENGTH] - 1
    first = max(0, -(-low // step))
    last = min(loops[INNER] - 1, (last2 * step2 + high) // step)
    beyond = max(first, -(-(last2 * step2 + low) // step))      # from here on, j is the last row
    rest = (first * step - low) % step2
    found = first
    if rest > high - low:
        within = _first_multiple(step % step2, step2, step2 - rest, step2 - rest + high - low)
        found = beyond if within < 0 else min(beyond, first + within)
    return found if found <= last else -1


@helper
def _first_multiple(factor: int, modulus: int, low: int, high: int) -> int:
    """The smallest n ≥ 0 with low ≤ n × factor mod modulus ≤ high, where 0 < low ≤ high < modulus;
    -1 if there is none. Euclid's algorithm: if no multiple of the factor lies in the interval
    itself, modulus and factor change places."""
    if factor == 0:
        return -1
    multiple = -(-low // factor)
    if multiple * factor <= high:
        return multiple
    rounds = _first_multiple(modulus % factor, factor, -high % factor, -low % factor)
    return -1 if rounds < 0 else -(-(low + modulus * rounds) // factor)


@helper
def _run(first: int, length: int, start2: int, loops2: Numbers,
         stride2: Numbers) -> tuple[int, int]:
    """The cells that one row shares with the last row of a plane that begins before its end."""
    row = min(loops2[INNER] - 1, (first + length - 1 - start2) // stride2[INNER])
    first2 = start2 + row * stride2[INNER]
    return max(first, first2), min(first + length, first2 + loops2[LENGTH]) - 1
