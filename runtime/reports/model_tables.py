"""Models for people: the table of layers, and what else is worth knowing, from 80 columns on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ...base.checked_values import printable, show_name
from ...compiler.network.network import Where
from ..models.compiled_model import CompiledModel, ProgramStep
from ..times.end_to_end import EndToEnd
from ..times.host_times import Source
from .layers import Inspection, LayerCost
from .reasons import group_reasons
from .tables import cut, open_console, safe_text
from .units import abbreviate, duration, percent

COLUMNS = ("#", "layer", "result", "on", "MACs", "bound", "cycles", "eff.", "use", "bytes", "time",
           "name")
NUMBERS = ("#", *COLUMNS[4:-1])
ONLY_WIDE = ("bound", "name")
WHERE = {Where.ACCELERATOR: "acc", Where.CPU: "cpu"}      # the others take no time of their own
LAYER, RESULT = 12, 12      # characters of an operator and of a shape that are shown
WIDE = 110                  # columns from which on there is room for names, and for more of both
WIDE_LAYER, WIDE_RESULT, WIDE_NUMBERS = 22, 20, 62


def show_layers(title: str, found: Inspection, *, all_reasons: bool = False) -> None:
    """The table of layers, with totals, and what it does not say."""
    console = open_console()
    wide = console.width >= WIDE
    table = Table(title=safe_text(title), title_justify="left", box=SIMPLE_HEAD,
                  padding=(0, 1, 0, 0), pad_edge=False, show_footer=False)
    shown = [column for column in COLUMNS if wide or column not in ONLY_WIDE]
    for column in shown:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    rows = [each for each in found.layers if each.node.where in WHERE]
    widths = (WIDE_LAYER, WIDE_RESULT, console.width - WIDE_LAYER - WIDE_RESULT - WIDE_NUMBERS) if (
        wide) else (LAYER, RESULT, 0)
    for number, each in enumerate(rows):
        cells = dict(zip(COLUMNS, _row(number, each, *widths), strict=True))
        table.add_row(*(safe_text(cells[column]) for column in shown),
                      end_section=number == len(rows) - 1)
    for cells in _totals(found):
        table.add_row(*(safe_text(cells.get(column, "")) for column in shown))
    console.print(table)
    for line in _facts(found, rows, all_reasons=all_reasons):
        for piece in textwrap.wrap(printable(line), console.width, subsequent_indent="    "):
            console.print(safe_text(piece))


def _row(number: int, cost: LayerCost, layer: int, result: int, name: int) -> Iterator[str]:
    node = cost.node
    yield str(number)
    yield cut(printable(node.operator), layer)
    yield cut("×".join(map(str, node.type.shape)) or "1", result)
    yield WHERE[node.where]
    yield abbreviate(node.macs) if node.macs else ""
    yield abbreviate(cost.bound)
    yield "↓" if cost.with_next else abbreviate(cost.cycles)
    yield percent(cost.efficiency)
    yield percent(cost.utilization) if node.macs else ""
    yield abbreviate(cost.bytes)
    yield "↓" if cost.with_next or cost.inside else format_time(cost.seconds, cost.time_source)
    yield cut(printable(node.title), name)


def format_time(seconds: float | None, source: Source | None) -> str:
    """A time, with a sign if it is estimated."""
    return f"{'~' if source == Source.ESTIMATED else ''}{duration(seconds)}"


def _totals(found: Inspection) -> Iterator[dict[str, str]]:
    """Of the accelerator, of the CPU, and of both, by column: the accelerator's numbers are its
    own."""
    totals, time = found.totals(), found.end_to_end
    host = time.host
    yield {"layer": "accelerator", "result": "alone", "on": "acc",
           "MACs": abbreviate(totals["macs"] - totals["cpu_macs"]),
           "bound": abbreviate(totals["bound"]), "cycles": abbreviate(totals["cycles"]),
           "eff.": percent(totals["accelerator_efficiency"]),
           "use": percent(totals["accelerator_utilization"]), "bytes": abbreviate(totals["bytes"]),
           "time": duration(time.accelerator_seconds)}
    yield {"layer": "CPU", "result": f"{totals['cpu_nodes']} of {totals['nodes']}", "on": "cpu",
           "MACs": abbreviate(totals["cpu_macs"]),
           "time": format_time(host.node_seconds, host.source)}
    yield {"layer": "hand-overs", "result": f"{totals['handovers']} tensors", "on": "cpu",
           "bytes": abbreviate(totals["handover_bytes"]),
           "time": format_time(host.repack_seconds, host.source)}
    yield {"layer": "end to end", "MACs": abbreviate(totals["macs"]),
           "use": percent(time.utilization), "time": format_time(time.seconds, host.source)}


def time_lines(time: EndToEnd) -> Iterator[str]:
    """Where times come from."""
    yield f"time: the accelerator at {time.clock}; the CPU {host_line(time)}"


def host_line(time: EndToEnd) -> str:
    host = time.host
    if host.source == Source.MEASURED:
        return f"measured on {host.processor}, best of a few runs"
    if Source.MEASURED in host.sources:
        return f"measured on {host.processor}, in part estimated (~) from operations (docs/cpu.md)"
    return f"estimated (~) for {host.processor} from operations (docs/cpu.md)"


def _facts(found: Inspection, rows: Sequence[LayerCost], *, all_reasons: bool) -> Iterator[str]:
    """Why nodes fall back to the CPU, memory, and where the model came from."""
    totals, model = found.totals(), found.model
    yield (f"acc: accelerator; eff.: bound / cycles; use: utilization of its "
           f"{model.config.macs_per_cycle} multipliers while it runs, or end to end")
    if any(each.with_next or each.inside for each in rows):
        yield "↓: runs together with a later layer, whose cycles or time include both"
    yield from time_lines(found.end_to_end)
    numbers = {each.node.name: number for number, each in enumerate(rows)}
    yield from reason_lines(model, found.end_to_end, numbers, all_reasons=all_reasons)
    plans = [step.plan for step in model.steps if isinstance(step, ProgramStep)]
    for number, plan in enumerate(plans if len(plans) <= 1 or all_reasons else ()):
        yield (f"program {number + 1}: {len(model.programs[number].code):,} instructions; "
               f"{plan.peak:,} bytes of activations between layers, {plan.total:,} without reuse")
    if len(plans) > 1 and not all_reasons:
        yield (f"{len(plans)} programs: {totals['instructions']:,} instructions; at most "
               f"{totals['peak_memory']:,} bytes of activations between layers, "
               f"{totals['tensor_memory']:,} "
               f"without reuse")
    yield (f"{totals['instruction_bytes']:,} bytes of instructions, "
           f"{totals['constant_bytes']:,} of weights and micro-ops")
    origin = model.provenance
    yield (f"compiled from {show_name(origin.get('model', 'something unknown'))} by microtron "
           f"{show_name(origin.get('microtron', 'of unknown version'))}")
    if "left_out" in origin:
        yield f"without passes that failed: {show_name(origin['left_out'])}"


def reason_lines(model: CompiledModel, time: EndToEnd | None, numbers: dict[str, int], *,
                 all_reasons: bool) -> Iterator[str]:
    """Why nodes fall back to the CPU: a line for each reason, or for each node."""
    if all_reasons:
        for each in model.host_nodes:
            number = f" {numbers[each.name]}" if each.name in numbers else ""
            yield f"cpu{number} {show_name(each.title)}: {printable(each.reason)}"
        return
    groups = group_reasons(model.host_nodes, time.host.nodes if time else None)
    if groups:
        yield "on the CPU, by reason (--all lists the nodes):"
    for group in groups:
        yield f"  {group.line()}"


def layer_rows(found: Inspection) -> Iterator[dict[str, object]]:
    """The table of layers for a file: after the nodes, what is handed over. The seconds of all rows
    add up to those from end to end."""
    time = found.end_to_end
    for each in found.layers:
        on_cpu = each.node.where == Where.CPU
        cells = {name: printable(value) if isinstance(value, str) else value
                 for name, value in each.to_dict().items()}
        yield {**cells, "clock_mhz": None if on_cpu else time.clock.mhz,
               "processor": time.host.processor if on_cpu else ""}
    for handover in time.host.handovers if found.model.nodes else ():
        yield {"name": printable(handover.tensor), "where": "hand-over", "step": handover.step,
               "operator": "pack" if handover.to_accelerator else "unpack",
               "bytes": handover.bytes, "seconds": handover.seconds,
               "time_source": handover.source.value, "processor": time.host.processor}


def placement_lines(model: CompiledModel) -> Iterator[str]:
    """Where each node runs, a line each, with the reason."""
    for each in model.nodes:
        reason = f"  {printable(each.reason)}" if each.reason else ""
        if each.where == Where.FUSED:
            reason = f"  part of {show_name(each.reason)}"
        yield (f"{each.where.value:<11}  {printable(each.operator):<20}  {show_name(each.title)}"
               f"{reason}")


def plan_lines(model: CompiledModel) -> Iterator[str]:
    """The memory plan of each program."""
    for number, step in enumerate(model.steps):
        if isinstance(step, ProgramStep):
            plan = step.plan
            yield f"step {number}: {plan.peak:,} bytes at most, {plan.total:,} without reuse"
            for name, offset in sorted(plan.offsets.items(), key=lambda each: each[1]):
                yield f"  {offset:>12,}  {show_name(name)}"
