#!/usr/bin/env python3
"""Writes the pictures of docs/report.md: reports in headless Chromium, as PNG of few colours.

    .venv/bin/python tools/report_pictures.py [--models DIR] [--output DIR]

The picture of MobileNetV2 is written where the folder of models has it. A report that logs an error
has none.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

import microtron
from microtron.base.atomic_files import write_atomically
from microtron.base.errors import MicrotronError
from microtron.cli.explore.codesign import ask
from microtron.cli.explore.front_report import write_front_report
from microtron.explore.codesign.codesign_search import Exploration, finish, measure, search
from microtron.explore.records import Records
from microtron.report.save_report import Source
from microtron.testing.browser import Browser, open_browser

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
MOBILENET = "mobilenet_v2_torchvision_qdq_s8s8.onnx"
COLOURS = 96
BOARD, TRIALS, FINALISTS, BASELINE = "ulx3s", 64, 12, "tiny"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models" / "models")
    parser.add_argument("--output", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    models = options.models
    layer = microtron.Conv2d(height=28, width=28, channels_in=32, channels_out=64,
                             pad=(1, 1, 1, 1))
    kernels = {name: microtron.compile_op(layer, "base", hide_latency=hides)
               for name, hides in (("engines take turns", False), ("latency hidden", True))}
    with open_browser() as browser:
        camera = Camera(browser, options.output)
        camera.photograph_runs("report_digits", {"digits": microtron.compile(DIGITS, "base")}, "")
        camera.photograph_runs("report_comparison", kernels, "", dark=True)
        camera.photograph_search("report_pareto")
        if (models / MOBILENET).exists():
            model = microtron.compile(models / MOBILENET, "base")
            camera.photograph_runs(
                "report_mobilenet_v2", {"MobileNetV2": model},
                "chooseLayer(page.runs[0].layers.findIndex((each) => each.cycles > 150000));"
                "document.querySelectorAll('.chosen').forEach((each) =>"
                " each.classList.remove('chosen')); scrollTo(0, 0);"
                "report.timelines[0].press('n'); report.timelines[0].zoomToSelected();"
                "report.timelines[0].zoom(24)")


@dataclass(frozen=True)
class Camera:
    """Takes pictures of reports, and puts them into a folder."""

    browser: Browser
    folder: Path

    def photograph_runs(self, name: str, runs: Mapping[str, Source], prepare: str, *,
                        dark: bool = False) -> None:
        """The top of a report on runs."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            microtron.save_report(runs, path)
            self.photograph(name, path, prepare, dark=dark)

    def photograph_search(self, name: str) -> None:
        """The top of a report on a search of configurations."""
        question = ask([DIGITS], BOARD)
        found, preset = Exploration(question), microtron.PRESETS[BASELINE]
        with tempfile.TemporaryDirectory() as folder:
            with Records(Path(folder) / "search.records") as records:
                before = measure(Exploration(question), preset, records)
                search(found, trials=TRIALS)
                finish(found, records, finalists=FINALISTS)
            path = Path(folder) / "report.html"
            write_front_report(path, [DIGITS], found, (BASELINE, before), silent=True)
            self.photograph(name, path, "")

    def photograph(self, name: str, path: Path, prepare: str, *, dark: bool = False) -> None:
        """The top of a page as NAME.png."""
        browser = self.browser
        browser.open(path, width=1280, height=1180, dark=dark)
        browser.wait_for("typeof report !== 'undefined' && report.ready")
        browser.evaluate(prepare or "0")
        picture = Image.open(io.BytesIO(browser.photograph(width=1280, height=1180)))
        if browser.errors:
            raise MicrotronError(f"{name}: the page logged {browser.errors[0]}")
        data = io.BytesIO()
        few = picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
        few.save(data, "png", optimize=True)
        target = self.folder / f"{name}.png"
        write_atomically(target, data.getvalue())
        print(f"{target}: {len(data.getvalue()):,} bytes")


if __name__ == "__main__":
    main()
