"""The passes, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ...base.checked_values import show_name
from ..errors import InternalError, summary
from ..graph.graph import Graph, Node
from ..graph.types import GraphError
from ..graph.verify_graph import verify_graph
from .compose_tables import compose_tables
from .fold_batch_norm import fold_batch_norm
from .fold_constants import fold_constants, fold_dequantized
from .fold_pad import fold_pad
from .fold_transpose import fold_transpose
from .fuse_clamp import fuse_clamp
from .integer_moves import integer_moves
from .integer_operators import integer_operators
from .merge_equal import merge_equal
from .normalize import normalize
from .remove_dead import remove_dead
from .signed import make_signed
from .simplify_shape import simplify_shape
from .wide_products import wide_products
from .windows.fold_moves import fold_moves
from .windows.moves_as_windows import moves_as_windows
from .windows.prelu_as_windows import prelu_as_windows
from .windows.rows_as_windows import rows_as_windows


class Pass(NamedTuple):
    """A pass and the name under which `--show` knows its result."""

    name: str
    run: Callable[[Graph], Graph]


PASSES: tuple[Pass, ...] = (
    Pass("fold_constants", fold_constants),
    Pass("integer_moves", integer_moves),
    Pass("prelu_as_windows", prelu_as_windows),
    Pass("integer_operators", integer_operators),
    Pass("wide_products", wide_products),           # of what is left
    Pass("fold_batch_norm", fold_batch_norm),
    Pass("fold_dequantized", fold_dequantized),     # what is left of real weights
    Pass("normalize", normalize),
    Pass("simplify_shape", simplify_shape),
    Pass("remove_dead", remove_dead),               # also lets the next ones see single readers
    Pass("fold_transpose", fold_transpose),
    Pass("fold_pad", fold_pad),
    Pass("signed", make_signed),
    Pass("fold_moves", fold_moves),
    Pass("moves_as_windows", moves_as_windows),     # knows signed numbers only
    Pass("rows_as_windows", rows_as_windows),
    Pass("fuse_clamp", fuse_clamp),
    Pass("compose_tables", compose_tables),
    Pass("merge_equal", merge_equal),
    Pass("clean_up", remove_dead),
)


def run_passes(graph: Graph, observe: Callable[[str, Graph], None] | None = None,
               left_out: Callable[[str, InternalError], None] | None = None) -> Graph:
    """The graph after all passes, verified after each. `observe` gets the name of each pass and
    the graph after it. With `left_out`, a pass that fails is skipped, and this is called; without,
    its error ends everything."""
    sound: Graph | None = None          # the last one that was verified
    for each in PASSES:
        try:
            sound = graph = _after(each, graph, sound)
        except InternalError as error:
            if left_out is None:
                raise
            _check_before(each, graph)
            left_out(each.name, error)
        if observe is not None:
            observe(each.name, graph)
    return graph


def _after(each: Pass, graph: Graph, sound: Graph | None) -> Graph:
    """The graph after a pass, if it is sound, as the one in which it changed nothing may be."""
    place = f"pass {each.name}"
    try:
        with np.errstate(all="ignore"):         # as in `evaluate`: infinities are numbers
            found = each.run(graph)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        node = _node_in_work(error, graph)
        raise InternalError(place, (f"{show_name(node)}: " if node else "")
                            + summary(error)) from error
    if sound is not None and _is_unchanged(found, sound):
        return sound
    try:
        verify_graph(found)
    except GraphError as error:
        raise InternalError(place, f"the graph is no longer sound: {error}") from error
    return found


def _is_unchanged(found: Graph, graph: Graph) -> bool:
    """Whether a pass gave back the very nodes and constants that it was given, in their order."""
    return (found.outputs == graph.outputs and found.name == graph.name
            and found.inputs is graph.inputs and found.states is graph.states
            and _has_same_items(found.nodes, graph.nodes)
            and _has_same_items(found.constants, graph.constants))


def _has_same_items(found: Mapping[str, object], given: Mapping[str, object]) -> bool:
    return found is given or (len(found) == len(given) and all(
        name == other and item is thing for (name, item), (other, thing)
        in zip(found.items(), given.items(), strict=True)))


def _check_before(each: Pass, graph: Graph) -> None:
    """Refuse a graph that is not sound without the pass either."""
    try:
        verify_graph(graph)
    except GraphError as error:
        raise InternalError(f"before pass {each.name}", str(error)) from error


def _node_in_work(error: BaseException, graph: Graph) -> str:
    """The model's name of the node that a pass was working on: all of them call it `name` or
    `node`. Empty if there is none."""
    found, trace = "", error.__traceback__
    while trace is not None:
        local = trace.tb_frame.f_locals
        name, node = local.get("name"), local.get("node")
        if isinstance(name, str) and name in graph.nodes:
            found = graph.nodes[name].origin or name
        elif isinstance(node, Node) and node.origin:
            found = node.origin
        trace = trace.tb_next
    return found
