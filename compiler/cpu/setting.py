"""Numbers that layers differ in, kept in memory."""

from __future__ import annotations

import numpy as np

from ..expression.expression import Expression, as_expression
from ..expression.tensor import constant


def setting(name: str, value: float, dtype: str) -> Expression:
    """A number of one layer, such as a scale. It is no part of the code, so that layers which are
    otherwise the same share theirs; but 0 is, for then there is less to do."""
    return constant(name, np.array([value], dtype))[0] if value else as_expression(0, dtype)
