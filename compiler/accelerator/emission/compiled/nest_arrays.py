"""The arrays that compiled code walks through and fills: a nest, plans, and what is written.

`build` makes them from a nest, `rules` and `plans` say what is written at a visit, `walk` does it.
"""

# No postponed annotations here: numba reads the types as they are.
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .....base.arrays import Array

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
MicroOps = npt.NDArray[np.uint16]           # dst, src and wgt
Records = Array
Record: TypeAlias = Any      # of one of the types below

DONE, MISSING, FULL, REFUSED = range(4)             # how a walk ends
LOOP, NEXT, WHEN, ALLOCATE, SELECT, SAVE, COPY, INVOKE, START = range(9)        # operations
PLACE, USE, MOVE = range(3)                         # rows of a plan
BY_PLAN, PRODUCT, REQUANTIZATION, PAIRS, IMMEDIATE, FILL = range(6)     # who writes at a site
KEY = 32                    # numbers that tell the plans of a site apart, at most
HEADS = 1024                # of lists of plans, or sequences, with equal hashes
TILE_LIMIT, OFFSET_LIMIT = 1 << 16, 1 << 32         # of the fields that hold them
MOST_ROWS = 1 << 20         # of a visit
HARDWARE_LOOPS = 3
UOP_LOAD, CLEAR, OWN_WORDS = range(3)               # of `Tables.words`
CAPACITY, LANES, MOST_SEQUENCE = range(3)           # of `Tables.fields`

# Lists of loops at a visit: of a sum, its parts and micro-ops; of the hardware; written out.
ALL, PARTS, SUMS, NEAR, SPACE, REST, LISTS = range(7)
TOUCHED, CLEARED, FAR, EVERY_LIST = range(LISTS, LISTS + 4)         # and of sums that are noted
EXTENT, STEP, LOOP_OPERANDS, RANK, LOOP_SIZE = 0, 1, 3, 4, 5        # columns of a loop
MOST_AXES = 16
SHAPE_SIZE = 1 + (1 + LOOP_OPERANDS) * MOST_AXES    # loops of micro-ops: how many, and each

# Columns of a plan's rows. A row places a sequence of micro-ops, or writes a word.
ROW_KIND, ROW_WORD, ROW_MODE, ROW_STEPS, ROW_COUNT, ROW_MOVED, ROW_OPERAND, ROW_FIELD, ROW_SIZE = (
    0, 1, 2, 3, 4, 5, 8, 11, 14)

OPERATION = np.dtype([("kind", "i8"), ("slot", "i8"), ("first", "i8"), ("count", "i8"),
                      ("target", "i8"), ("delay", "i8"), ("extent", "i8"), ("sections", "i8")])
BUFFER = np.dtype([("first", "i8"), ("tiles", "i8"), ("step", "i8"), ("copies", "i8"),
                   ("scope", "i8"), ("parts", "i8"), ("contents", "i8"), ("rank", "i8"),
                   ("copy", "i8"), ("period", "i8")])
SITE = np.dtype([("axes", "i8"), ("axis_count", "i8"), ("limits", "i8"), ("limit_count", "i8"),
                 ("operands", "i8"), ("operand_count", "i8"), ("begins", "i8"), ("value", "i8"),
                 ("slide", "i8"), ("ring_step", "i8"), ("kind", "i8"), ("rule", "i8"),
                 ("word", "i8"), ("ways", "i8"), ("along", "i8"), ("loop", "i8"),
                 ("by_tile", "i8"), ("groups_site", "i8"), ("part_site", "i8")])
LIMIT = np.dtype([("room", "i8"), ("axis", "i8"), ("step", "i8")])
OPERAND = np.dtype([("buffer", "i8"), ("tile", "i8"), ("steps", "i8"), ("in_acc", "i8"),
                    ("anchor", "i8"), ("multiple", "i8"), ("group", "i8"), ("behind", "i8")])
TRANSFER = np.dtype([("buffer", "i8"), ("target", "i8"), ("tile", "i8"), ("starts", "i8"),
                     ("rank", "i8"), ("sides", "i8"), ("side_count", "i8"), ("tile_rows", "i8"),
                     ("part_rows", "i8"), ("loads", "i8"), ("has_border", "i8"), ("touched", "i8"),
                     ("in_acc", "i8"), ("padded", "i8"), ("tile_bytes", "i8"), ("word", "i8"),
                     ("inside", "i8"), ("place", "i8"), ("ways", "i8"), ("runs", "i8")])
SIDE = np.dtype([("size", "i8"), ("extent", "i8"), ("origin", "i8"), ("dram", "i8"), ("pad", "i8"),
                 ("scale", "i8")])
PLAN = np.dtype([("before", "i8"), ("kind", "i8"), ("first", "i8"), ("count", "i8"),
                 ("other", "i8"), ("other_count", "i8"), ("uops", "i8")])
WALK = np.dtype([("loops", "i8"), ("count", "i8"), ("low", "i8"), ("high", "i8"),
                 ("fill_count", "i8")])
STEPS = np.dtype([("first", "i8"), ("count", "i8")])
SEQUENCE = np.dtype([("mode", "i8"), ("steps", "i8"), ("dst", "i8"), ("src", "i8"), ("wgt", "i8"),
                     ("count", "i8"), ("dram", "i8"), ("place", "i8"), ("before", "i8")])
NOTE = np.dtype([("tile", "i8"), ("walks", "i8"), ("value", "i8")])


class Forms(NamedTuple):
    """Affine forms: where the terms of each begin, and its constant."""

    begin: Numbers
    slot: Numbers
    coefficient: Numbers
    constant: Numbers


class Tables(NamedTuple):
    """A nest, which stays as it is."""

    operations: Records
    forms: Forms
    buffers: Records
    sites: Records
    extents: Numbers
    limits: Records
    operands: Records
    steps: Numbers          # of operands, along the axes of their site
    transfers: Records
    sides: Records
    saved: Numbers          # buffers of loops that run ahead
    fields: Numbers         # numbers that are the same for all of it
    words: Bytes            # which visits begin with


class Plans(NamedTuple):
    """What rules say that only Python knows: grows while a nest is walked."""

    heads: Numbers          # of lists of plans with equal hashes
    plans: Records
    keys: Numbers
    rows: Numbers
    words: Bytes
    sequences: Records      # steps of micro-ops
    steps: Numbers


class Lists(NamedTuple):
    """Loops of a visit, list by list."""

    rows: Numbers
    counts: Numbers         # how many are in each


class Walks(NamedTuple):
    """Walks through tiles of sums that were met."""

    walks: Records
    steps: Numbers          # iterations and step of each of their loops


class Sides(NamedTuple):
    """Room for a copy."""

    whole: Numbers          # its sides
    given: Numbers          # those of one of its boxes
    sides: Numbers          # the same, neighbours joined
    box: Numbers            # what one instruction moves


class State(NamedTuple):
    """What the walk remembers."""

    numbers: Numbers        # see below
    values: Numbers         # of axes
    bases: Numbers          # first tile of each buffer
    turns: Numbers
    loaded: Numbers
    holds: Numbers          # of each copy of a buffer: whether it holds something, and what
    borders: Numbers
    history: Numbers
    known: Records          # sequences of micro-ops in DRAM
    heads: Numbers
    resident: Numbers
    noted: Records
    mask: Numbers           # of accumulator tiles
    key: Numbers
    starts: Numbers
    extents: Numbers
    tiles: Numbers
    others: Numbers         # tiles, where a visit has two
    near: Numbers           # tiles of a loop that is written out
    lists: Lists
    shapes: Numbers         # loops of micro-ops that were met
    known_walks: Walks
    sides: Sides


# Of `State.numbers`.
(AT, WRITTEN, UOPS, KNOWN, TOP, RESIDENT, NOTED, KEYS, MARK, BROKEN, SHAPES, WALKS, WALK_STEPS,
 ROWS, FRESH, RUN, COUNTERS) = range(17)


class Output(NamedTuple):
    words: Bytes
    uops: MicroOps


def head_of_key(kind: int, key: Sequence[int] | Numbers, length: int) -> int:
    """In which list the plan of a kind of visits is."""
    total = kind % HEADS
    for place in range(length):
        total = (total * 31 + key[place]) % HEADS
    return total
