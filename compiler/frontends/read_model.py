"""Any model file read into a graph. What a file is, its content says, not its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...base.argument_checks import check_path, check_type
from ...base.checked_values import quote, show_name
from ...base.keywords import check_keywords
from ..graph.graph import Graph
from ..graph.types import GraphError

LARGEST_FILE = 1 << 31          # bytes; flatbuffers and protobuf end there too
TFLITE_IDENTIFIER = b"TFL3"     # at byte 4


@check_keywords
def read_model(path: str | Path, shapes: Mapping[str, tuple[int, ...]] | None = None,
               values: Mapping[str, object] | None = None) -> Graph:
    """Read a TFLite or ONNX file into a Graph. `shapes` fixes dynamic inputs, `values` replaces
    inputs by constants; both are as in `compile`."""
    path = check_path("path", path)
    for name, given in (("shapes", shapes), ("values", values)):
        check_type(name, {} if given is None else given, Mapping, "a mapping from names of inputs")
    data = contents(path)
    try:
        if data[4:8] == TFLITE_IDENTIFIER:
            from .tflite import read_tflite

            return read_tflite(data, path.name, shapes, values)
        from .onnx import read_onnx

        return read_onnx(data, path.name, shapes, values)
    except ImportError as error:
        raise GraphError(f"{show_name(path.name)}: reading models needs the package "
                         f"{error.name}: pip install 'microtron[models]'") from None


def contents(path: Path) -> bytes:
    """A file that is small enough to be a model."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise GraphError(f"{show_name(str(path))}: {error.strerror or error}") from None
    except ValueError as error:             # a path with a zero byte
        raise GraphError(f"{quote(str(path))}: {error}") from None
    if len(data) > LARGEST_FILE:
        raise GraphError(f"{show_name(str(path))} has more than {LARGEST_FILE} bytes, which no "
                         "model has")
    return data
