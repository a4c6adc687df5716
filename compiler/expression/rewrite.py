"""Expressions with parts of them replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_not

from .expression import Axis, Element, Expression
from .tensor import Tensor

Change = Callable[[Expression], Expression | None]


def rewrite(expression: Expression, change: Change) -> Expression:
    """The expression with every part replaced for which `change` returns another one, from the
    outside in. Replacements are not searched again. What is used in several places is replaced
    once."""
    return _rewrite(expression, change, {})


def _rewrite(node: Expression, change: Change, done: dict[int, Expression]) -> Expression:
    found = done.get(id(node))
    if found is None:
        found = change(node)
        if found is None:
            found, before = node, node.operands()
            if before:
                after = tuple([_rewrite(each, change, done) for each in before])
                if any(map(is_not, before, after)):
                    found = node.with_operands(after)
        done[id(node)] = found
    return found


def substitute(expression: Expression, values: Mapping[Axis, Expression]) -> Expression:
    """The expression with axes replaced by their values."""
    return rewrite(expression, lambda node: values.get(node) if isinstance(node, Axis) else None)


def with_tensor(reader: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """The reader with the new tensor wherever it reads the old one."""
    assert reader.body is not None

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element) and node.tensor is old:
            return Element(new, tuple(rewrite(each, change) for each in node.indices))
        return None

    return replace(reader, body=rewrite(reader.body, change))


def inline_tensor(expression: Expression, tensor: Tensor) -> Expression:
    """The expression with a tensor's body in place of each of its elements."""
    assert tensor.body is not None
    body = tensor.body
    made: dict[tuple[Expression, ...], Expression] = {}     # the same element is one node

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element) and node.tensor is tensor:
            indices = tuple(rewrite(each, change) for each in node.indices)
            if indices not in made:
                made[indices] = substitute(body, dict(zip(tensor.axes, indices, strict=True)))
            return made[indices]
        return None

    return rewrite(expression, change)
