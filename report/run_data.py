"""Everything a page shows about one run, as plain data. Figures are those of `Inspection`."""

from __future__ import annotations

from ..base.checked_values import PlainData
from ..compiler.network.network import Where
from ..runtime.clock import Clock
from ..runtime.models.compiled_model import ProgramStep
from ..runtime.reports.inference_timeline import place_steps
from ..runtime.reports.layers import Inspection, LayerCost
from ..runtime.reports.model_tables import host_line
from ..runtime.reports.profile import EngineProfile, profile_engines
from ..runtime.reports.reasons import group_reasons
from .events import cycles_per_beat, timeline_data
from .network_layout import network_data
from .scratchpads import scratchpad_data
from .traffic import traffic_data


def run_data(name: str, found: Inspection) -> PlainData:
    """A run under the name that the page calls it by."""
    model = found.model
    timeline = place_steps(model, found.reports, found.end_to_end)
    programs = timeline.programs
    return {
        "name": name, "model": model.name, "provenance": dict(model.provenance),
        "config": model.config.to_dict(), "memory": vars(found.reports[0].memory or model.memory)
        if found.reports else vars(model.memory),
        "totals": found.totals(), "limits": _limits(found), "clock": _clock(found.end_to_end.clock),
        "cpu_source": host_line(found.end_to_end),
        "reasons": [each.line() for each in group_reasons(
            model.host_nodes, found.end_to_end.host.nodes)],
        "engines": _engines(found), "layers": [_layer(each) for each in found.layers],
        "roofline": {"macs_per_cycle": model.config.macs_per_cycle,
                     "bytes_per_cycle": model.config.bus_bytes / cycles_per_beat(found)},
        "network": network_data(found),
        "timeline": timeline_data(found, timeline),
        **traffic_data(found, programs), "scratchpads": scratchpad_data(programs, timeline.cycles)}


def _clock(clock: Clock) -> str:
    said = {"assumed": " (assumed)", "given": ""}
    return f"{clock.mhz:g} MHz{said.get(clock.source, f' on {clock.source}')}"


def _limits(found: Inspection) -> dict[str, float]:
    """The bound, by what sets it."""
    limits: dict[str, float] = {}
    for each in found.layers:
        if each.bound:
            limits[each.limit] = limits.get(each.limit, 0.0) + each.bound
    return limits


def _layer(cost: LayerCost) -> PlainData:
    """A line of the table."""
    return {**cost.to_dict(), "title": cost.node.title,
            "shown": cost.node.where in (Where.ACCELERATOR, Where.CPU)}


def _engines(found: Inspection) -> list[PlainData]:
    """Where the cycles of each engine went, over all programs."""
    steps = [each for each in found.model.steps if isinstance(each, ProgramStep)]
    sums: dict[str, PlainData] = {}
    for step, report in zip(steps, found.reports, strict=True):
        for each in profile_engines(step.program, report):
            _add_engine(sums.setdefault(each.engine, {
                "engine": each.engine, "instructions": 0, "working": 0, "memory": 0, "tokens": {},
                "queue": 0, "idle": 0}), each)
    return list(sums.values())


def _add_engine(total: PlainData, part: EngineProfile) -> None:
    for name in ("instructions", "working", "memory", "queue", "idle"):
        total[name] += getattr(part, name)
    for giver, cycles in part.tokens.items():
        total["tokens"][giver] = total["tokens"].get(giver, 0) + cycles
