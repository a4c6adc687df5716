"""A build from its plan to its folder: what will be done, doing it, and what there is then."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..isa.atomic import write_together
from ..isa.config import Config
from ..isa.errors import MicrotronError
from ..isa.values import shown
from .board import Board
from .facts import BoardError
from .fit import check_fits
from .flow import Build, Flow, flow_of
from .report import read_placed, summary
from .steps import Command, Step
from .tools import missing

REPORT, DRIVER, LOAD, REGISTERS = "report.json", "device.json", "load.sh", "registers.h"


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
        raise BoardError(f"{board.name} is not built with {shown(flow_name)}, but with "
                         f"{' or '.join(flows)}")
    board = replace(board, flow=flow_name or board.flow)
    flow = flow_of(board)
    if flow is None:
        raise BoardError(f"{board.name}: there is no flow for {board.flow} yet")
    check_fits(board, config)
    return Plan(board=board, config=config, config_name=config_name, flow=flow,
                build=flow.plan(board, config))


def described(plan: Plan, folder: Path) -> list[str]:
    """The plan as text, a line for each step, and which of them are done already."""
    known, lines = True, []
    for number, step in enumerate(plan.build.steps, 1):
        state = _state(step, folder) if known else ""
        known = state == "done already"
        lines.append(f"{number}. {step.name}: {step.work}")
        made = f"{', '.join(step.inputs) or 'nothing'} → {', '.join(step.outputs)}"
        lines.append(f"     {made}{f' ({state})' if state else ''}")
    lines.append(f"{len(plan.build.steps) + 1}. write {REPORT}, {DRIVER}, {REGISTERS} and {LOAD}")
    return lines


def _state(step: Step, folder: Path) -> str:
    if isinstance(step.work, Command) and (reason := missing(step.work.need)):
        return reason
    if not all((folder / name).is_file() for name in step.inputs):
        return ""
    return "done already" if step.kept(folder).exists() else ""


def build(plan: Plan, folder: Path) -> dict[str, Any]:
    """Run every step that has not been run, and gather what there is to say about the product."""
    for need in plan.flow.needs:
        if reason := missing(need):
            raise MicrotronError(f"{plan.board.name}: {reason}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MicrotronError(f"{folder}: cannot be made: {error.strerror}") from None
    steps = plan.build.steps
    spent = {step.name: step.run(folder, number, len(steps))
             for number, step in enumerate(steps, 1)}
    placed = None
    if plan.build.timing is not None:
        features = folder / plan.build.features if plan.build.features else None
        placed = read_placed(folder / plan.build.timing, plan.flow.name, plan.build.clock, features)
    found = summary(plan.board, plan.config, plan.config_name, placed, spent)
    _describe(plan, folder, found)
    return found


def _describe(plan: Plan, folder: Path, found: dict[str, Any]) -> None:
    from ..isa.header import c_header

    board = plan.board
    driver = {"board": board.name, "config": plan.config.to_dict(), "digest": plan.config.digest,
              "clock_hz": board.clock.system_hz, "memory_bytes": board.memory.bytes,
              "product": plan.build.product, **plan.build.facts}
    load = ("#!/bin/sh\n"
            f"# Loads the {board.title}.\n"
            "cd \"$(dirname \"$0\")\"\n"
            f"exec {load_command(plan)}\n")
    write_together({folder / REPORT: _json(found), folder / DRIVER: _json(driver),
                    folder / LOAD: load.encode(), folder / REGISTERS: c_header().encode()})
    (folder / LOAD).chmod(0o755)


def load_command(plan: Plan) -> str:
    return plan.board.load.format(bitstream=plan.build.loads or plan.build.product)


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
