"""A folder of numbered ONNX files: a graph on its way through the passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...base.atomic_files import Content, write_together
from ...base.errors import MicrotronError
from .graph import Graph
from .graph_to_onnx import ConstantStore, graph_to_onnx

CONSTANTS = "constants.bin"


def make_folder(folder: Path) -> None:
    """Make the folder, or refuse it, before anything takes long."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MicrotronError(f"{folder}: the folder cannot be made: {error.strerror}") from None


def dump_graphs(graphs: Sequence[tuple[str, Graph]], folder: Path) -> list[Path]:
    """Write each graph as NN_LABEL.onnx, and their large constants once, in constants.bin."""
    store = ConstantStore(CONSTANTS)
    files: dict[Path, Content] = {}
    for number, (label, graph) in enumerate(graphs):
        files[folder / f"{number:02}_{label}.onnx"] = graph_to_onnx(
            graph, store).SerializeToString()
    files[folder / CONSTANTS] = store.pieces
    write_together(files)
    return list(files)
