"""What declared intrinsics do to arrays, for `nest.run.interpret`: their expressions, evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...expression.evaluate import COMBINERS, Array, evaluate_body
from ...expression.expression import Reduction
from ...nest.run import Meaning
from .intrinsic import Intrinsic


def meanings(intrinsics: Iterable[Intrinsic]) -> dict[str, Meaning]:
    """The meaning of each intrinsic, by its name."""
    return {intrinsic.name: _computing(intrinsic) for intrinsic in intrinsics}


def _computing(intrinsic: Intrinsic) -> Meaning:
    tensor, body = intrinsic.tensor, intrinsic.tensor.body
    sources = intrinsic.operands[1:]

    def compute(target: Array, *operands: Array) -> None:
        # Regions have leading dimensions of extent 1, which say which tile it is.
        values = {source: operand.reshape(source.shape)
                  for source, operand in zip(sources, operands, strict=True)}
        result: Any = evaluate_body(tensor, values).reshape(target.shape)
        if isinstance(body, Reduction):
            result = COMBINERS[body.combiner](target, result)
        target[...] = result

    return compute
