"""Forms: the ways to write down what an operator computes on a configuration.

A form holds the tensor expressions, says how a user's operands become the tensors of a program, and
counts the work. Scheduling a form is up to its template.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ...isa.memory_timing import MemoryTiming
from ..accelerator.selection.intrinsic import Intrinsic, Requantization, requantize
from ..expression.expression import Call, Expression, Function
from ..expression.tensor import Tensor, topological_order
from ..nest.nest import Interleave, Scope
from ..schedule.schedule import Schedule
from .cost_model import Column, Mask, Size
from .description import Description
from .ends.cut_ends import WHOLE, Ends
from .layout import Layout
from .packing import Array, Operand, pack_tables
from .work import Work

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ACCUMULATOR_BYTES = 4
FormT = TypeVar("FormT", bound="TensorForm")
KnobsT = TypeVar("KnobsT", bound="DataclassInstance")
FormKey: TypeAlias = tuple[Description, Config, int]


@dataclass(frozen=True, kw_only=True)
class Form(ABC):
    """One way to compute an operator on a configuration."""

    spec: Description
    config: Config
    number: int = -1            # among those that the operator lists; -1: the plain one, unlisted
    ends: Ends = WHOLE          # how a program that runs alone is cut at its ends

    def build(self, knobs: Any, *, hide_latency: bool) -> Any:
        """The kernel with these knobs, if it is made of several parts; None if a template makes
        it."""
        return None

    @property
    def key(self) -> FormKey:
        """Identifies a form, by value: an operator always lists the same ones."""
        return self.description, self.config, self.number

    @property
    def handicap(self) -> float:
        """Factor on its cycles for the work that it leaves to the host."""
        return 1.0

    @property
    def description(self) -> Description:
        """What the user asked for; `spec` is the part of it that the accelerator computes."""
        return self.spec

    @property
    def note(self) -> str:
        """What sets this form apart from others, in words."""
        return ""

    @property
    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the tensors in DRAM, by name."""

    @property
    @abstractmethod
    def work(self) -> Work:
        """The least work that any schedule of it takes."""

    @property
    @abstractmethod
    def operands(self) -> tuple[Operand, ...]:
        """What a user gives, in plain layouts."""

    @property
    @abstractmethod
    def layouts(self) -> dict[str, Layout]:
        """How activations lie in tiles: those that are read, by name, and the `output`. Names are
        those of operands and of the program's tensors, which have the same bytes."""

    @property
    def interleaves(self) -> dict[str, Interleave]:
        """Which tensors lie in DRAM in wider tiles than the program moves, by name."""
        return {}

    def ways(self, name: str) -> int:
        """Blocks of a tensor that are one tile in memory, or lie side by side."""
        order = self.interleaves.get(name)
        return 1 if order is None else order.ways

    def memory_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a tensor as it lies in DRAM."""
        order = self.interleaves.get(name)
        return shape if order is None else order.memory_shape(shape)

    @abstractmethod
    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs of a program from operands that have been checked."""

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """Lookup tables of its program, by number."""
        lookup = getattr(self.spec, "lookup", ())
        return (lookup,) if lookup else ()

    def pack_inputs(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """All inputs of a program, its tables included."""
        return {**self.pack(given), **pack_tables(self.tables, self.config)}

    @abstractmethod
    def unpack(self, output: Array) -> Array:
        """The result in a plain layout from a program's output."""


@dataclass(frozen=True, kw_only=True)
class TensorForm(Form):
    """A form that is one tensor expression, ending with a requantization."""

    function: Requantization
    output: Tensor

    @property
    def result_buffer(self) -> Buffer:
        """Where results lie until they are stored: those of 32 bits stay in the accumulator."""
        return Buffer.OUT if self.output.dtype == "int8" else Buffer.ACC

    @property
    def result_scope(self) -> Scope:
        return Scope.OUT if self.result_buffer == Buffer.OUT else Scope.ACC

    @property
    def result_bytes(self) -> int:
        """Of one element."""
        return 1 if self.result_buffer == Buffer.OUT else ACCUMULATOR_BYTES

    @property
    def intrinsics(self) -> list[Intrinsic]:
        """The intrinsics that it needs besides the accelerator's own."""
        return [requantize(self.config, self.function)]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {each.name: self.memory_shape(each.name, each.shape)
                for each in topological_order(self.output)
                if each.body is None or each is self.output}


@dataclass(frozen=True, kw_only=True)
class Template(Generic[FormT, KnobsT]):
    """How a form is computed, with knobs left open. Knobs come in columns: one record whose fields
    are arrays stands for as many candidates, and is judged as a whole.

    knobs       their type
    largest     the largest ones that make sense
    grids       knobs in columns; the first grid of which something fits is taken
    fits        whether all buffers find room
    estimate    cycles, roughly
    schedule    the template with its knobs filled in
    at_once     knobs, the most promising first, that take the whole input in one step; None: no
                others than those of the grids
    compared    grids of which something fits whose candidates are compared
    """

    knobs: type[KnobsT]
    largest: Callable[[FormT], KnobsT]
    grids: Callable[[FormT], Iterator[KnobsT]]
    fits: Callable[[FormT, KnobsT], Mask]
    estimate: Callable[[FormT, KnobsT, MemoryTiming], Column]
    schedule: Callable[[FormT, KnobsT], Schedule]
    at_once: Callable[[FormT], Sequence[KnobsT]] | None = None
    compared: int = 1


AnyTemplate: TypeAlias = Template[Any, Any]         # of some operator


def blocks_of(channels: Size, block: Size) -> Size:
    """How many blocks it takes to hold this many channels."""
    return -(-channels // block)


def are_whole_tiles(ways: int, blocks: Column, every: int) -> Mask:
    """Whether blocks that are moved at once are whole tiles of memory, each with several."""
    return (blocks >= ways) & ((blocks % ways == 0) | (blocks == every))


def runs_of(ways: int, blocks: Column, every: int, runs: Column, tiles: Column) -> Column:
    """Runs in which blocks are moved: so many for each tile of memory that they are, or for each
    block as many as it has tiles, if they are no whole ones."""
    return np.where(are_whole_tiles(ways, blocks, every), blocks_of(blocks, ways) * runs,
                    blocks * tiles)


def requantize_sum(function: Function, value: Expression, parameters: Tensor,
                   at: tuple[Expression | int, ...], lanes: tuple[Expression, ...]) -> Call:
    """A sum as a result. `at` says where the parameters of its channel are."""
    return Call(function, (value, *(parameters[(*at, number, *lanes)]
                                    for number in range(PARAMETER_TILES))))
