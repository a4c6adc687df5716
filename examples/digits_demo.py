"""Quantizes a trained network, compiles it, runs it cycle by cycle on digits it has never seen, and
shows what happened.

    python examples/digits_demo.py --config small --digits 20

examples/digits/train.py trained the network; nothing is downloaded here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import microtron
from microtron import MicrotronError, Model, QuantizedModel

FOLDER = Path(__file__).resolve().parent / "digits"
MODEL, SAMPLES = FOLDER / "digits_float.onnx", FOLDER / "digits_samples.npz"
TEST = FOLDER / "digits_test.npz"
SHOWN = 4                   # digits, as pictures
SHADES = " .:-=+*#%@"
MEGAHERTZ = 100             # of some clock, so that cycles become a time
INTERVAL = 2                # seconds from one line about progress to the next

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What the network made of some digits."""

    guesses: Array
    labels: Array
    cycles: int             # of one inference; all take the same
    utilization: float
    seconds: float          # of this machine, for all

    @property
    def right(self) -> int:
        return int((self.guesses == self.labels).sum())

    @property
    def accuracy(self) -> float:
        return self.right / len(self.labels)


def digits(count: int) -> tuple[list[Array], Array]:
    """Images that the network was not trained on, as it takes them, and what they show."""
    with np.load(TEST) as data:
        images, labels = data["images"], data["labels"]
    if not 1 <= count <= len(images):
        raise MicrotronError(f"--digits is {count}, but must be from 1 to {len(images)}")
    return [image.astype(np.float32)[None, None] for image in images[:count]], labels[:count]


def quantize(progress: Callable[[str], None] | None = None) -> QuantizedModel:
    """The trained network in int8, by digits that it was trained on."""
    return microtron.quantize(MODEL, SAMPLES, progress=progress)


def classify(model: Model, images: list[Array], labels: Array, device: str) -> Outcome:
    """Run every image, CPU and accelerator side by side."""
    start = time.perf_counter()
    print(f"digits_demo: running {len(images)} digits on the {device} device", file=sys.stderr)
    results = model.run_many(images, device)
    seconds = time.perf_counter() - start
    guesses = np.array([result.real().argmax() for result in results])
    return Outcome(guesses, labels, results[0].cycles or 0, results[0].utilization or 0.0, seconds)


def picture(image: Array) -> list[str]:
    """A digit in characters."""
    levels = (image[0, 0] / 16 * (len(SHADES) - 1)).round().astype(int)
    return ["".join(SHADES[level] * 2 for level in row) for row in levels]


def show_some(images: list[Array], outcome: Outcome) -> None:
    """The first digits, side by side, with what the network says."""
    for lines in zip(*map(picture, images[:SHOWN]), strict=True):
        print("  ".join(lines))
    print("  ".join(f"{f'{guess}, right: {label}':<16}" for guess, label in zip(
        outcome.guesses[:SHOWN], outcome.labels[:SHOWN], strict=True)))


class Progress:
    """Says what is being done, at most every two seconds."""

    def __init__(self) -> None:
        self.said = time.monotonic()

    def __call__(self, doing: str) -> None:
        if time.monotonic() - self.said > INTERVAL:
            self.said = time.monotonic()
            print(f"digits_demo: {doing}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a trained network on held-out digits.")
    parser.add_argument("--config", default="base", help="a preset or a .toml file")
    parser.add_argument("--digits", type=int, default=360, help="how many of the 360 to run")
    parser.add_argument("--device", default="cycle", help="functional, cycle or rtl")
    parser.add_argument("--report", type=Path, help="HTML file to write, for a browser")
    given = parser.parse_args()
    images, labels = digits(given.digits)
    progress = Progress()
    start = time.perf_counter()
    quantized = quantize(progress)
    between = time.perf_counter()
    model = microtron.compile(quantized.graph, given.config, progress=progress)
    compiled = time.perf_counter() - between
    inspection = microtron.inspect(model)
    microtron.show(inspection, f"{MODEL.name} on {given.config}")
    outcome = classify(model, images, labels, given.device)
    show_some(images, outcome)
    print(f"\nDigits it has not seen: {outcome.right} of {len(labels)} right: "
          f"{outcome.accuracy:.1%}")
    if outcome.cycles:
        print(f"Cycles: {outcome.cycles:,} a digit, exactly those of the hardware: "
              f"{outcome.cycles / MEGAHERTZ:,.0f} µs at {MEGAHERTZ} MHz")
        print(f"Utilization: {outcome.utilization:.1%} of the MAC array while it runs")
    print(f"Quantization: {quantized.report.outputs['scores']:.1f} dB SQNR of the scores in int8")
    print(f"This machine quantized it in {between - start:.1f} s, compiled it in {compiled:.1f} s "
          f"and ran it in {outcome.seconds:.1f} s")
    if given.report:
        microtron.save_report({MODEL.stem: inspection}, given.report)
        print(f"To look at it, open {given.report} in a browser")


if __name__ == "__main__":
    try:
        main()
    except MicrotronError as error:
        raise SystemExit(f"digits_demo: {error}") from None
