"""Tables for people: coloured on a terminal, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..isa.config import Config
from ..isa.instructions import Buffer
from .device import Report


def show(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Two columns: what, and how much."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(escape(name), escape(value))
    Console().print(table)


def report_rows(report: Report) -> list[tuple[str, str]]:
    """What a run did, a line each."""
    counts = report.counts
    kinds = ", ".join(f"{number} {name}" for name, number in counts.instructions.items() if number)
    rows = [("instructions", kinds), ("tile products", f"{counts.tile_products:,}"),
            ("multiply-adds", f"{counts.macs:,}"), ("ALU vectors", f"{counts.alu_vectors:,}"),
            ("bytes loaded", _listed(counts.bytes_loaded)),
            ("bytes stored", _listed(counts.bytes_stored)),
            ("most tokens", _listed(counts.most_tokens))]
    if report.cycles is not None:
        rows.append(("cycles", f"{report.cycles:,}"))
    return rows


def show_configs(configs: Mapping[str, Config]) -> None:
    """Configurations side by side."""
    table = Table(title="Configurations (scratchpads in KiB)", title_justify="left")
    for column in ("name", "tile", "MACs", "bus", *(buffer.name.lower() for buffer in Buffer
                                                    if buffer != Buffer.ACC8)):
        table.add_column(column, justify="left" if column == "name" else "right")
    for name, config in configs.items():
        sizes = (config.uop_bytes, config.inp_bytes, config.wgt_bytes, config.acc_bytes,
                 config.out_bytes)
        table.add_row(name, f"{config.batch}×{config.block_in}×{config.block_out}",
                      str(config.macs_per_cycle), str(config.bus_bits),
                      *(f"{size / 1024:g}" for size in sizes))
    Console().print(table)


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items()) or "none"
