"""Quantization of float models with data, beside ONNX Runtime's own static quantization.

    python benchmarks/quantization.py [--json] [MODEL ...]
    python benchmarks/quantization.py --preprocess size=320,scale=1/255 detector.onnx

Every float model of ../shared/models with data is quantized by `microtron.quantize` and by ONNX
Runtime (min–max and entropy) with the same samples, and judged on data that neither has seen: top-1
accuracy, sentence pairs found, how often the first output has the float model's maximum, and the
SQNR of the outputs. Microtron's figures are those of its integer execution; ONNX Runtime's are its
own without optimizations. p is the chance that right answers differ as much from Microtron's in a
model that is as accurate. The file is also run by ONNX Runtime, and each layer of it compared with
the integer execution.

Any other file is given by its path, with one input that takes a picture: it is quantized and judged
on the pictures there, and its score is how often its first output has the float model's maximum,
or with --boxes how often the most certain detection is the float model's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib import import_module
from math import comb
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from cases.quantization_cases import (
    CASES,
    PARTS,
    Case,
    Sample,
    count_boxes,
    given_case,
    model_folder,
    top1,
)
from common import Column, Outcome, Row, main

import microtron
from microtron.base.arrays import Array
from microtron.quantization.evaluation import Errors
from microtron.quantization.layer_steps import layer_steps, stored_by_onnxruntime
from microtron.quantization.report import IntegerModel, place

JUDGED = 200                    # samples of a classifier that are judged
SAMPLES = 128                   # that each tool gets
BINS = 512                      # of the histograms of ONNX Runtime's entropy method


def session(path: Path) -> Callable[[Sample], list[Array]]:
    """ONNX Runtime without optimizations, which computes what the file says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    opened = onnxruntime.InferenceSession(str(path), options)
    return lambda sample: list(opened.run(None, sample))


def by_onnxruntime(path: Path, target: Path, samples: list[Sample], method: str) -> None:
    """The same samples for ONNX Runtime's static quantization.

    Its entropy method chooses among as many ranges as there are bins more than 128, and there are
    128 unless somebody changes that, for which `quantize_static` has no option: it
    is min–max then.
    """
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    opened = import_module("onnxruntime.quantization.quantize")

    class Reader(CalibrationDataReader):            # type: ignore[misc]
        def __init__(self) -> None:
            self.left = iter(samples)

        def get_next(self) -> Sample | None:
            return next(self.left, None)

    create: Callable[..., Any] = opened.create_calibrator

    def with_bins(*arguments: Any, **options: Any) -> Any:
        options["extra_options"] = {**options.get("extra_options", {}), "num_bins": BINS}
        return create(*arguments, **options)

    patched = patch.object(opened, "create_calibrator", with_bins)
    with redirect_stdout(sys.stderr), patched:  # it talks
        quantize_static(str(path), str(target), Reader(), quant_format=QuantFormat.QDQ,
                        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                        per_channel=True, calibrate_method=getattr(CalibrationMethod, method))


def float_file(path: Path, folder: Path) -> Path:
    """An ONNX file of a float model, for ONNX Runtime: it reads no TFLite."""
    if path.suffix == ".onnx":
        return path
    from microtron.quantization.export.write_onnx import write_onnx
    from microtron.quantization.prepare import prepare

    target = folder / f"{path.stem}.onnx"
    target.write_bytes(write_onnx(prepare(microtron.read_model(path)), {}).SerializeToString())
    return target


def measure_case(case: Case, models: Path, config: str, judged: int,
                 calibrated: int, part: int) -> Iterator[Row]:
    """A row for Microtron, and one for each method of ONNX Runtime."""
    path, data = models / "models" / case.file, models / "data"
    calibration = case.calibration(data, part)[:calibrated]
    samples, labels = case.judged(data, part)
    samples, labels = samples[:judged], None if labels is None else labels[:judged]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = float_file(path, folder)
        reference = session(source)
        right = [reference(sample) for sample in samples]
        if labels is None and case.score is top1:
            labels = np.array([np.argmax(each[0]) for each in right])
        elif labels is None and case.score is count_boxes:
            labels = np.stack([each[0] for each in right])

        def row(tool: str, outputs: list[list[Array]], **more: Any) -> Row:
            before, after = (case.score([each[0] for each in found], samples, labels)
                             for found in (right, outputs))
            kept = top1([each[0] for each in outputs], samples,
                        np.array([np.argmax(each[0]) for each in right]))
            return {"model": path.name, "tool": tool, "samples": len(samples),
                    "calibration": len(calibration), "float": before, "score": after,
                    "agreement": kept, "sqnr": _sqnr(right, outputs), **more}

        start = process_time()
        found = microtron.quantize(path, calibration, shapes=case.shapes)
        seconds = process_time() - start
        target = folder / "microtron.onnx"
        found.save(target)
        integer = IntegerModel(found.graph)
        mine = [[values[name] for name in found.graph.outputs]
                for values in map(integer.run, samples)]
        steps = layer_steps(found.graph, stored_by_onnxruntime(target.read_bytes(), samples[0]),
                            samples[0])
        placement = {} if config == "none" else place(
            found.graph, config, lambda doing: None).to_dict()
        yield row("microtron", mine, steps_to_onnxruntime=max(steps.values()),
                  processor_seconds=seconds,
                  used=[step[0] for step in found.report.techniques if step[3]],
                  **placement)
        for method in ("MinMax", "Entropy"):
            other = folder / f"{method}.onnx"
            by_onnxruntime(source, other, calibration, method)
            theirs = list(map(session(other), samples))
            yield row(f"onnxruntime {method}", theirs, **(
                compare_answers(mine, theirs, labels) if case.score is top1 else {}))


def compare_answers(mine: list[list[Array]], theirs: list[list[Array]],
                    labels: Array | None) -> Row:
    """How many answers only one of two models has right, and the probability that chance parts
    them at least as unequally between two models of the same accuracy (McNemar's exact test)."""
    assert labels is not None
    one, other = (np.array([np.argmax(each[0]) for each in outputs]) == labels
                  for outputs in (mine, theirs))
    only_mine, only_theirs = int((one & ~other).sum()), int((other & ~one).sum())
    count, least = only_mine + only_theirs, min(only_mine, only_theirs)
    chance = 2 * sum(comb(count, each) for each in range(least + 1)) / 2 ** count
    return {"microtron_only": only_mine, "this_only": only_theirs, "mcnemar": min(1.0, chance)}


def _sqnr(right: list[list[Array]], found: list[list[Array]]) -> float:
    """Of all samples, in the mean over outputs."""
    values = []
    for number in range(len(right[0])):
        errors = Errors()
        for one, other in zip(right, found, strict=True):
            errors.add(one[number], other[number])
        values.append(errors.decibels)
    return float(np.mean(values))


def _choose_cases(names: list[str], preprocess: str | None, *, boxes: bool) -> list[Case]:
    known = {case.file: case for case in CASES}
    found = []
    for name in names or known:
        if name in known:
            found.append(known[name])
        elif not Path(name).is_file():
            raise microtron.MicrotronError(f"there is no model {name!r}: neither a file nor one of "
                                           f"{', '.join(known)}")
        elif preprocess is None:
            raise microtron.MicrotronError(f"{name} needs --preprocess, as in size=224,scale=1/255")
        else:
            found.append(given_case(str(Path(name).resolve()), preprocess, boxes=boxes))
    return found


def measure(arguments: argparse.Namespace) -> Outcome:
    models = model_folder()
    chosen = _choose_cases(arguments.models, arguments.preprocess, boxes=arguments.boxes)
    rows: list[Row] = []
    if models is None:
        print("there is no folder ../shared/models, and nothing to measure", file=sys.stderr)
    for case in chosen if models is not None else ():
        print(f"{case.file} …", file=sys.stderr)
        assert models is not None
        for row in measure_case(case, models, arguments.config, arguments.judged,
                                arguments.samples, arguments.part):
            print(f"  {row['tool']}: float {row['float']:.1f}, int8 {row['score']:.1f}, "
                  f"SQNR {row['sqnr']:.1f} dB", file=sys.stderr)
            rows.append(row)
    return Outcome(
        benchmark="quantization", title="Quantized models, judged on data they have not seen",
        columns=(Column("model", "model"), Column("tool", "tool"),
                 Column("float", "float", lambda value: f"{value:.1f}"),
                 Column("score", "int8", lambda value: f"{value:.1f}"),
                 Column("agreement", "agree", lambda value: f"{value:.1f}"),
                 Column("sqnr", "SQNR dB", lambda value: f"{value:.1f}"),
                 Column("mcnemar", "p", lambda value: "" if value is None else f"{value:.2f}")),
        rows=rows, facts={"config": arguments.config, "entropy_bins": BINS},
        details=tuple(f"{each['model']}: {each['accelerator_percent']:.1f} % of MACs on the "
                      f"accelerator, {each['handovers']} hand-overs, {each['cycles']:,} cycles"
                      for each in rows if "handovers" in each))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", help="files of ../shared/models, all unless given; or "
                        "paths of files that take pictures")
    parser.add_argument("--preprocess", help="how files given by a path take pictures, as for "
                        "`microtron quantize`")
    parser.add_argument("--boxes", action="store_true", help="such files give boxes as YOLO does: "
                        "the score is how often the most certain one is the float model's")
    parser.add_argument("--config", default="base", help="to compile for; none leaves that out")
    parser.add_argument("--judged", type=int, default=JUDGED, help="samples that are judged")
    parser.add_argument("--part", type=int, choices=range(PARTS), default=0,
                        help="of data that are one set, the tenth that models are quantized with")
    parser.add_argument("--samples", type=int, default=SAMPLES,
                        help="samples that models are quantized with, by all tools")


if __name__ == "__main__":
    main(measure, __doc__ or "", options)
