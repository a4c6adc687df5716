"""Commands for boards: which there are, and building a bitstream for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.checked_values import PlainData
from .files import AsJson, check_table, say, write_table
from .options import TableFile

if TYPE_CHECKING:
    from ..boards.facts.board import Board

BoardName = Annotated[str, typer.Option(
    "--board", metavar="NAME", help="A board, as `microtron boards` lists them, or a .toml file "
                                    "that describes one.")]


def boards(table: TableFile = None, as_json: AsJson = False) -> None:
    """List the boards, and whether this machine can build for them.

    With part, memory, processor and the largest preset that fits.

    Example: microtron boards
    """
    from ..boards.facts.catalogue import load_boards as known

    check_table(table)
    found = [_facts(board) for board in known()]
    write_table(table, found, silent=as_json)
    if as_json:
        typer.echo(json.dumps({each["name"]: each for each in found}))
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table("board", "part", "memory", "processor", "largest", "here")
    for each in found:
        shown.add_row(each["name"], each["device"], each["memory"], each["cpu"],
                      each["largest_preset"] or "–", "–" if each["missing"] else each["result"])
    Console().print(shown)
    for flow, reason in dict.fromkeys((each["flow"], each["missing"]) for each in found):
        if reason:
            say(f"{flow}: {reason}")


def build(board: BoardName,
          name: Annotated[str, typer.Option(
              "--config", help="A preset or a .toml file. [default: the board's preset]",
          )] = "",
          flow: Annotated[str, typer.Option(
              help="Another flow than the board's own: `vivado` makes a project for Zynq boards.",
          )] = "",
          output: Annotated[Path | None, typer.Option(
              "--output", "-o", metavar="DIR", help="Output folder. [default: "
                                                    "build/BOARD-CONFIG]")] = None,
          seeds: Annotated[int, typer.Option(
              metavar="N", help="Place and route with so many seeds, and keep the fastest.")] = 1,
          dry_run: Annotated[bool, typer.Option(
              "--dry-run", help="Only print the steps.")] = False,
          table: TableFile = None,
          as_json: AsJson = False) -> None:
    """Build a bitstream for a board.

    The folder then holds the bitstream, a report of clock and area, the driver's configuration and
    load.sh. A stopped build resumes.

    Example: microtron build --board ulx3s

    Example: microtron build --board ulx3s --dry-run
    """
    from ..boards.build.plan import (
        WRITTEN,
        check_folder,
        describe,
        expect,
        load_command,
        make_plan,
        outline,
    )
    from ..boards.build.seeds import build_with_seeds, check_seeds
    from ..boards.facts.catalogue import find_board as known
    from ..isa.config_files import load_config

    check_table(table)
    chosen = known(board)
    name = name or chosen.preset
    folder = output or Path("build") / f"{chosen.name}-{Path(name).stem}"
    check_folder(folder)
    plan = make_plan(chosen, load_config(name), name, flow)
    check_seeds(plan, seeds)
    if dry_run and as_json:
        expected = expect(plan, seeds)
        typer.echo(json.dumps({"folder": str(folder), "board": chosen.name, "config": name,
                               "expected": None if expected is None else {
                                   "processor_seconds": round(expected.processor_seconds),
                                   "memory_mib": expected.memory_mib, "routes": expected.routes},
                               "product": plan.build.product, "steps": outline(plan, folder),
                               "writes": list(WRITTEN)}))
        return
    if dry_run:
        for line in describe(plan, folder, seeds):
            say(line)
        return
    found = build_with_seeds(plan, folder, seeds)
    write_table(table, [found], silent=as_json)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "product": plan.build.product, **found}))
        return
    from ..boards.build.report import table_rows
    from ..runtime.reports.tables import show
    show(f"{folder / plan.build.product} for {chosen.title}", table_rows(found))
    if not plan.flow.makes_bitstream:
        typer.echo("This is a project: the vendor's tools place it and make the bitstream.")
    say(f"To load it: {folder / 'load.sh'} ({load_command(plan)})")


def _facts(board: Board) -> PlainData:
    from ..boards.build.flow import flow_of, why_unavailable
    from ..boards.facts.fit import largest_preset

    flow, size = flow_of(board), board.memory.bytes >> 20
    return {"name": board.name, "title": board.title, "part": board.part.name,
            "device": board.part.device,
            "memory": f"{size >> 10} GiB" if size >= 1 << 10 else f"{size} MiB",
            "memory_bytes": board.memory.bytes, "cpu": board.cpu, "flow": board.flow,
            "preset": board.preset, "largest_preset": largest_preset(board),
            "missing": why_unavailable(board),
            "result": "bitstream" if flow.makes_bitstream else "project"}
