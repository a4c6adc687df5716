"""The HTML report: seconds to write it beside those to simulate, its size, and how long the page
takes to redraw a timeline of a million events, in headless Chromium."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from common import Column, Outcome, Row, best_of, main

import microtron
from microtron.isa.config import PRESETS
from microtron.isa.instructions import (
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode, encode_micro_ops
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.report.save_report import inspect_source, write_report
from microtron.runtime.models.compiled_model import CompiledModel
from microtron.testing.browser import find_chromium, open_browser

MOBILENET = "mobilenet_v2_torchvision_qdq_s8s8.onnx"
VIEWS = 120                 # redraws that are timed, from the whole run to a few cycles
# Redraws at random places of ever higher zoom. Reading a pixel waits until all is drawn.
REDRAWS = f"""(() => {{
  const timeline = report.timelines[0], times = [];
  const context = timeline.canvas.getContext("2d");
  const total = timeline.events.cycles;
  for (let i = 0; i < {VIEWS}; i++) {{
    const span = total * (16 / total) ** (i / {VIEWS - 1});
    const start = (total - span) * (i * 0.618 % 1);
    const before = performance.now();
    timeline.show(start, start + span);
    context.getImageData(0, 0, 1, 1);
    times.push(performance.now() - before);
  }}
  return times;
}})()"""


def measure(options: argparse.Namespace) -> Outcome:
    model = options.models / MOBILENET
    sources: dict[str, CompiledModel | Program] = {
        "digits": microtron.compile("examples/digits/digits.onnx", "base")}
    if model.exists():
        sources["MobileNetV2"] = microtron.compile(model, "base")
    sources[f"{options.events:,} events"] = long_program(options.events)
    return Outcome(
        benchmark="report", title="The report of microtron report", columns=(
            Column("run", "run"), Column("instructions", "instructions", "{:,}".format),
            Column("simulation", "simulate s", "{:.3f}".format),
            Column("writing", "write s", "{:.3f}".format),
            Column("bytes", "bytes", "{:,}".format), Column("opening", "open s", _optional),
            Column("median", "redraw ms, median", _optional), Column("worst", "worst", _optional)),
        rows=[measure_one(name, each) for name, each in sources.items()],
        facts={"views": VIEWS, "chromium": find_chromium() or "absent"})


def _optional(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def measure_one(name: str, source: CompiledModel | Program) -> Row:
    """A line of the table."""
    programs = source.programs if isinstance(source, CompiledModel) else (source,)
    simulation, _ = best_of(lambda: [microtron.simulate(each) for each in programs])
    found = inspect_source(source, name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        writing, _ = best_of(lambda: write_report({name: found}, path))
        row = {"run": name, "instructions": sum(len(each.code) for each in programs),
               "simulation": simulation, "writing": writing, "bytes": path.stat().st_size,
               "opening": None, "median": None, "worst": None}
        if find_chromium() is not None:
            row |= _look(path)
    return row


def _look(path: Path) -> dict[str, float]:
    """Open a report, and draw its timeline again and again."""
    with open_browser() as browser:
        def open_page() -> None:
            browser.open(path)
            browser.wait_for("typeof report !== 'undefined' && report.ready")
        opening, _ = best_of(open_page, 1)
        times = browser.evaluate(REDRAWS)
    return {"opening": opening, "median": statistics.median(times), "worst": max(times)}


def long_program(length: int) -> Program:
    """So many instructions: load, gemm, requantize and store in turns, on two halves."""
    config = PRESETS["tiny"]
    turn = [[Load(buffer=Buffer.INP, segment=1, sram=half),
             Gemm(flags=GemmFlags.START, uop=half), Requantize(dst=half, src=half, params=2),
             Store(buffer=Buffer.OUT, segment=2, sram=half, offset=64 * half)] for half in (0, 1)]
    micro_ops = encode_micro_ops([MicroOp(dst=half, src=half, wgt=0) for half in (0, 1)])
    pattern = encode([each for half in turn for each in half])
    start = encode([Load(buffer=Buffer.UOP, segment=0, shape=(1, 1, 2)),
                    Load(buffer=Buffer.WGT, segment=1), Load(buffer=Buffer.ACC, segment=1, sram=2,
                                                             shape=(1, 1, 3))])
    repeats = np.tile(pattern, max(1, (length - 4) // len(pattern)))
    code = np.concatenate([start, repeats, encode([Sync()])])
    data = np.frombuffer(micro_ops.tobytes(), np.uint8)
    return with_tokens(Program(config, code, (
        Segment("micro_ops", len(data), Access.READ, data), Segment("data", 4096),
        Segment("results", 4096, Access.WRITE))))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000,
                        help="instructions of the long program")
    parser.add_argument("--models", type=Path, default=Path("../shared/models/models"),
                        help="folder with MobileNetV2")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
