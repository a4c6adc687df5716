"""The report of a quantization, as a table for people."""

from __future__ import annotations

from ..runtime.reports.tables import open_console, safe_text, show
from .report import RANDOM, QuantizationReport

SHOWN = 12                      # layers with the largest error


def show_report(report: QuantizationReport, *, all_layers: bool = False) -> None:
    """Totals, then the layers that hurt most."""
    from rich.table import Table

    rows = [("samples", f"{report.samples}{' (random)' * report.random}")]
    rows += [(f"output {name}", f"{value:.1f} dB SQNR") for name, value in report.outputs.items()]
    if report.accuracy is not None:
        before, after = report.accuracy
        rows.append(("accuracy", f"{before:.2f} % float, {after:.2f} % quantized "
                                 f"({after - before:+.2f} points)"))
    rows += [(name, f"{'used' if used else 'not used'}: loss {before:.3g} → {after:.3g}")
             for name, before, after, used in report.techniques]
    if report.kept_float:
        rows.append(("kept in float", ", ".join(report.kept_float)))
    placement = report.placement
    if placement is not None:
        rows += [("MACs on the accelerator", f"{placement.percent:.1f} % of {placement.macs:,}"),
                 ("hand-overs", f"{_count(placement.handovers, 'tensor')}, "
                                f"{_count(placement.programs, 'program')}"),
                 ("cycles", f"{placement.cycles:,} on {placement.config}")]
    rows += [("note", note) for note in report.notes]
    if report.random:
        rows.append(("warning", RANDOM))
    show(report.model, rows)
    table = Table(title=safe_text("layers" if all_layers else "what hurts most"),
                  title_justify="left")
    for heading in ("layer", "operator", "SQNR dB", "scale", "zero point"):
        table.add_column(heading)
    for each in report.layers if all_layers else report.worst[:SHOWN]:
        table.add_row(safe_text(each.name), each.operator, f"{each.sqnr:.1f}",
                      *(("float", "") if each.scale is None
                        else (f"{each.scale:.4g}", str(each.zero_point))))
    open_console().print(table)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
