#!/usr/bin/env python3
"""Writes the pictures of docs/report.md: reports in headless Chromium, as PNG of few colours.

    .venv/bin/python tools/report_pictures.py [--models DIR]

The picture of MobileNetV2 is written where the folder of models has it.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

import microtron
from microtron.base.atomic_files import write_atomically
from microtron.report.save_report import Source
from microtron.testing.browser import Browser, open_browser

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
MOBILENET = "mobilenet_v2_torchvision_qdq_s8s8.onnx"
COLOURS = 96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models" / "models")
    models = parser.parse_args().models
    layer = microtron.Conv2d(height=28, width=28, channels_in=32, channels_out=64,
                             pad=(1, 1, 1, 1))
    kernels = {name: microtron.compile_op(layer, "base", hide_latency=hides)
               for name, hides in (("engines take turns", False), ("latency hidden", True))}
    with open_browser() as browser:
        photograph(browser, "report_digits", {"digits": microtron.compile(DIGITS, "base")}, "")
        photograph(browser, "report_comparison", kernels, "", dark=True)
        if (models / MOBILENET).exists():
            model = microtron.compile(models / MOBILENET, "base")
            photograph(browser, "report_mobilenet_v2", {"MobileNetV2": model},
                       "chooseLayer(page.runs[0].layers.findIndex((each) => each.cycles > 150000));"
                       "document.querySelectorAll('.chosen').forEach((each) =>"
                       " each.classList.remove('chosen')); scrollTo(0, 0);"
                       "report.timelines[0].press('n'); report.timelines[0].zoomToSelected();"
                       "report.timelines[0].zoom(24)")


def photograph(browser: Browser, name: str, runs: Mapping[str, Source], prepare: str, *,
               dark: bool = False) -> None:
    """The top of a report as docs/NAME.png."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        microtron.save_report(runs, path)
        browser.open(path, width=1280, height=1180, dark=dark)
        browser.wait_for("typeof report !== 'undefined' && report.ready")
        browser.evaluate(prepare or "0")
        picture = Image.open(io.BytesIO(browser.photograph(width=1280, height=1180)))
    data = io.BytesIO()
    picture.convert("RGB").quantize(COLOURS).save(data, "png", optimize=True)
    target = ROOT / "docs" / f"{name}.png"
    write_atomically(target, data.getvalue())
    print(f"{target}: {len(data.getvalue()):,} bytes")


if __name__ == "__main__":
    main()
