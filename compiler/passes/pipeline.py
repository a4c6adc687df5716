"""The passes, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..graph.graph import Graph
from ..graph.types import GraphError
from ..graph.verify import verify_graph
from .fold_batch_norm import fold_batch_norm
from .fold_constants import fold_constants, fold_dequantized
from .fold_pad import fold_pad
from .fuse_clamp import fuse_clamp
from .integer_moves import integer_moves
from .integer_operators import integer_operators
from .merge_equal import merge_equal
from .moves_as_windows import moves_as_windows
from .normalize import normalize
from .remove_dead import remove_dead
from .signed import signed
from .simplify_shape import simplify_shape


class Pass(NamedTuple):
    """A pass and the name under which `--show` knows its result."""

    name: str
    run: Callable[[Graph], Graph]


PASSES: tuple[Pass, ...] = (
    Pass("fold_constants", fold_constants),
    Pass("integer_moves", integer_moves),
    Pass("integer_operators", integer_operators),
    Pass("fold_batch_norm", fold_batch_norm),
    Pass("fold_dequantized", fold_dequantized),     # what is left of real weights
    Pass("normalize", normalize),
    Pass("simplify_shape", simplify_shape),
    Pass("remove_dead", remove_dead),               # also lets the next ones see single readers
    Pass("fold_pad", fold_pad),
    Pass("signed", signed),
    Pass("moves_as_windows", moves_as_windows),     # knows signed numbers only
    Pass("fuse_clamp", fuse_clamp),
    Pass("merge_equal", merge_equal),
    Pass("clean_up", remove_dead),
)


def optimized(graph: Graph, observe: Callable[[str, Graph], None] | None = None) -> Graph:
    """The graph after all passes, verified after each. `observe` gets the name of each pass and
    the graph after it."""
    for each in PASSES:
        with np.errstate(all="ignore"):         # as in `evaluate`: infinities are numbers
            graph = each.run(graph)
        try:
            verify_graph(graph)
        except GraphError as error:
            raise AssertionError(f"pass {each.name} broke the graph: {error}") from error
        if observe is not None:
            observe(each.name, graph)
    return graph
