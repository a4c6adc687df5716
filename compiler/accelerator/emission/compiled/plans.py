"""What an emitter writes when it visits a statement: instructions relative to where operands are.

Compiled code knows the rules of most intrinsics (`rules`). Those of others, such as a user's, are
asked once for each combination of loop extents, with tiles that begin near zero, and what they
say is stored as words in which only tiles are left open. Statements of different nests are often
alike, so plans are stored for all of them (`PlanStore`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import is_not
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .....base.arrays import Array
from .....base.classes.dataclass import dataclass
from .....isa.instructions import INSTRUCTION_BYTES, Gemm, GemmFlags, Instruction, Load, Window
from ....expression.affine import Affine
from ...selection.hardware_loops import Walks, offsets
from ...selection.instruction_rules import Loops
from ...selection.instructions import PLAIN, MicroKernels, Sequenced, Tiles
from ...selection.intrinsic import Intrinsic
from . import nest_arrays as tables
from .around import Around
from .nest_arrays import head_of_key
from .word_fields import offset_of

if TYPE_CHECKING:
    from .....isa.config import Config

OPERANDS = 3                # of micro-ops, and at most of words
MOST_ROWS = 1 << 20         # of a store, which then makes room for another
Row = list[int]


UOP = offset_of(Gemm, "uop")
assert offset_of(Window, "uop") == UOP


@dataclass(frozen=True)
class Placed:
    """A sequence of micro-ops: its first, and the number of the steps from there."""

    first: Tiles
    steps: int
    count: int
    mode: int


class Relative(tuple[Tiles, ...]):
    """A sequence of which nobody has asked for the micro-ops yet."""

    first: Tiles
    walks: Walks

    def __new__(cls, first: Tiles, walks: Walks) -> Relative:
        made = super().__new__(cls)
        made.first, made.walks = first, walks
        return made

    def __len__(self) -> int:
        count = 1
        for walk in self.walks:
            count *= walk.extent
        return count


class Recorder(MicroKernels):
    """Takes down which sequences a rule places, instead of placing them."""

    def __init__(self, config: Config, store: PlanStore):
        super().__init__(config)
        self.store = store
        self.taken: list[Placed | Instruction] = []

    def of_sum(self, first: Tiles, walks: Walks) -> Sequenced:
        return Relative(first, walks)

    def place(self, sequence: Sequenced, mode: GemmFlags = PLAIN) -> tuple[int, list[Load]]:
        if isinstance(sequence, Relative):
            first, steps = sequence.first, self.store.steps_of_walks(sequence.walks)
        else:
            first, steps = sequence[0], self.store.steps_of(tuple(
                [tuple(map(int.__sub__, each, sequence[0])) for each in sequence]))
        self.taken.append(Placed(first, steps, len(sequence), int(mode)))
        return 0, []


class Growing:
    """An array that rows are appended to. Whoever has it from before keeps what was in it then."""

    def __init__(self, kind: npt.DTypeLike, *columns: int):
        self.array: Array = np.zeros((64, *columns), kind)
        self.count = 0

    def extend(self, rows: Sequence[npt.ArrayLike]) -> bool:
        """Append some rows. Whether that took a new array."""
        end = self.count + len(rows)
        grows = end > len(self.array)
        if grows:
            larger = np.zeros((2 * end, *self.array.shape[1:]), self.array.dtype)
            larger[:self.count] = self.array[:self.count]
            self.array = larger
        if rows:
            self.array[self.count:end] = rows
        self.count = end
        return grows


class PlanStore:
    """The plans that were made so far. Threads may share it: a plan is found when all of it is
    there, and arrays that were handed out stay as they are."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.heads = np.full(tables.HEADS, -1, np.int64)
        self.plans, self.keys = Growing(tables.PLAN), Growing(np.int64, tables.KEY)
        self.rows, self.words = Growing(np.int64, tables.ROW_SIZE), Growing(
            np.uint8, INSTRUCTION_BYTES)
        self.sequences, self.steps = Growing(tables.STEPS), Growing(np.int64, OPERANDS)
        self.kinds: dict[Hashable, int] = {}
        self._words: dict[Instruction, int] = {}
        self._steps: dict[Hashable, int] = {}
        self._arrays = self._new_arrays()

    def arrays(self) -> tables.Plans:
        return self._arrays

    def kind_of(self, what: Hashable) -> int:
        """The number of a kind of visit: whatever decides, with its key, what its plan is."""
        with self.lock:
            return self.kinds.setdefault(what, len(self.kinds))

    def add(self, kind: int, key: Sequence[int], rows: list[Row], others: list[Row]) -> None:
        """A plan, with other rows where sums begin."""
        first = self.rows.count
        self.rows.extend(rows + others)
        uops = max(sum(row[tables.ROW_COUNT] for row in some
                       if row[tables.ROW_KIND] == tables.PLACE) for some in (rows, others))
        head = head_of_key(kind, key, len(key))
        self.plans.extend([(self.heads[head], kind, first, len(rows), first + len(rows),
                            len(others), uops)])
        self.keys.extend([[*key, *(0,) * (tables.KEY - len(key))]])
        arrays = self._new_arrays()
        if any(map(is_not, arrays, self._arrays)):
            self.heads = self.heads.copy()      # others see no plan that their arrays lack
            arrays = arrays._replace(heads=self.heads)
        self.heads[head] = self.plans.count - 1
        self._arrays = arrays

    def _new_arrays(self) -> tables.Plans:
        return tables.Plans(self.heads, *(each.array for each in (
            self.plans, self.keys, self.rows, self.words, self.sequences, self.steps)))

    def steps_of_walks(self, walks: Walks) -> int:
        """The number of the micro-ops that loops are."""
        if walks not in self._steps:
            self._steps[walks] = self.steps_of(tuple(offsets(walks, OPERANDS)))
        return self._steps[walks]

    def steps_of(self, steps: tuple[Tiles, ...]) -> int:
        """The number of some micro-ops, relative to the first."""
        key = "steps", steps
        if key not in self._steps:
            self._steps[key] = self.sequences.count
            self.sequences.extend([(self.steps.count, len(steps))])
            self.steps.extend(steps)
        return self._steps[key]

    def word(self, instruction: Instruction) -> int:
        """The number of the word that an instruction is."""
        if instruction not in self._words:
            self._words[instruction] = self.words.count
            self.words.extend([np.frombuffer(instruction.encode(), np.uint8)])
        return self._words[instruction]

    def move(self, instruction: Instruction, follows: dict[str, int]) -> Row:
        """A word whose fields follow operands."""
        row = [tables.MOVE, self.word(instruction), 0, 0, len(follows), *(0,) * 9]
        for place, (name, operand) in enumerate(follows.items()):
            row[tables.ROW_MOVED + place] = getattr(instruction, name)
            row[tables.ROW_OPERAND + place] = operand
            row[tables.ROW_FIELD + place] = offset_of(type(instruction), name)
        return row

    def rows_of(self, taken: Iterable[Placed | Instruction], follows: dict[str, int],
                firsts: Sequence[int]) -> list[Row]:
        """What a rule said for tiles that begin somewhere, relative to these."""
        found: list[Row] = []
        for each in taken:
            if isinstance(each, Placed):
                moved = [tile - first for tile, first in zip(each.first, firsts, strict=False)]
                found.append([tables.PLACE, 0, each.mode, each.steps, each.count, *moved,
                              *(0,) * 6])
            elif isinstance(each, Gemm | Window):
                found.append([tables.USE, self.word(each), 0, 0, 0, each.uop, 0, 0, 0, 0, 0, UOP,
                              0, 0])
            else:
                row = self.move(each, follows)
                for place, operand in enumerate(follows.values()):
                    row[tables.ROW_MOVED + place] -= firsts[operand]
                found.append(row)
        return found


STORES = [PlanStore()]      # the one that is filled


def current_store() -> PlanStore:
    """The store of this process, or a new one if that is full."""
    if STORES[-1].rows.count + STORES[-1].steps.count > MOST_ROWS:
        STORES[:] = [PlanStore()]
    return STORES[-1]


def plan_intrinsic(store: PlanStore, kind: int, around: Around, intrinsic: Intrinsic,
                   config: Config, key: Sequence[int]) -> None:
    """The plan of an intrinsic for extents of its loops, and for tiles that keep their distance, or
    move by multiples."""
    motion = intrinsic.motion
    assert motion is not None, "these are not walked"
    every = around.loops(key[:len(around.axes)])
    firsts = key[len(every):]
    axes = [axis for axis in every if axis.extent > 1]          # others are no loops
    tiles = [Affine(first, {axis: step for axis, step in zip(every, steps, strict=True)
                            if step and axis.extent > 1})
             for first, steps in zip(firsts, around.steps, strict=True)]

    def rows(begins: bool) -> list[Row]:
        recorder = Recorder(config, store)
        for each in intrinsic.rule(Loops(axes, tiles, recorder, begins=begins)):
            recorder.taken.append(each)
        return store.rows_of(recorder.taken, dict(motion.fields), firsts)

    store.add(kind, key, rows(False), rows(True) if intrinsic.begins else [])
