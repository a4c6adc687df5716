"""A graph as data for a file, and back: plain data, as JSON has it, and the numbers of constants.

    data, arrays = save_graph(graph)
    text = json.dumps(data)
    …
    graph = load_graph(json.loads(text), arrays)

    {"name": …, "outputs": [names],
     "inputs": [{"name": …, "type": {"shape": …, "dtype": …, "quantization": …}}, …],
     "constants": [{"name": …, "type": …, "array": index into arrays}, …],
     "nodes": [{"name": …, "operation": {"operator": "Conv", "x": …}, "type": …, "origin": …}, …]}

A graph with states is not stored: models keep states beside the graphs of their parts.

What is loaded may come from strangers. It gives a graph that passes the verifier or a GraphError.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.checked_values import integer, list_names, quote, show_name
from ...base.errors import MicrotronError
from .graph import Constant, Graph, Node
from .records import objects, record, to_plain_data
from .types import Array, GraphError, TensorType
from .verify_graph import verify_graph

FIELDS = ("name", "inputs", "constants", "nodes", "outputs")


def save_graph(graph: Graph) -> tuple[dict[str, object], list[Array]]:
    """A graph as plain data and arrays. Constants that are one array in memory stay one."""
    if graph.states:
        names = list_names([show_name(name) for name in graph.states])
        raise GraphError(f"a graph with states ({names}) cannot be stored; a compiled model can")
    arrays: list[Array] = []
    places: dict[tuple[int, str, tuple[int, ...]], int] = {}
    constants = []
    for name, constant in graph.constants.items():
        array = constant.array
        key = (array.__array_interface__["data"][0], str(array.dtype), array.strides + array.shape)
        if key not in places:
            places[key] = len(arrays)
            arrays.append(array)
        constants.append({"name": name, "type": to_plain_data(constant.type), "array": places[key]})
    return {
        "name": graph.name,
        "inputs": [{"name": name, "type": to_plain_data(each)}
                   for name, each in graph.inputs.items()],
        "constants": constants,
        "nodes": [{"name": name, **to_plain_data(node)} for name, node in graph.nodes.items()],
        "outputs": list(graph.outputs),
    }, arrays


def load_graph(data: object, arrays: Sequence[Array | bytes | memoryview]) -> Graph:
    """The graph of plain data. Arrays have the types of their constants, or are their bytes, in
    order and little-endian."""
    entries = objects(data, "graph")
    _exactly(entries, FIELDS, "graph")
    constants = {}
    unused = set(range(len(arrays)))
    for name, each in _named_objects(entries["constants"], "constants", ("type", "array")):
        place = f"constant {show_name(name)}"
        index = integer(each["array"])
        if index is None or not 0 <= index < len(arrays):
            raise GraphError(f"{place}: array is {quote(each['array'])}, but must be a whole "
                             f"number below {len(arrays)}")
        unused.discard(index)
        type_ = record(TensorType, each["type"], place)
        constants[name] = Constant(type_, _numbers(arrays[index], type_, place))
    if unused:
        raise GraphError(f"array {min(unused)} of {len(arrays)} belongs to no constant")
    graph = Graph(
        inputs={name: record(TensorType, each["type"], f"input {show_name(name)}")
                for name, each in _named_objects(entries["inputs"], "inputs", ("type",))},
        constants=constants,
        nodes={name: record(Node, each, f"node {show_name(name)}")
               for name, each in _named_objects(entries["nodes"], "nodes")},
        outputs=tuple(_text(each, "outputs") for each in _list(entries["outputs"], "outputs")),
        name=_text(entries["name"], "name"))
    _verify(graph)
    return graph


def _verify(graph: Graph) -> None:
    """Operations may assume that their settings make some sense: a front end made them. Settings
    of a stranger can be such nonsense that NumPy or Python stumbles before the operation does."""
    try:
        verify_graph(graph)
    except GraphError:
        raise
    except (MicrotronError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise GraphError(f"a node has settings that make no sense: "
                         f"{show_name(str(error))}") from None


def _named_objects(data: object, place: str,
                   exactly: tuple[str, ...] | None = None) -> list[tuple[str, dict[str, object]]]:
    """The objects of a list with the name of each, which differ; the rest of its fields, if they
    are checked here, are as told."""
    found: dict[str, dict[str, object]] = {}
    for each in _list(data, place):
        entries = objects(each, place)
        name = _text(entries.pop("name", None), f"{place}: name")
        if name in found:
            raise GraphError(f"{place}: there are two of the name {show_name(name)}")
        if exactly is not None:
            _exactly(entries, exactly, f"{place}: {show_name(name)}")
        found[name] = entries
    return list(found.items())


def _exactly(entries: dict[str, object], wanted: tuple[str, ...], place: str) -> None:
    if set(entries) != set(wanted):
        raise GraphError(f"{place}: fields are {quote(list(entries))}, but must be "
                         f"{', '.join(wanted)}")


def _list(data: object, place: str) -> list[object]:
    if not isinstance(data, list):
        raise GraphError(f"{place}: {quote(data)} must be a list")
    return data


def _text(data: object, place: str) -> str:
    if not isinstance(data, str):
        raise GraphError(f"{place}: {quote(data)} must be text")
    return data


def _numbers(given: Array | bytes | memoryview, type_: TensorType, place: str) -> Array:
    """The numbers of a constant, from bytes if need be."""
    if isinstance(given, np.ndarray):
        if given.shape != type_.shape or given.dtype != np.dtype(type_.dtype):
            raise GraphError(f"{place}: the array is {given.dtype} of shape {given.shape}, but "
                             f"must be {type_.plain()}")
        return given
    size = memoryview(given).nbytes
    if size != type_.bytes:
        raise GraphError(f"{place}: there are {size} bytes, but {type_.plain()} has {type_.bytes}")
    stored = "uint8" if type_.dtype == "bool" else np.dtype(type_.dtype).newbyteorder("<")
    array = np.frombuffer(given, stored)
    if type_.dtype == "bool" and array.size and array.max() > 1:
        raise GraphError(f"{place}: a truth value is {array.max()}, but must be 0 or 1")
    return array.astype(type_.dtype, copy=False).reshape(type_.shape)
