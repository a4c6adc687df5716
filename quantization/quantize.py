"""A model file, or a graph, and samples in; a quantized model out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.atomic_files import write_atomically
from ..base.checked_values import quote, show_name
from ..base.errors import MicrotronError
from ..base.keywords import check_keywords
from ..compiler.frontends.read_model import read_model
from ..compiler.graph.graph import Graph
from .calibration.ranges import BEST
from .calibration.samples import Samples, open_samples, random_samples
from .options import TECHNIQUES, QuantizeOptions
from .parameters import Array
from .pipeline import quantize_graph
from .report import RANDOM, QuantizationReport, measure, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..isa.config import Config

NEEDED = ("quantization needs samples of the model's inputs: --data with an .npz file, a folder "
          "of .npy files or of images, or --random-data for timing only")


@dataclass(frozen=True)
class QuantizedModel:
    """A model in QDQ form, with what is known of its accuracy. `microtron.compile` takes its
    graph."""

    graph: Graph
    report: QuantizationReport

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as an ONNX model, which ONNX Runtime and `microtron compile` take."""
        write_atomically(Path(path), self.to_onnx())

    def to_onnx(self) -> bytes:
        from .export.write_onnx import write_onnx

        notes = {"microtron.samples": str(self.report.samples)}
        if self.report.random:
            notes["microtron.warning"] = RANDOM
        data: bytes = write_onnx(self.graph, notes).SerializeToString()
        return data


@check_keywords
def quantize(model: str | PathLike[str] | Graph, samples: object = None, *,
             random_data: bool = False, labels: object = None, config: Config | str | None = None,
             method: str = BEST, techniques: Sequence[str] = TECHNIQUES, weight_bits: int = 8,
             keep_float: Sequence[str] = (), max_loss: float | None = None,
             judged_samples: int | None = None,
             shapes: Mapping[str, tuple[int, ...]] | None = None,
             values: Mapping[str, object] | None = None,
             progress: Callable[[str], None] | None = None) -> QuantizedModel:
    """Quantize a float model to int8, with samples of its inputs.

    model       path of a float .tflite or .onnx file, or a Graph
    samples     an .npz file, a folder of .npy files, arrays by name, or an iterable of samples
    random_data     True takes random numbers instead of samples: for timing only
    labels      the class of each sample: the report has the accuracy before and after
    config      compile for this configuration too: the report has MACs, hand-overs and cycles
    method      how ranges are chosen: best, minmax, percentile, entropy or mse
    techniques  what is tried besides, and used where it helps: smooth, equalize, absorb,
                refine, round, correct
    weight_bits     8, or 4 for configurations with wgt_bits = 4
    keep_float  names of layers that stay float
    max_loss    keep the layers that hurt in float until the loss is at most this: points of
                accuracy with labels, else percent of the outputs' size
    judged_samples  on how many samples candidates are compared; 16 to 64 by the model's size
                unless given
    shapes, values, progress    as for `compile`

    The result's `save` writes a QDQ ONNX file, and `compile` takes its `graph`.
    """
    options = QuantizeOptions(
        method=method, techniques=techniques, weight_bits=weight_bits, keep_float=keep_float,
        max_loss=max_loss, judged_samples=judged_samples)
    if not isinstance(random_data, bool):
        raise MicrotronError(f"random_data is {quote(random_data)}, but must be True or False")
    say = progress or (lambda doing: None)
    graph = _graph(model, shapes, values)
    if samples is None and not random_data:
        raise MicrotronError(f"{show_name(graph.name or 'the model')}: {NEEDED}")
    if samples is not None and random_data:
        raise MicrotronError("random data takes the place of samples; give one of them")
    wanted = None if labels is None else _check_labels(label_array(labels), graph)
    with (_widen_samples(graph, samples, random_data) as given,
          np.errstate(all="ignore")):           # numbers may overflow; what matters is checked
        given.labels = None if wanted is None else len(wanted)
        found = quantize_graph(graph, given, options, say, wanted)
        kept = [*options.keep_float, *found.kept_float]
        report = measure(found, given, wanted, graph.name or "model", kept, say)
    if config is not None:
        report = replace(report, placement=place(found.graph, config, say))
    return QuantizedModel(found.graph, report)


def _graph(model: object, shapes: Mapping[str, tuple[int, ...]] | None,
           values: Mapping[str, object] | None) -> Graph:
    if isinstance(model, Graph):
        return model
    if isinstance(model, str | PathLike):
        return read_model(Path(model), shapes or {}, values or {})
    raise MicrotronError(f"model is {quote(model)}, but must be a Graph or the path of a .tflite "
                         f"or .onnx file")


@contextmanager
def _widen_samples(graph: Graph, samples: object, random_data: bool) -> Iterator[Samples]:
    """Samples for the inputs of the quantized model, which have 32 bits where the float model has
    16."""
    inputs = {name: replace(type_, dtype="float32") if type_.dtype == "float16" else type_
              for name, type_ in graph.inputs.items()}
    if random_data:
        yield random_samples(inputs)
        return
    with open_samples(inputs, samples) as found:
        yield found


def _check_labels(labels: Array, graph: Graph) -> Array:
    if len(graph.outputs) != 1:
        raise MicrotronError(f"labels are for models with one output, but there are "
                             f"{len(graph.outputs)}")
    classes = graph.type_of(graph.outputs[0]).size
    if labels.min() < 0 or labels.max() >= classes:
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise MicrotronError(f"labels have {wrong}, but {show_name(graph.outputs[0])} has classes "
                             f"from 0 to {classes - 1}")
    return labels


def label_array(labels: object) -> Array:
    """The class of each sample: whole numbers, from an array, a .npy or a text file."""
    if isinstance(labels, str | PathLike):
        path = Path(labels)
        try:
            array = (np.load(path, allow_pickle=False) if path.suffix == ".npy"
                     else np.array(path.read_text(encoding="utf-8").split(), np.int64))
        except (OSError, ValueError, EOFError, UnicodeDecodeError) as error:
            raise MicrotronError(f"{path}: labels are whole numbers in a .npy or a "
                                 f"text file: {error}") from None
    else:
        array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise MicrotronError(f"labels are {array.dtype} of shape {array.shape}, but must be whole "
                             f"numbers, one for each sample")
    found: Array = array.astype(np.int64)
    return found
