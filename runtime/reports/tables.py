"""Tables for people: coloured on a terminal, plain text elsewhere."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...base.checked_values import printable
from ...isa.config import Config
from ...isa.instructions import Buffer
from ...sim.report import Report
from .profile import EngineProfile, Profile, Wait

TOGETHER = "\N{NO-BREAK SPACE}"         # between words that belong on one line
FRAME = len("│  │  │")                  # of a table with two columns
LIMITS = {"macs": "MACs", "memory": "memory", "alu": "the ALU"}
SCALES = {"": 1, "thousands of ": 10 ** 3, "millions of ": 10 ** 6, "billions of ": 10 ** 9,
          "trillions of ": 10 ** 12}


def open_console() -> Console:
    """Where tables go. Nothing in their text is markup, an emoji or a number to highlight."""
    return Console(markup=False, emoji=False, highlight=False)


def safe_text(text: str) -> Text:
    """Text from anywhere: as it is, but for what terminals would act on."""
    return Text(printable(text))


def show(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Two columns: what, and how much."""
    rows, console = list(rows), open_console()
    room = console.width - FRAME - max(len(name) for name, _ in rows)
    table = Table(title=safe_text(title), title_justify="left", show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, value in rows:
        whole = TOGETHER.join(map(printable, value.split(TOGETHER)))
        lines = textwrap.wrap(whole, max(room, 1))
        table.add_row(safe_text(name), Text("\n".join(lines).replace(TOGETHER, " ")))
    console.print(table)


def show_section(text: str) -> None:
    """A section of the manual, which is Markdown. Its links lead to sections that are not here."""
    from rich.markdown import Markdown

    Console().print(Markdown(re.sub(r" \(\[\w+\]\(#\w+\)\)", "", text)))


def report_rows(report: Report) -> list[tuple[str, str]]:
    """What a run did, a line each."""
    counts = report.counts
    kinds = {name: number for name, number in counts.instructions.items() if number}
    rows = [("instructions", _list_numbers(kinds)), ("tile products", f"{counts.tile_products:,}"),
            ("multiply-adds", f"{counts.macs:,}"), ("ALU vectors", f"{counts.alu_vectors:,}"),
            ("bytes loaded", _list_numbers(counts.bytes_loaded)),
            ("bytes stored", _list_numbers(counts.bytes_stored)),
            ("most tokens", _list_numbers(counts.most_tokens))]
    if report.cycles is not None:
        rows.append(("cycles", f"{report.cycles:,}"))
    if report.utilization is not None:
        rows.append(("utilization", f"{report.utilization:.1%} of the MAC array"))
    return rows


def show_profile(title: str, profile: Profile, time: str | None = None) -> None:
    """All that a profile knows, on one screen; `time` says how long it takes, where known."""
    report, roofline = profile.report, profile.roofline
    assert report.cycles is not None
    assert report.utilization is not None
    per_byte = "no bytes" if roofline.macs_per_byte is None else (
        f"{roofline.macs_per_byte:,.2f} MACs a byte")
    show(title, [
        ("cycles", f"{report.cycles:,}"),
        *([] if time is None else [("time", time)]),
        ("multiply-adds", f"{report.macs:,}: {report.utilization:.1%} of what the array can do"),
        ("bytes loaded", _list_numbers(report.counts.bytes_loaded)),
        ("bytes stored", _list_numbers(report.counts.bytes_stored)),
        ("roofline", f"{per_byte}; memory is the limit below {roofline.balance:g}"),
        ("bound", f"{roofline.bound:,.0f} cycles, limited by {LIMITS[roofline.limit]}: "
                  f"{roofline.mac_cycles:,.0f} for MACs, {roofline.memory_cycles:,.0f} for "
                  f"memory, {roofline.alu_cycles:,.0f} for the ALU"),
        ("efficiency", f"{roofline.efficiency:.1%} (bound / cycles)")])
    console = open_console()
    console.print(_engine_table(profile.engines, report.cycles, console.width))
    if profile.waits:
        console.print(_wait_table(profile.waits, console.width))


def _engine_table(engines: Sequence[EngineProfile], cycles: int, width: int) -> Table:
    """Numbers that are too long for the screen are shown in thousands, or in millions, …"""
    causes: dict[str, list[int | None]] = {
        "working": [each.working for each in engines],
        "waiting for memory": [each.memory for each in engines],
        **{f"waiting for {giver.engine}": [each.tokens.get(giver.engine) for each in engines]
           for giver in engines},
        "queue empty": [each.queue for each in engines],
        "done": [each.idle for each in engines]}
    room = (width - len("│  │") - max(map(len, causes))) // len(engines) - len("  │ 100%")
    longest = max(each or 0 for spent in causes.values() for each in spent)
    unit, scale = next(each for each in SCALES.items()
                       if len(f"{longest // each[1]:,}") <= room or each[0] == list(SCALES)[-1])
    table = Table(title=f"{unit}cycles of each engine".capitalize(), title_justify="left")
    table.add_column("", style="cyan", no_wrap=True)
    for engine in engines:
        table.add_column(engine.engine, justify="right")
    table.add_row("instructions", *(f"{each.instructions:,}" for each in engines),
                  end_section=True)
    for cause, spent in causes.items():
        table.add_row(cause, *("" if not each else f"{each / scale:,.0f} {each / cycles:>4.0%}"
                               for each in spent))
    return table


def _wait_table(waits: Sequence[Wait], width: int) -> Table:
    """Instructions are cut to fit; what they are called stays readable."""
    table = Table(title="Most expensive waits for a token", title_justify="left")
    numbers = [f"{each.cycles:,}" for each in waits]
    room = (width - len("│ cycles │  │  │") - max(map(len, numbers))) // 2
    table.add_column("cycles", justify="right")
    for column in ("instruction", "waits for"):
        table.add_column(column, no_wrap=True)
    for number, each in zip(numbers, waits, strict=True):
        table.add_row(number, safe_text(cut(printable(f"{each.position} {each.text}"), room)),
                      safe_text(cut(printable(f"{each.poster} {each.poster_text}"), room)))
    return table


def cut(text: str, width: int) -> str:
    """Text in at most so many characters."""
    return text if len(text) <= width else f"{text[:max(width - 1, 0)]}…"


def show_configs(configs: Mapping[str, Config]) -> None:
    """Configurations side by side."""
    table = Table(title="Configurations (scratchpads in KiB)", title_justify="left")
    for column in ("name", "tile", "MACs", "lanes", "bus", *(
            buffer.name.lower() for buffer in Buffer if buffer != Buffer.ACC8)):
        table.add_column(column, justify="left" if column == "name" else "right")
    for name, config in configs.items():
        sizes = (config.uop_bytes, config.inp_bytes, config.wgt_bytes, config.acc_bytes,
                 config.out_bytes)
        table.add_row(safe_text(name), f"{config.batch}×{config.block_in}×{config.block_out}",
                      str(config.macs_per_cycle), str(config.alu_lanes), str(config.bus_bits),
                      *(f"{size / 1024:g}" for size in sizes))
    open_console().print(table)


def _list_numbers(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}".replace(" ", TOGETHER)
                     for name, number in numbers.items()) or "none"
