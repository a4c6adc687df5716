"""Builds bitstreams for boards, one of each flow's, and writes their table in docs/boards.md.

The builds go to build/, and go on where they were if they are stopped; what they came to is kept in
docs/boards.json, from which the table is made. Latency is that of the accelerator's programs, from
the exact simulator with the board's memory and clock; what the CPU computes comes on top.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from microtron import __version__, simulated_cost
from microtron.base.atomic_files import write_atomically
from microtron.base.checked_values import PlainData
from microtron.base.errors import MicrotronError
from microtron.boards.build.plan import REPORT, Plan, expect, make_plan
from microtron.boards.build.seeds import build_with_seeds
from microtron.boards.facts.board import Board
from microtron.boards.facts.catalogue import find_board as known
from microtron.boards.facts.speed import speed_of
from microtron.isa.config import Config
from microtron.isa.config_files import load_config
from microtron.isa.program import Program
from microtron.isa.stream import as_bytes
from microtron.runtime.models.compilation import ModelOptions, compile_model
from microtron.sim.simulate import simulate

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "boards.md", ROOT / "docs" / "boards.json"
BOARDS = ("ecpix5n", "ecpix5", "ulx3s", "pynq_z2", "zybo_z7_10", "tang_nano_20k")
BEGIN, END = "<!-- table: make boards -->\n", "<!-- end of the table -->"
# Networks, and their files where they are no generated ones.
NETWORKS = {"ResNet-18": None, "ResNet-8": "pretrainedResnet_quant.tflite",
            "VWW": "vww_96_int8.tflite", "KWS": "kws_ref_model.tflite", "AD": "ad01_int8.tflite"}
HEAD = ("board", "config", "LUT", "registers", "DSP", "BRAM", "MHz", "build, CPU s", "peak GOPS",
        *(f"{name}, ms" for name in NETWORKS))


def report_of(request: str, seeds: int = 1) -> PlainData:
    """The report of a build that is in a folder, or of one that is made now: BOARD[:CONFIG]."""
    made = Path(request)
    if made.is_dir():
        found: PlainData = json.loads((made / REPORT).read_text())
        return found
    plan = plan_of(request)
    folder = ROOT / "build" / f"{plan.board.name}-{plan.config_name}"
    return build_with_seeds(plan, folder, seeds)


def plan_of(request: str) -> Plan:
    """The build that BOARD[:CONFIG] asks for."""
    name, _, config = request.partition(":")
    board = known(name)
    config = config or board.preset
    return make_plan(board, load_config(config), config)


def outlook(requests: Sequence[str], seeds: int = 1) -> str:
    """What builds will take, one a line, and all together."""
    lines, seconds = [], 0.0
    for request in requests:
        plan = plan_of(request)
        expected = expect(plan, seeds)
        seconds += expected.processor_seconds if expected else 0
        lines.append(f"{plan.board.name} with {plan.config_name}: {expected or 'not known'}")
    return "\n".join((*lines, f"all: about {round(seconds / 60):,} processor minutes"))


def row(found: PlainData) -> PlainData:
    """What is kept of a report, with the latencies of networks."""
    kept = ("board", "config", "mhz", "target_mhz", "used", "processor_seconds", "peak_gops")
    board, config = known(found["board"]), load_config(found["config"])
    several = {"seeds": len(found["seeds"]),
               "median_mhz": found["median_mhz"]} if "seeds" in found else {}
    return {**{key: found[key] for key in kept}, **several,
            "milliseconds": latencies(board, config)}


def latencies(board: Board, config: Config) -> dict[str, float]:
    """Milliseconds of each network that there is and that memory holds; none if it was not
    measured."""
    timing = board.memory.timing
    if timing is None:
        return {}
    speed, times = speed_of(board, config), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in network_files(Path(folder)).items():
            options = ModelOptions(memory=timing, cost=simulated_cost(timing))
            model = compile_model(path, config, options, version=__version__)
            if max(size_of(program) for program in model.programs) > board.memory.bytes:
                continue
            cycles = sum(simulate(program, memory=timing).cycles or 0
                         for program in model.programs)
            times[name] = round(speed.milliseconds(cycles), 3)
    return times


def size_of(program: Program) -> int:
    """Bytes of a program and its data."""
    return as_bytes(program.code).nbytes + sum(each.size for each in program.segments)


def network_files(folder: Path) -> dict[str, Path]:
    """ResNet-18 with random weights, and the models of MLPerf Tiny in $MICROTRON_MODELS."""
    sys.path.append(str(ROOT / "benchmarks"))
    from models.catalogue import MODELS

    MODELS["resnet18"](folder / "resnet18.onnx")
    found = {"ResNet-18": folder / "resnet18.onnx"}
    place = os.environ.get("MICROTRON_MODELS")
    for name, file in NETWORKS.items():
        if place and file and (Path(place) / "models" / file).exists():
            found[name] = Path(place) / "models" / file
    return found


def table(results: dict[str, PlainData]) -> str:
    """The results as Markdown."""
    rows = [HEAD, tuple("---" for _ in HEAD)]
    for each in results.values():
        used = each["used"]
        rows.append((
            each["board"], f"`{each['config']}`",
            *(f"{used.get(kind, 0):,g}" for kind in ("lut", "register", "dsp", "bram")),
            clock_text(each),
            f"{each['processor_seconds']:,.0f}", f"{each['peak_gops']:.1f}",
            *(f"{each['milliseconds'][name]:,.2f}" if name in each["milliseconds"] else "–"
              for name in NETWORKS)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def clock_text(found: PlainData) -> str:
    """What was reached, what the board runs at, and how far chance goes."""
    said = f"{found['mhz']:.1f} (runs at {round(found['target_mhz'], 1):g})"
    return (f"{said}; median of {found['seeds']} seeds {found['median_mhz']:.1f}"
            if "seeds" in found else said)


def with_table(page: str, results: dict[str, PlainData]) -> str:
    """The page with its table replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise MicrotronError(f"{PAGE}: there is no place for the table")
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boards", nargs="*", metavar="BOARD[:CONFIG]",
                        help=f"boards to build (default: {' '.join(BOARDS)}), or folders of builds "
                             "that were made")
    parser.add_argument("--dry-run", action="store_true",
                        help="say what would be built and what it will take, and stop")
    parser.add_argument("--seeds", type=int, default=1, metavar="N",
                        help="place and route with so many seeds, and keep the fastest")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    try:
        if options.dry_run:
            print(outlook(options.boards or BOARDS, options.seeds))
            return 0
        for request in options.boards or BOARDS:
            found = report_of(request, options.seeds)
            results[found["board"]] = row(found)
            write_atomically(RESULTS, (json.dumps(results, indent=1) + "\n").encode())
            write_atomically(PAGE, with_table(PAGE.read_text(), results).encode())
    except MicrotronError as error:
        print(f"boards: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
