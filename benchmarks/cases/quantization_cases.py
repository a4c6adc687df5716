"""Float models with data: samples to quantize them with, others to judge them on, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import microtron
from microtron.base.arrays import Array

Sample = dict[str, Array]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PARTS = 10                      # that data are cut into which are one set
SINGLE = (8, 15)                # sentences of sentences.txt without a paraphrase after them


def model_folder() -> Path | None:
    """shared/models beside the repository or above."""
    places = [each / "shared" / "models" for each in Path(__file__).resolve().parents]
    return next((place for place in places if (place / "MANIFEST.md").exists()), None)


@dataclass(frozen=True)
class Case:
    """A model, its samples for calibration, those for judging it with what is right, and how it is
    judged."""

    file: str
    calibration: Callable[[Path, int], list[Sample]]        # the second says which part of data
    judged: Callable[[Path, int], tuple[list[Sample], Array | None]]        # that are one set
    score: Callable[[list[Array], list[Sample], Array | None], float]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)    # of inputs without any


def _cifar(data: Path, file: str, name: str, *, normalized: bool) -> tuple[list[Sample], Array]:
    with np.load(data / file) as stored:
        images, labels = stored["x"].astype(np.float32), stored["y"].astype(np.int64)
    if normalized:
        images = ((images / 255 - np.array(MEAN)) / np.array(STD)).astype(np.float32)
        images = images.transpose(0, 3, 1, 2)
    return [{name: np.ascontiguousarray(image[None])} for image in images], labels


def _speech(data: Path, part: int, *, judged: bool) -> tuple[list[Sample], Array]:
    """One set of data: a tenth of it for calibration, the rest to judge."""
    with np.load(data / "kws01_1000.npz") as stored:
        features = ((stored["x"].astype(np.float32) - 83) * np.float32(0.584703))
        labels = stored["y"].astype(np.int64)
    chosen = np.arange(len(labels)) % PARTS == part
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


def _split_labels(pairs: Iterator[tuple[Sample, int]]) -> tuple[list[Sample], Array]:
    samples, labels = zip(*pairs, strict=True)
    return list(samples), np.array(labels)


def top1(outputs: list[Array], samples: list[Sample], labels: Array | None) -> float:
    """Outputs with the right maximum, in percent."""
    assert labels is not None
    return 100 * float(np.mean([np.argmax(each) == label
                                for each, label in zip(outputs, labels, strict=True)]))


def count_boxes(outputs: list[Array], samples: list[Sample], labels: Array | None) -> float:
    """Detections of a YOLO, (1, 4 + classes, places), that are as the float model's in `labels`, in
    percent: of the most certain one of each picture, the class is the same, and the boxes have
    half of their union in common."""
    assert labels is not None
    return 100 * float(np.mean([_is_same_detection(each[0], right[0])
                                for each, right in zip(outputs, labels, strict=True)]))


def _is_same_detection(found: Array, right: Array) -> bool:
    best = [np.unravel_index(np.argmax(each[4:]), each[4:].shape) for each in (found, right)]
    (x, y, width, height), (other_x, other_y, other_width, other_height) = (
        each[:4, place].astype(np.float64) for each, (_, place) in zip((found, right), best,
                                                                     strict=True))
    shared = [max(0.0, min(one + size / 2, other + other_size / 2)
                  - max(one - size / 2, other - other_size / 2))
              for one, size, other, other_size in ((x, width, other_x, other_width),
                                                   (y, height, other_y, other_height))]
    both = shared[0] * shared[1]
    union = width * height + other_width * other_height - both
    return bool(best[0][0] == best[1][0] and both >= union / 2)


def _pairs() -> Iterator[tuple[int, int]]:
    """Neighbours that say the same, of the sentences that have one."""
    left = [each for each in range(24) if each not in SINGLE]
    return zip(left[::2], left[1::2], strict=True)


def count_pairs(outputs: list[Array], samples: list[Sample], labels: Array | None) -> float:
    """Pairs of sentences that are nearest to each other, in percent."""
    vectors = []
    for each, sample in zip(outputs, samples, strict=True):
        kept = (sample["mask"].reshape(-1) >= -1).astype(np.float32)
        mean = (each[0] * kept[:, None]).sum(axis=0) / kept.sum()
        vectors.append(mean / np.linalg.norm(mean))
    alike = np.array(vectors) @ np.array(vectors).T - 2 * np.eye(len(vectors))
    nearest = np.argmax(alike, axis=1)
    return 100 * float(np.mean([nearest[one] == other and nearest[other] == one
                                for one, other in _pairs() if max(one, other) < len(vectors)]))


CASES = (
    Case("pretrainedResnet.tflite",
         lambda data, _: _cifar(data, "cifar10_calib128_train.npz", "input_1", normalized=False)[0],
         lambda data, _: _cifar(data, "cifar10_test_1000.npz", "input_1", normalized=False), top1),
    Case("resnet20_cifar10_float.onnx",
         lambda data, _: _cifar(data, "cifar10_calib128_train.npz", "input", normalized=True)[0],
         lambda data, _: _cifar(data, "cifar10_test_1000.npz", "input", normalized=True), top1),
    Case("kws_ref_model_float32.tflite", lambda data, part: _speech(data, part, judged=False)[0],
         lambda data, part: _speech(data, part, judged=True), top1),
    Case("mobilenet_v2_torchvision_float.onnx",
         lambda data, _: [sample for sample, _ in _pictures(data / "imagenet_calib32")],
         lambda data, _: _split_labels(_pictures(data / "imagenet_100")), top1),
    Case("minilm_l3_encoder_float.onnx", lambda data, _: _sentences(data, "calib_"),
         lambda data, _: (_sentences(data, ""), None), count_pairs),
)


def _inputs(path: str) -> list[str]:
    if path.endswith(".tflite"):
        return list(microtron.read_model(path).inputs)
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    known = {each.name for each in graph.initializer}
    return [each.name for each in graph.input if each.name not in known]


def given_case(path: str, preprocess: str, *, boxes: bool) -> Case:
    """A file that is not of ../shared/models, with the pictures there: one that classifies, or one
    that gives boxes."""
    from microtron.quantization.calibration.images import image_folder

    def pictures(folder: Path) -> list[Sample]:
        return [{name: image} for image in image_folder(folder, preprocess)]

    inputs = _inputs(path)
    if len(inputs) != 1:
        raise microtron.MicrotronError(f"{path} has the inputs {', '.join(inputs)}, but a file "
                                       f"that is given by its path must have one")
    [name] = inputs
    models = model_folder()
    shapes = {} if models is None or path.endswith(".tflite") else {
        name: next(iter(image_folder(models / "data" / "imagenet_calib32", preprocess))).shape}
    return Case(path, lambda data, _: pictures(data / "imagenet_calib32"),
                lambda data, _: (pictures(data / "imagenet_100"), None),
                count_boxes if boxes else top1, shapes)
