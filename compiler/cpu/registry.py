"""Which function lowers which graph operation for the CPU.

    @lowers(Reshape)
    def reshape(operation: Reshape, result: TensorType, x: Operand) -> Tensor:
        ...

A lowering says what is computed as a tensor expression, which gets the default schedule unless it
brings its own, or, where one step follows from the last, as a loop nest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...base.classes.dataclass import dataclass
from ...base.processor import Target
from ..errors import CompileError
from ..expression.tensor import Tensor
from ..graph.operation import Operation
from ..graph.types import Array, TensorType
from ..nest.nest import Buffer, Nest
from ..schedule.schedule import Schedule


@dataclass(frozen=True)
class Operand:
    """A tensor that an operation reads, in an expression."""

    type: TensorType
    tensor: Tensor              # of the type's shape and numbers
    array: Array | None = None  # its numbers, if they are constant
    target: Target | None = None        # the processor, as far as it is known


@dataclass(frozen=True)
class BufferOperand:
    """A tensor that an operation reads, in a loop nest."""

    type: TensorType
    buffer: Buffer
    array: Array | None = None


@dataclass(frozen=True)
class Scheduled:
    """An expression with its own schedule on a processor. Tensors that it does not schedule,
    because they were computed before, get the default schedule."""

    tensor: Tensor
    schedule: Callable[[Schedule, Target], None]


Lowering = Callable[..., Tensor | Scheduled]    # of an operation, its result's type and operands
NestLowering = Callable[..., Nest]              # of these and the buffer for its result
Lowered = TypeVar("Lowered", bound=Callable[..., object])

LOWERINGS: dict[type[Operation], Lowering] = {}
NEST_LOWERINGS: dict[type[Operation], NestLowering] = {}


def lowers(*kinds: type[Operation]) -> Callable[[Lowered], Lowered]:
    """Registers a function from an operation, the type of its result and an Operand for each of
    its operands to an expression for its result."""
    return _registers(LOWERINGS, kinds)


def lowers_to_nest(*kinds: type[Operation]) -> Callable[[Lowered], Lowered]:
    """Registers a function from an operation, the type of its result, the Buffer for its result
    and a BufferOperand for each of its operands to a loop nest that fills that buffer."""
    return _registers(NEST_LOWERINGS, kinds)


def _registers(table: dict[type[Operation], Any],
               kinds: tuple[type[Operation], ...]) -> Callable[[Lowered], Lowered]:
    def register(function: Lowered) -> Lowered:
        for kind in kinds:
            if kind in LOWERINGS or kind in NEST_LOWERINGS:
                raise CompileError(f"{kind.__name__} is lowered for the CPU already")
            table[kind] = function
        return function
    return register
