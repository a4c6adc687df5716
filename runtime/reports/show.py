"""One function that prints any report as a table, for scripts and notebooks."""

from __future__ import annotations

from ...base.argument_checks import check_type
from ...base.checked_values import quote
from ...base.errors import MicrotronError
from ...base.keywords import check_keywords
from ...sim.report import Report
from .layers import Inspection
from .model_tables import show_layers
from .profile import Profile
from .tables import report_rows, show_profile
from .tables import show as show_rows


@check_keywords
def show(report: Report | Profile | Inspection, title: str = "") -> None:
    """Print a Report, a Profile or an Inspection as a table: with colours on a terminal, as plain
    text elsewhere."""
    check_type("title", title, str, "a string")
    match report:
        case Report():
            show_rows(title or report.name or f"Run on the {report.device} device",
                      report_rows(report))
        case Profile():
            show_profile(title or report.report.name or "Profile", report)
        case Inspection():
            show_layers(title or report.model.name or "Layers", report)
        case _:
            raise MicrotronError(f"report is {quote(report)}, but must be a Report, a Profile or "
                                 f"an Inspection")
