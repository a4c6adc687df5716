"""The command that checks a device against the exact simulator."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.errors import MicrotronError
from ..files import AsJson, check_table, say, write_table
from ..options import Limit, Memory, TableFile

if TYPE_CHECKING:
    from ...isa.config import Config
    from ...isa.memory_timing import MemoryTiming
    from ...runtime.devices.device import Device
    from ...testing.self_test import Check

DIFFERENT = 1               # exit code if device and simulator part
TIMED = ("cycle", "rtl")    # devices with a memory that can be told how to behave


def selftest(device: Annotated[str, typer.Option(
                 help="functional, cycle, rtl, or a board: board:pynq_z2@/dev/uio0, "
                      "board:ulx3s@/dev/ttyUSB0, board:ecpix5@192.168.1.50.")],
             name: Annotated[str, typer.Option(
                 "--config", help="A preset or a .toml file. [default: tiny; what a board has]",
             )] = "",
             memory: Memory = "",
             limit: Limit = None,
             table: TableFile = None,
             as_json: AsJson = False) -> None:
    """Check a device against the exact simulator.

    Registers and memory of a board, memory through the device, every instruction in all its
    variants, and the digits network. Where the two part, it names the first byte and the
    instruction, and exits with 1.

    Example: microtron selftest --device cycle
    """
    from ...base.progress import report_progress
    from ...runtime.devices.device import open_device
    from ...testing.self_test import self_test

    if memory and device not in TIMED:
        raise MicrotronError(f"--memory is for the {' or '.join(TIMED)} device, not for {device}")
    check_table(table)
    timing = _timing(memory)
    chosen = open_device(device, _config(name), memory=timing, limit=limit)
    config, timing = _describe(chosen, name, timing)
    with report_progress(f"checking {device}") as tell:
        checks = list(self_test(chosen, config, timing, tell=tell))
    facts = [{**asdict(each), "passed": each.passed} for each in checks]
    write_table(table, facts, silent=as_json)
    if as_json:
        typer.echo(json.dumps({"device": device, "config": config.to_dict(),
                               "passed": all(each.passed for each in checks), "checks": facts}))
    else:
        _print_checks(device, checks)
    if not all(each.passed for each in checks):
        raise typer.Exit(DIFFERENT)


def _config(name: str) -> Config | None:
    from ...isa.config_files import load_config
    return load_config(name) if name else None


def _timing(memory: str) -> MemoryTiming | None:
    from ...isa.memory_timing import parse_timing
    return parse_timing(memory) if memory else None


def _describe(device: Device, name: str,
              timing: MemoryTiming | None) -> tuple[Config, MemoryTiming | None]:
    """The configuration that the device has, and how its memory behaves. A board tells its
    configuration itself; its file has its memory."""
    from ...isa.config import tiny
    from ...runtime.board.board_device import BoardDevice

    config = _config(name)
    if not isinstance(device, BoardDevice):
        return config or tiny, timing
    from ...boards.facts.catalogue import find_board
    has = device.connection.config
    if config is not None and config != has:
        raise MicrotronError(f"--config is {name}, but the bitstream on {device.place.address} "
                             f"has another configuration; leave it out")
    return has, find_board(device.place.board).memory.timing


def _print_checks(device: str, checks: list[Check]) -> None:
    from ...runtime.reports.tables import show

    def cycles(each: Check) -> str:
        if each.cycles is None:
            return "ok" if each.passed else "differs"
        text = f"{each.cycles:,} cycles"
        if each.expected is not None and each.expected != each.cycles:
            text += f" ({each.expected:,} by the simulator)"
        return text if each.passed else f"differs; {text}"

    show(f"Self-test of {device}", [(each.name, cycles(each)) for each in checks])
    for each in checks:
        if not each.passed:
            say(f"{each.name}: {each.problem}", err=True)
    good = sum(each.passed for each in checks)
    say(f"{good} of {len(checks)} checks passed")
