"""Quantization of float models with data, beside ONNX Runtime's own static quantization.

    python benchmarks/quantization.py [--json] [MODEL ...]

Every float model of ../shared/models with data is quantized by `microtron.quantize` and by ONNX
Runtime (min–max and entropy) with the same samples, and judged on data that neither has seen: top-1
accuracy, sentence pairs found, and the SQNR of the outputs. Microtron's figures are those of its
integer execution; ONNX Runtime's are its own without optimizations. The file is also run by ONNX
Runtime, and compared with the integer execution.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import Column, Outcome, main

import microtron
from microtron.quantization.evaluation import Errors
from microtron.quantization.report import IntegerModel, place

Array = npt.NDArray[Any]
Sample = dict[str, Array]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
JUDGED = 200                    # samples of a classifier that are judged


def model_folder() -> Path | None:
    """shared/models beside the repository or above."""
    places = [each / "shared" / "models" for each in Path(__file__).resolve().parents]
    return next((place for place in places if (place / "MANIFEST.md").exists()), None)


@dataclass(frozen=True)
class Case:
    """A model, its samples for calibration, those for judging it, and how it is judged."""

    file: str
    calibration: Callable[[Path], list[Sample]]
    judged: Callable[[Path], tuple[list[Sample], Array | None]]


def _cifar(data: Path, file: str, name: str, *, normalized: bool) -> tuple[list[Sample], Array]:
    with np.load(data / file) as stored:
        images, labels = stored["x"].astype(np.float32), stored["y"].astype(np.int64)
    if normalized:
        images = ((images / 255 - np.array(MEAN)) / np.array(STD)).astype(np.float32)
        images = images.transpose(0, 3, 1, 2)
    return [{name: np.ascontiguousarray(image[None])} for image in images], labels


def _speech(data: Path, *, judged: bool) -> tuple[list[Sample], Array]:
    with np.load(data / "kws01_1000.npz") as stored:
        features = ((stored["x"].astype(np.float32) - 83) * np.float32(0.584703))
        labels = stored["y"].astype(np.int64)
    chosen = np.arange(len(labels)) % 10 == 0
    chosen = ~chosen if judged else chosen
    samples = [{"input_1": each.reshape(1, 49, 10, 1)} for each in features[chosen]]
    return samples, labels[chosen]


def _pictures(folder: Path) -> Iterator[tuple[Sample, int]]:
    from PIL import Image

    for path in sorted(folder.glob("*.jpg")):
        pixels = np.asarray(Image.open(path).convert("RGB"), np.float32)[16:240, 16:240] / 255
        image = ((pixels - np.array(MEAN)) / np.array(STD)).astype(np.float32).transpose(2, 0, 1)
        yield {"input": np.ascontiguousarray(image[None])}, int(path.name.split("_")[0])


def _sentences(data: Path, prefix: str) -> list[Sample]:
    with np.load(data / "minilm_l3_encoder_io.npz") as stored:
        pairs = zip(stored[f"{prefix}emb"], stored[f"{prefix}mask"], strict=True)
        return [{"embeddings": one[None], "mask": other[None]} for one, other in pairs]


CASES = (
    Case("pretrainedResnet.tflite",
         lambda data: _cifar(data, "cifar10_calib128_train.npz", "input_1", normalized=False)[0],
         lambda data: _cifar(data, "cifar10_test_1000.npz", "input_1", normalized=False)),
    Case("resnet20_cifar10_float.onnx",
         lambda data: _cifar(data, "cifar10_calib128_train.npz", "input", normalized=True)[0],
         lambda data: _cifar(data, "cifar10_test_1000.npz", "input", normalized=True)),
    Case("kws_ref_model_float32.tflite", lambda data: _speech(data, judged=False)[0],
         lambda data: _speech(data, judged=True)),
    Case("mobilenet_v2_torchvision_float.onnx",
         lambda data: [sample for sample, _ in _pictures(data / "imagenet_calib32")],
         lambda data: _labelled(_pictures(data / "imagenet_100"))),
    Case("minilm_l3_encoder_float.onnx", lambda data: _sentences(data, "calib_"),
         lambda data: (_sentences(data, ""), None)),
)


def _labelled(pairs: Iterator[tuple[Sample, int]]) -> tuple[list[Sample], Array]:
    samples, labels = zip(*pairs, strict=True)
    return list(samples), np.array(labels)


def scores(case: Case, outputs: list[Array], labels: Array | None, samples: list[Sample]) -> float:
    """Right answers: of a classifier in percent, of sentences those whose nearest neighbour is
    their paraphrase."""
    if labels is not None:
        return 100 * float(np.mean([np.argmax(each) == label
                                    for each, label in zip(outputs, labels, strict=True)]))
    vectors = []
    for each, sample in zip(outputs, samples, strict=True):
        kept = (sample["mask"].reshape(-1) >= -1).astype(np.float32)
        mean = (each[0] * kept[:, None]).sum(axis=0) / kept.sum()
        vectors.append(mean / np.linalg.norm(mean))
    alike = np.array(vectors) @ np.array(vectors).T - 2 * np.eye(len(vectors))
    count = len(vectors) // 2 * 2 - 2           # the last two are not a pair
    return float(sum(int(np.argmax(alike[each])) == each ^ 1 for each in range(count)))


def session(path: Path) -> Callable[[Sample], Array]:
    """ONNX Runtime without optimizations, which computes what the file says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    opened = onnxruntime.InferenceSession(str(path), options)
    return lambda sample: opened.run(None, sample)[0]


def by_onnxruntime(path: Path, target: Path, samples: list[Sample], method: str) -> None:
    """The same samples for ONNX Runtime's static quantization."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):            # type: ignore[misc]
        def __init__(self) -> None:
            self.left = iter(samples)

        def get_next(self) -> Sample | None:
            return next(self.left, None)

    with redirect_stdout(sys.stderr):           # it talks
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


def measure_case(case: Case, models: Path, config: str, judged: int) -> Iterator[dict[str, Any]]:
    path, data = models / "models" / case.file, models / "data"
    calibration = case.calibration(data)
    samples, labels = case.judged(data)
    samples, labels = samples[:judged], None if labels is None else labels[:judged]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = float_file(path, folder)
        reference = session(source)
        right = [reference(sample) for sample in samples]
        float_score = scores(case, right, labels, samples)

        def row(tool: str, outputs: list[Array], **more: Any) -> dict[str, Any]:
            errors = Errors()
            for one, other in zip(right, outputs, strict=True):
                errors.add(one, other)
            return {"model": case.file, "tool": tool, "samples": len(samples),
                    "float": float_score, "score": scores(case, outputs, labels, samples),
                    "sqnr": errors.decibels, **more}

        found = microtron.quantize(path, calibration)
        target = folder / "microtron.onnx"
        found.save(target)
        integer = IntegerModel(found.graph)
        output = found.graph.outputs[0]
        mine = [integer.run(sample)[output] for sample in samples]
        theirs = session(target)
        same = [float(np.abs(theirs(sample) - got).max())
                for sample, got in zip(samples[:8], mine, strict=False)]
        placement = place(found.graph, config, lambda doing: None)
        yield row("microtron", mine, worst_difference_to_onnxruntime=max(same),
                  used=[step[0] for step in found.report.techniques if step[3]],
                  **placement.to_dict())
        for method in ("MinMax", "Entropy"):
            other = folder / f"{method}.onnx"
            by_onnxruntime(source, other, calibration, method)
            run = session(other)
            yield row(f"onnxruntime {method}", [run(sample) for sample in samples])


def measure(arguments: argparse.Namespace) -> Outcome:
    models = model_folder()
    known = [case.file for case in CASES]
    for name in arguments.models:
        if name not in known:
            raise microtron.MicrotronError(f"there is no model {name!r} with data; there are "
                                           f"{', '.join(known)}")
    chosen = [case for case in CASES if not arguments.models or case.file in arguments.models]
    rows: list[dict[str, Any]] = []
    if models is None:
        print("there is no folder ../shared/models, and nothing to measure", file=sys.stderr)
    for case in chosen if models is not None else ():
        print(f"{case.file} …", file=sys.stderr)
        assert models is not None
        for row in measure_case(case, models, arguments.config, arguments.judged):
            print(f"  {row['tool']}: float {row['float']:.1f}, int8 {row['score']:.1f}, "
                  f"SQNR {row['sqnr']:.1f} dB", file=sys.stderr)
            rows.append(row)
    return Outcome(
        benchmark="quantization", title="Quantized models, judged on data they have not seen",
        columns=(Column("model", "model"), Column("tool", "tool"),
                 Column("float", "float", lambda value: f"{value:.1f}"),
                 Column("score", "int8", lambda value: f"{value:.1f}"),
                 Column("sqnr", "SQNR dB", lambda value: f"{value:.1f}")),
        rows=rows, facts={"config": arguments.config},
        details=tuple(f"{each['model']}: {each['accelerator_percent']:.1f} % of MACs on the "
                      f"accelerator, {each['handovers']} hand-overs, {each['cycles']:,} cycles"
                      for each in rows if each["tool"] == "microtron"))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", help="files of ../shared/models; all unless given")
    parser.add_argument("--config", default="base")
    parser.add_argument("--judged", type=int, default=JUDGED, help="samples that are judged")


if __name__ == "__main__":
    main(measure, __doc__ or "", options)
