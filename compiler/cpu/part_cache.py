"""Parts that were compiled for the CPU before, by any process.

A part follows from its graph, the processor and the sources of the compiler, which are its key.
Constants that it has in common with the graph are not stored again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict

import numpy as np

from ...base.cache import RESULTS, cache_key
from ...base.processor import Target
from ...base.source_digest import source_digest
from ..graph.graph import Graph
from ..graph.records import record, to_plain_data
from ..graph.saved import save_graph
from ..graph.types import Array, TensorType
from ..operators.layout import Layout
from .code.emit_kernel import Body, Module
from .code.entry import Entry
from .cpu_part import Part, compile_function, compile_part
from .registry import LOWERINGS, NEST_LOWERINGS
from .tiles import pack_tensor, unpack_tensor

KIND = "cpu part"
OURS = __name__.partition(".")[0]
LEVEL = 1                       # of compression: LLVM's language is long-winded


def cached_part(graph: Graph, target: Target) -> Part:
    """The part of a graph that `compile_part` returns, taken from the cache if it is there."""
    if not RESULTS.is_used() or graph.states or not _is_ours(graph):
        return compile_part(graph, target)
    data, arrays = save_graph(graph)
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    known = {name: constant.array for name, constant in graph.constants.items()}
    return _cache(lambda: compile_part(graph, target), target, known,
                  "graph", json.dumps(data), digest.digest())


def cached_move(layout: Layout, dtype: str, target: Target, *, into_tiles: bool) -> Part:
    """A tensor into tiles or out of them."""
    move = pack_tensor if into_tiles else unpack_tensor
    return _cache(lambda: compile_function(move(layout, dtype), target), target, {},
                  move.__name__, json.dumps(to_plain_data(layout)), dtype)


def _cache(make: Callable[[], Part], target: Target, known: Mapping[str, Array],
           *made_from: str | bytes) -> Part:
    """The part that `make` returns, which follows from the processor and `made_from`. Arrays in
    `known` are there by name."""
    key = cache_key(KIND, source_digest(__name__), json.dumps(asdict(target)), *made_from)
    content = RESULTS.get(key)
    if content is not None:
        return _deserialize(content, target, known)
    part = make()
    RESULTS.put(key, _serialize(part, known))
    return part


def _is_ours(graph: Graph) -> bool:
    """Whether all operations and what lowers them are part of the compiler, whose sources are in
    the key."""
    kinds = {type(node.operation) for node in graph.nodes.values()}
    lowerings = [table[each] for table in (LOWERINGS, NEST_LOWERINGS) for each in kinds
                 if each in table]
    return all(each.__module__.partition(".")[0] == OURS for each in (*kinds, *lowerings))


def _serialize(part: Part, known: Mapping[str, Array]) -> bytes:
    names = {id(array): name for name, array in known.items()}
    others = {place: array for place, array in part.constants.items() if id(array) not in names}
    facts = {
        "inputs": part.inputs, "outputs": part.outputs, "scratch": list(part.scratch.items()),
        "scratch_bytes": part.scratch_bytes,
        "types": {name: to_plain_data(each) for name, each in part.types.items()},
        "named": [(place, names[id(array)]) for place, array in part.constants.items()
                  if id(array) in names],
        "others": [(place, array.dtype.str, array.shape) for place, array in others.items()],
        "order": list(part.constants),
        "entries": [asdict(each) for each in part.module.entries],
        "bodies": {name: (body.text, body.buffers, sorted(body.declared))
                   for name, body in part.module.bodies.items()}}
    text = zlib.compress(json.dumps(facts).encode(), LEVEL)
    return b"".join((len(text).to_bytes(8, "little"), text,
                     *(array.tobytes() for array in others.values())))


def _deserialize(content: bytes, target: Target, known: Mapping[str, Array]) -> Part:
    start = 8 + int.from_bytes(content[:8], "little")
    facts = json.loads(zlib.decompress(content[8:start]))
    constants: dict[int, Array] = {place: known[name] for place, name in facts["named"]}
    for place, dtype, shape in facts["others"]:
        array = np.frombuffer(content, dtype, int(np.prod(shape, dtype=np.int64)), start)
        constants[place] = array.reshape(shape).copy()          # aligned
        start += array.nbytes
    module = Module(target)
    module.entries = [Entry(**{**each, "places": tuple(each["places"])})
                      for each in facts["entries"]]
    module.bodies = {name: Body(text, buffers, frozenset(declared))
                     for name, (text, buffers, declared) in facts["bodies"].items()}
    return Part(target=target, inputs=facts["inputs"], outputs=facts["outputs"],
                constants={place: constants[place] for place in facts["order"]},
                scratch=dict(map(tuple, facts["scratch"])), scratch_bytes=facts["scratch_bytes"],
                types={name: record(TensorType, each, name)
                       for name, each in facts["types"].items()}, module=module)
