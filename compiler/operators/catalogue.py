"""All operators, by the exact type of their descriptions.

A subclass of a description is an unknown operator until it is registered.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import CompileError
from .convolution import conv2d_schedule, pointwise, residual, transposed
from .dense import dense_schedule
from .depthwise import conv_separable, depthwise_schedule, grouped, packed_rows, separable, upsample
from .description import Description
from .elementwise import broadcast_schedule, elementwise_schedule
from .kernel import AnyOperator
from .pool import conv_global_average, packed_tail, pool_schedule

OPERATORS: dict[type[Description], AnyOperator] = {}


def register(operator: AnyOperator) -> AnyOperator:
    """Make an operator known to `compile_op`, `bound_of` and the command line."""
    known = {each.name: each for each in OPERATORS.values()}
    if operator.description in OPERATORS or operator.name in known:
        raise CompileError(f"there is an operator {operator.name!r} already; give the description "
                           f"of the new one a name of its own: operator = \"...\"")
    OPERATORS[operator.description] = operator
    return operator


def operator_of(spec: Description) -> AnyOperator:
    """The operator that a description belongs to."""
    operator = OPERATORS.get(type(spec))
    if operator is None:
        known = ", ".join(each.__name__ for each in OPERATORS)
        also = " (a subclass needs a registration of its own)" if isinstance(
            spec, tuple(OPERATORS)) else ""
        raise CompileError(f"{type(spec).__name__} is not an operator{also}; there are {known}")
    return operator


INSTEAD = {conv2d_schedule: pointwise.multiply_pixels, grouped: packed_rows.pack_rows,
           pool_schedule: packed_tail.pack_tail}
for module in (conv2d_schedule, depthwise_schedule, grouped, transposed, dense_schedule,
               pool_schedule, elementwise_schedule, broadcast_schedule, residual,
               conv_global_average, separable, conv_separable, upsample):
    register(replace(module.OPERATOR, instead=INSTEAD.get(module)))
