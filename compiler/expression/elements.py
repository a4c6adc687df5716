"""Tensors, and the nodes of expressions that refer to them: axes, elements and reductions."""

from __future__ import annotations

from functools import cached_property

from ...base.arrays import Array
from ...base.classes.dataclass import unguarded
from ..errors import CompileError
from .nodes import Binary, Expression, as_expression, walk
from .scalars import INDEX, LARGEST, check_integer

ELEMENTS, AXES = "elements", "axes"     # what a node remembers them as


@unguarded(frozen=True, eq=False, repr=False)
class Axis(Expression):
    """Runs from 0 to `extent` - 1. Two axes are equal only if they are the same object."""

    name: str
    extent: int
    reduces: bool = False
    dtype: str = INDEX

    def __post_init__(self) -> None:
        if type(self.extent) is not int or not 0 < self.extent <= LARGEST:     # as hardly ever
            object.__setattr__(self, "extent", check_integer(self.extent,
                                                             f"axis {self.name}: extent"))

    def __str__(self) -> str:
        return self.name


@unguarded(frozen=True, eq=False, repr=False)
class Tensor:
    """A placeholder, which has no body, or the values of `body` for all combinations of `axes`. A
    placeholder whose `values` are here is a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[Axis, ...] = ()
    body: Expression | None = None
    values: Array | None = None

    def __getitem__(self, indices: object) -> Element:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            raise CompileError(f"{self.name} has {len(self.shape)} dimensions, but {len(given)} "
                               f"indices are given")
        expressions = tuple(as_expression(index) for index in given)
        for index in expressions:
            if index.dtype != INDEX:
                raise CompileError(f"{self.name}[… {index} …]: an index is made of axes, but this "
                                   f"has type {index.dtype}")
        return Element(self, expressions)

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return self.body.axes if isinstance(self.body, Reduction) else ()

    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the body reads, each once, in the order of their first use."""
        return self._inputs

    @cached_property
    def _inputs(self) -> tuple[Tensor, ...]:
        found = dict.fromkeys(node.tensor for node in walk(self.body)
                              if isinstance(node, Element)) if self.body is not None else {}
        return tuple(found)

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        if self.body is None:
            return f"{self.name}: {self.dtype}[{shape}]"
        indices = ", ".join(axis.name for axis in self.axes)
        return f"{self.name}[{indices}] = {self.body}"


def elements_in(expression: Expression) -> tuple[Element, ...]:
    """The elements that an expression reads, from the outside in; found once for every node."""
    known: dict[str, tuple[Element, ...]] = expression.__dict__
    if ELEMENTS not in known:
        known[ELEMENTS] = tuple([node for node in walk(expression) if isinstance(node, Element)])
    return known[ELEMENTS]


def axes_in(expression: Expression) -> tuple[Axis, ...]:
    """The axes in an expression, from the outside in; found once for every node."""
    known: dict[str, tuple[Axis, ...]] = expression.__dict__
    if AXES not in known:
        if isinstance(expression, Binary):      # whose sides mostly know theirs
            left, right = axes_in(expression.left), axes_in(expression.right)
            known[AXES] = tuple(dict.fromkeys((*left, *right))) if left and right else left or right
        else:
            known[AXES] = tuple([node for node in walk(expression) if isinstance(node, Axis)])
    return known[AXES]


@unguarded(frozen=True, repr=False)
class Element(Expression):
    """One element of a tensor."""

    tensor: Tensor
    indices: tuple[Expression, ...]

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.tensor.dtype

    def operands(self) -> tuple[Expression, ...]:
        return self.indices

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Element(self.tensor, operands)

    def __str__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"


@unguarded(frozen=True, repr=False)
class Reduction(Expression):
    """All values over some axes, combined: `+`, `*`, `min` or `max`. Only at the top of a body."""

    combiner: str
    value: Expression
    axes: tuple[Axis, ...]

    @property
    def dtype(self) -> str:                                         # type: ignore[override]
        return self.value.dtype

    def operands(self) -> tuple[Expression, ...]:
        return (self.value,)

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Reduction(self.combiner, operands[0], self.axes)

    def __str__(self) -> str:
        name = {"+": "sum", "*": "product"}.get(self.combiner, self.combiner)
        return f"{name}({self.value}, over {', '.join(axis.name for axis in self.axes)})"
