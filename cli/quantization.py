"""The command that quantizes float models, and how other commands quantize on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import MicrotronError
from .files import (
    AsJson,
    check_report,
    check_table,
    name_beside,
    say,
    write_inspections,
    write_table,
)
from .options import ModelInputs, ModelShapes, ModelValues, ReportFile, TableFile

if TYPE_CHECKING:
    from ..compiler.graph.graph import Graph
    from ..quantization.quantize import QuantizedModel

MOST_DECIBELS = 60.0        # that a bar of a report shows; more is as good as exact

SampleData = Annotated[Path | None, typer.Option(
    "--data", metavar="SAMPLES", help="Quantize a float model first, with these samples of its "
                                      "inputs: an .npz file, a folder of .npy or .npz files, or of "
                                      "images with --preprocess.")]
RandomData = Annotated[bool, typer.Option(
    "--random-data", help="Quantize a float model with random numbers: for timing only.")]
Preprocess = Annotated[str, typer.Option(
    metavar="NAME=VALUE,…", help="How images become samples: as size=224,crop=224,mean=0.485/"
                                 "0.456/0.406,std=0.229/0.224/0.225,scale=1/255,layout=nchw,"
                                 "channels=rgb.")]


def quantize(
        model: Annotated[Path, typer.Argument(
            metavar="MODEL", help="A float network: a .tflite or .onnx file.")],
        data: SampleData = None,
        output: Annotated[Path | None, typer.Option(
            "--output", "-o", help="ONNX file to write; unless given, the model with "
                                   "_int8.onnx.")] = None,
        preprocess: Preprocess = "",
        random_data: RandomData = False,
        labels: Annotated[Path | None, typer.Option(
            help="The class of each sample, in a .npy or a text file: accuracy before and "
                 "after.")] = None,
        method: Annotated[str, typer.Option(
            help="How ranges are chosen: best, minmax, percentile, entropy or mse.")] = "best",
        techniques: Annotated[str | None, typer.Option(
            metavar="NAME,…", help="What is tried besides: smooth, equalize, absorb, refine, "
                                   "round, correct; all unless given, and none if empty.")] = None,
        weight_bits: Annotated[int, typer.Option(
            help="Bits of a weight: 8, or 4 for configurations with wgt_bits = 4.")] = 8,
        keep_float: Annotated[list[str] | None, typer.Option(
            "--keep-float", metavar="LAYER", help="A layer that stays float; may be given several "
                                                  "times.")] = None,
        max_loss: Annotated[float | None, typer.Option(
            help="Keep the layers that hurt most in float until the loss is at most this: points "
                 "of accuracy with --labels, else percent of the outputs' size.")] = None,
        config: Annotated[str, typer.Option(
            help="Compile the result for this configuration, and report what runs where and in "
                 "how many cycles; none to leave that out.")] = "base",
        shapes: ModelShapes = None,
        values: ModelValues = None,
        all_layers: Annotated[bool, typer.Option(
            "--all", help="Print all layers, not only those that hurt most.")] = False,
        report: ReportFile = None,
        table: TableFile = None,
        as_json: AsJson = False) -> None:
    """Quantize a float network to int8, with samples of its inputs.

    Writes a QDQ ONNX file, which runs in ONNX Runtime and compiles for the accelerator.

    Example: microtron quantize model.onnx --data samples.npz -o model_int8.onnx
    """
    options: dict[str, Any] = {"method": method, "weight_bits": weight_bits,
                               "keep_float": keep_float or (), "max_loss": max_loss}
    if techniques is not None:
        options["techniques"] = [each for each in techniques.split(",") if each]
    target = output or name_beside(model, "_int8.onnx")
    if target.suffix != ".onnx":
        raise MicrotronError(f"--output is {target}, but must be an .onnx file")
    from ..base.atomic_files import check_folder
    check_folder(target)
    check_report(report)
    check_table(table)
    if report is not None and config == "none":
        raise MicrotronError("--report shows cycles, and needs a configuration; leave out --config "
                             "none")
    from ..base.progress import report_progress
    from ..quantization.quantize import quantize as quantize_model

    with report_progress(f"reading {model}") as tell:
        found = quantize_model(
            model, samples_of(data, preprocess), random_data=random_data, labels=labels,
            config=None if config == "none" else config, progress=tell,
            **ModelInputs(shapes, values).parse(), **options)
        found.save(target)
    if report is not None:
        _write_report(found, target, config, report, silent=as_json)
    write_table(table, [each.to_dict() for each in found.report.layers], silent=as_json)
    if as_json:
        typer.echo(json.dumps({"file": str(target), **found.report.to_dict()}))
        return
    from ..quantization.tables import show_report
    show_report(found.report, all_layers=all_layers)
    say(f"{target}: {len(found.report.layers)} quantized tensors")


def _write_report(found: QuantizedModel, model: Path, config: str, target: Path, *,
                  silent: bool) -> None:
    """The report on a quantized model, with the error of each layer."""
    from .. import compile as compile_model
    from ..base.notebooks.svg_plot import Series
    from ..base.progress import report_progress
    from ..report.extra_plot import ExtraPlot
    from ..report.extra_table import ExtraTable
    from ..runtime.reports.layers import inspect_model

    with report_progress(f"compiling {model}") as tell:
        inspection = inspect_model(compile_model(found.graph, config, progress=tell))
    layers = found.report.worst
    errors = ExtraTable(
        title="Quantization", about=f"SQNR of each stored tensor against the float model, over "
        f"{found.report.samples} samples; those that hurt most first.",
        columns=("tensor", "operator", "SQNR", "scale", "zero point"),
        rows=[(each.name, each.operator, f"{each.sqnr:.1f} dB",
               "float" if each.scale is None else f"{each.scale:.6g}",
               "" if each.zero_point is None else str(each.zero_point)) for each in layers],
        bars=[max(0.0, _decibels(each.sqnr)) for each in layers])
    along = ExtraPlot(
        title="SQNR along the network", about="Each stored tensor against the float model's, in "
        f"the order in which they are computed; {MOST_DECIBELS:.0f} dB and more is as good as "
        "exact. Where it falls is where quantization hurts.",
        x="stored tensor", y="SQNR, dB", series=[Series(
            "stored tensors", range(len(found.report.layers)),
            [_decibels(each.sqnr) for each in found.report.layers],
            labels=[f"{each.name} ({each.operator}): {each.sqnr:.1f} dB"
                    for each in found.report.layers])])
    write_inspections({model.name: inspection}, target, tables=[errors], plots=[along],
                      silent=silent)


def _decibels(sqnr: float) -> float:
    """What can be drawn: an exact tensor has no error, and one of zeros no signal."""
    return min(max(-MOST_DECIBELS, sqnr), MOST_DECIBELS) if sqnr == sqnr else 0.0


def samples_of(data: Path | None, preprocess: str) -> Any:
    """Samples as options name them."""
    if not preprocess:
        return None if data is None else str(data)
    if data is None:
        raise MicrotronError("--preprocess is for images; name their folder with --data")
    from ..quantization.calibration.images import image_folder
    return image_folder(data, preprocess)


def quantized_graph(model: Path, fixed: ModelInputs, tell: Callable[[str], None]) -> Graph:
    """A float model file quantized on the way to something else."""
    from ..base.progress import print_note
    from ..quantization.quantize import quantize as quantize_model

    found = quantize_model(model, samples_of(fixed.data, fixed.preprocess),
                           random_data=fixed.random_data, progress=tell, **fixed.parse())
    if fixed.random_data:
        print_note("quantized with random data: cycles are right, results are not")
    return found.graph
