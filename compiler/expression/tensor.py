"""Tensor expressions: what is computed, not how.

    x = placeholder("x", (64, 32), "int8")
    w = placeholder("w", (16, 32), "int8")
    k = reduce_axis("k", 32)
    y = compute("y", (64, 16), lambda i, j: total(
        x[i, k].cast("int32") * w[j, k].cast("int32"), k))

A computed tensor is checked when it is built: every index must lie inside its tensor, unless a
`select` says when it is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...base.arrays import Array
from ...base.checked_values import quote
from ..errors import CompileError
from .elements import Axis, Element, Reduction, Tensor
from .intervals import Known, children, interval_of
from .nodes import Expression, walk
from .scalars import INDEX, TYPES, check_integer

__all__ = ["Tensor", "compute", "constant", "placeholder", "reduce_axis", "topological_order"]


def placeholder(name: str, shape: Sequence[int], dtype: str) -> Tensor:
    """An input: a tensor whose values are given."""
    if dtype not in TYPES or dtype == INDEX:
        raise CompileError(f"{name}: there is no type {dtype!r}; there are "
                           f"{', '.join(each for each in TYPES if each != INDEX)}")
    return Tensor(name, _check_shape(name, shape), dtype)


def constant(name: str, values: Array) -> Tensor:
    """A table: a tensor whose values are these."""
    given = placeholder(name, values.shape, values.dtype.name)
    return replace(given, values=values)


def reduce_axis(name: str, extent: int) -> Axis:
    """An axis to sum over, or to take a maximum over."""
    return Axis(name, extent, reduces=True)


def compute(name: str, shape: Sequence[int], function: Callable[..., Expression]) -> Tensor:
    """A tensor whose elements are a function of its axes, which are named after the parameters."""
    extents = _check_shape(name, shape)
    names = _axis_names(function, len(extents))
    axes = tuple(Axis(axis, extent) for axis, extent in zip(names, extents, strict=True))
    body = function(*axes)
    if not isinstance(body, Expression):
        raise CompileError(f"{name}: the function gives {body!r}, but must give an expression")
    if body.dtype == INDEX:
        raise CompileError(f"{name}: {body} is an index, but a tensor holds numbers; cast it")
    _check(name, body, axes)
    return Tensor(name, extents, body.dtype, axes, body)


def topological_order(*outputs: Tensor) -> tuple[Tensor, ...]:
    """The outputs and everything they are computed from, each after what it reads."""
    found: dict[Tensor, None] = {}

    def visit(tensor: Tensor) -> None:
        if tensor not in found:
            for each in tensor.inputs():
                visit(each)
            found[tensor] = None

    for output in outputs:
        visit(output)
    return tuple(found)


def _check_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    try:
        extents = list(shape)
    except TypeError:
        raise CompileError(f"{name}: shape is {quote(shape)}, but must be a sequence of extents, "
                           f"such as (64, 32)") from None
    return tuple(check_integer(extent, f"{name}: extent {place} of the shape")
                 for place, extent in enumerate(extents))


def _axis_names(function: Callable[..., Expression], count: int) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) == 1 and parameters[0].kind == inspect.Parameter.VAR_POSITIONAL:
        return [f"{parameters[0].name}{number}" for number in range(count)]
    if len(parameters) != count:
        raise CompileError(f"the function has {len(parameters)} parameters, but the shape has "
                           f"{count} extents")
    return [parameter.name for parameter in parameters]


def _check(name: str, body: Expression, axes: tuple[Axis, ...]) -> None:
    known_axes = set(axes) | set(body.axes if isinstance(body, Reduction) else ())
    for node in walk(body):
        if isinstance(node, Reduction) and node is not body:
            raise CompileError(f"{name}: {node} stands inside an expression, but a reduction must "
                               f"be a tensor of its own")
        if isinstance(node, Axis) and node not in known_axes:
            raise CompileError(f"{name}: axis {node.name} is neither an axis of {name} nor "
                               f"reduced over")
    for element, known in _elements(body, {}):
        if any(low > high for low, high in known.values()):
            continue                    # where a condition holds that never does
        for index, extent in zip(element.indices, element.tensor.shape, strict=True):
            low, high = interval_of(index, known)
            if low < 0 or high >= extent:
                raise CompileError(f"{name}: {element}: {index} goes from {low} to {high}, but "
                                   f"there are only 0 to {extent - 1}")


def _elements(expression: Expression, known: Known,
              seen: set[int] | None = None) -> Iterator[tuple[Element, Known]]:
    """Every element that is read, with what is known about indices at that point. `seen` are the
    nodes that were visited with the same knowledge."""
    seen = set() if seen is None else seen
    if id(expression) in seen:
        return
    seen.add(id(expression))
    if isinstance(expression, Element):
        yield expression, known
    for child, more in children(expression, known):
        yield from _elements(child, more, seen if more is known else None)
