"""A build from its plan to its folder: what will be done, doing it, and what there is then."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ...base.atomic_files import write_together
from ...base.checked_values import PlainData, quote
from ...base.errors import MicrotronError
from ...base.progress import print_note
from ...isa.config import Config
from ..facts.board import Board
from ..facts.errors import BoardError
from ..facts.fit import check_fits
from .estimate import Estimate, estimate_build
from .flow import Build, Flow, flow_of
from .report import ChosenClock, read_nextpnr_report, summarize
from .steps import Command, Step
from .tools import explain_missing

REPORT, DRIVER, LOAD, REGISTERS = "report.json", "device.json", "load.sh", "registers.h"
WRITTEN = (REPORT, DRIVER, REGISTERS, LOAD)         # when all steps are done
DONE = "done already"


@dataclass(frozen=True, kw_only=True)
class Plan:
    board: Board
    config: Config
    config_name: str
    flow: Flow
    build: Build


def make_plan(board: Board, config: Config, config_name: str, flow_name: str = "") -> Plan:
    """What building a configuration for a board takes; refused if it cannot fit. A board with a
    Zynq has a flow of Vivado's beside its own."""
    flows = (board.flow, "vivado") if board.flow == "zynq" else (board.flow,)
    if flow_name and flow_name not in flows:
        raise BoardError(f"{board.name} is not built with {quote(flow_name)}, but with "
                         f"{' or '.join(flows)}")
    board = replace(board, flow=flow_name or board.flow)
    check_fits(board, config)
    flow = flow_of(board)
    return Plan(board=board, config=config, config_name=config_name, flow=flow,
                build=flow.plan(board, config))


def outline(plan: Plan, folder: Path) -> list[PlainData]:
    """The steps, each with what it makes from what, and whether it is done already or cannot be."""
    known, found = True, []
    for step in plan.build.steps:
        state = _state(step, folder) if known else ""
        known = state == DONE
        found.append({"name": step.name, "doing": step.doing, "work": str(step.work),
                      "inputs": list(step.inputs), "outputs": list(step.outputs), "state": state})
    return found


def describe(plan: Plan, folder: Path, seeds: int = 1) -> list[str]:
    """The same as text: the folder, and two lines for each step."""
    steps, lines = outline(plan, folder), [f"in {folder}:"]
    for number, step in enumerate(steps, 1):
        made = f"{', '.join(step['inputs']) or 'nothing'} → {', '.join(step['outputs'])}"
        lines += [f"{number}. {step['name']}: {step['work']}",
                  f"     {made}{f' ({each})' if (each := step['state']) else ''}"]
    lines.append(f"{len(steps) + 1}. write {', '.join(WRITTEN[:-1])} and {WRITTEN[-1]}")
    if seeds > 1:
        lines.append(f"with {seeds} seeds of nextpnr; the fastest is kept")
    expected = expect(plan, seeds)
    return [*lines, f"expected: {expected}"] if expected is not None else lines


def expect(plan: Plan, seeds: int = 1) -> Estimate | None:
    """What the build will take, if something like it was built before."""
    return estimate_build(plan.board, plan.config, plan.build, seeds)


def _state(step: Step, folder: Path) -> str:
    if isinstance(step.work, Command) and (reason := explain_missing(step.work.need)):
        return reason
    if not all((folder / name).is_file() for name in step.inputs):
        return ""
    return DONE if step.cached_folder(folder).exists() else ""


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, before a long step finds out. Asking for permission
    is not enough: root has it for folders that nobody can write."""
    there = next(each for each in (folder, *folder.absolute().parents) if os.path.exists(each))
    if not there.is_dir():
        raise MicrotronError(f"{folder}: {there} is a file, but must be a folder; name another "
                             "with --output")
    try:
        with tempfile.TemporaryFile(dir=there):     # leaves nothing behind
            pass
    except OSError as error:
        raise MicrotronError(f"{folder}: the folder {there} cannot be written: {error.strerror}; "
                             "name another with --output") from None


def build(plan: Plan, folder: Path, also: PlainData | None = None) -> dict[str, object]:
    """Run every step that has not been run, and gather what there is to say about the product;
    `also` stands in its report."""
    check_folder(folder)
    for need in plan.flow.needs(plan.board):
        if reason := explain_missing(need):
            raise MicrotronError(f"{plan.board.name}: {reason}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MicrotronError(f"{folder}: cannot be made: {error.strerror}") from None
    expected = expect(plan)
    if expected is not None:
        print_note(f"expected: {expected}")
    steps = plan.build.steps
    spent = {step.name: step.run(folder, number, len(steps))
             for number, step in enumerate(steps, 1)}
    placed = None
    if plan.build.timing is not None:
        features = folder / plan.build.features if plan.build.features else None
        target = None if plan.build.chosen else plan.board.clock.system_hz / 1e6
        placed = read_nextpnr_report(folder / plan.build.timing, plan.flow.name, plan.build.clock,
                                     features, target)
    chosen = _chosen_clock(plan, folder)
    found = {**summarize(plan.board, plan.config, plan.config_name, placed, spent, chosen),
             **(also or {})}
    _write_descriptions(plan, folder, found, chosen)
    return found


def _chosen_clock(plan: Plan, folder: Path) -> ChosenClock | None:
    """The accelerator's clock, where a step of the build has chosen it."""
    if not plan.build.chosen:
        return None
    return ChosenClock(**json.loads((folder / plan.build.chosen).read_text(encoding="utf-8")))


def _write_descriptions(plan: Plan, folder: Path, found: dict[str, object],
                        chosen: ChosenClock | None) -> None:
    from ...isa.c_header import c_header

    board = plan.board
    driver = {"board": board.name, "config": plan.config.to_dict(), "digest": plan.config.digest,
              "clock_hz": board.clock.system_hz, "memory_bytes": board.memory.bytes,
              "accelerator_hz": chosen.hz if chosen else board.clock.system_hz,
              "product": plan.build.product, **_addresses(plan, folder), **plan.build.facts}
    load = ("#!/bin/sh\n"
            f"# Loads the {board.title}.\n"
            "cd \"$(dirname \"$0\")\"\n"
            f"exec {load_command(plan)}\n")
    write_together({folder / REPORT: _json(found), folder / DRIVER: _json(driver),
                    folder / LOAD: load.encode(), folder / REGISTERS: c_header().encode()})
    (folder / LOAD).chmod(0o755)


def _addresses(plan: Plan, folder: Path) -> dict[str, int]:
    """Where a system has the accelerator's registers and memory, as the step that wrote it says.
    Systems of a hard processor are among the flow's own facts."""
    if not plan.build.system:
        return {}
    places = json.loads((folder / plan.build.system).read_text(encoding="utf-8"))["memories"]
    return {"registers": places["registers"]["base"], "memory": places["main_ram"]["base"]}


def load_command(plan: Plan) -> str:
    """All else in braces is the shell's: ${HOME}."""
    return plan.board.load.replace("{bitstream}", plan.build.loads or plan.build.product)


def _json(value: dict[str, object]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
