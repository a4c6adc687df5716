"""Models for people: the table of layers, and what else is worth knowing, in 80 columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..compiler.network.network import Where
from ..isa.values import named
from .compiled_model import CompiledModel, ProgramStep
from .layers import Inspection, LayerCost
from .result import Result
from .tables import show

COLUMNS = ("#", "layer", "result", "on", "MACs", "bound", "cycles", "eff.", "use", "bytes")
NUMBERS = COLUMNS[4:]
WHERE = {Where.ACCELERATOR: "acc", Where.CPU: "cpu"}      # the others take no time of their own
LAYER, RESULT = 12, 15      # characters of an operator and of a shape that are shown
SCALES = ((10 ** 12, "T"), (10 ** 9, "G"), (10 ** 6, "M"), (10 ** 3, "k"))


def short(number: float | None) -> str:
    """A number in at most six characters."""
    if number is None:
        return ""
    if number < 10_000:
        return f"{number:,.0f}"
    for scale, letter in SCALES:
        if number >= scale:
            value = number / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{letter}"
    raise AssertionError("one of the scales fits")


def percent(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"


def show_layers(title: str, found: Inspection) -> None:
    """The table of layers, with totals, and what it does not say."""
    console, totals = Console(), found.totals()
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0),
                  pad_edge=False, show_footer=False)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in ("#", *NUMBERS) else "left",
                         no_wrap=True)
    rows = [each for each in found.layers if each.node.where in WHERE]
    for number, each in enumerate(rows):
        table.add_row(*_row(number, each), end_section=number == len(rows) - 1)
    table.add_row("", "total", "", "", short(totals["macs"]), short(totals["bound"]),
                  short(totals["cycles"]), percent(totals["efficiency"]),
                  percent(totals["utilization"]), short(totals["bytes"]))
    console.print(table)
    for line in _facts(found, rows):
        console.print(escape(line), soft_wrap=False, highlight=False)


def _row(number: int, cost: LayerCost) -> Iterator[str]:
    node = cost.node
    yield str(number)
    yield escape(_cut(node.operator, LAYER))
    yield _cut("×".join(map(str, node.type.shape)) or "1", RESULT)
    yield WHERE[node.where]
    yield short(node.macs) if node.macs else ""
    yield short(cost.bound)
    yield "↓" if cost.with_next else short(cost.cycles)
    yield percent(cost.efficiency)
    yield percent(cost.utilization) if node.macs else ""
    yield short(cost.bytes)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width - 1]}…"


def _facts(found: Inspection, rows: Sequence[LayerCost]) -> Iterator[str]:
    """Why nodes are the CPU's, memory, and where the model came from."""
    totals, model = found.totals(), found.model
    yield (f"acc: the accelerator; eff.: bound / cycles; use: of the {model.config.macs_per_cycle} "
           f"multipliers")
    if any(each.with_next for each in rows):
        yield "↓: at the same time as the next layer, which has the cycles of both"
    for number, each in enumerate(rows):
        if each.node.where == Where.CPU:
            yield f"cpu {number} {named(each.node.title)}: {named_reason(each.node.reason)}"
    for number, step in enumerate(model.steps):
        if isinstance(step, ProgramStep):
            yield (f"step {number}: {len(step.program.code):,} instructions; {step.plan.peak:,} "
                   f"bytes between layers, {step.plan.total:,} without sharing")
    yield (f"{totals['instruction_bytes']:,} bytes of instructions, "
           f"{totals['constant_bytes']:,} of weights and micro-ops")
    origin = model.provenance
    yield (f"compiled from {named(origin.get('model', 'something unknown'))} by microtron "
           f"{named(origin.get('microtron', 'of unknown version'))}")
    if "left_out" in origin:
        yield f"without passes that failed: {named(origin['left_out'])}"


def named_reason(text: str) -> str:
    """A sentence from a file, fit for a terminal."""
    return "".join(each if each.isprintable() else " " for each in text)


def csv_text(found: Inspection) -> str:
    """The table of layers for a spreadsheet."""
    rows = [each.to_dict() for each in found.layers]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(LayerCost(node=found.model.nodes[0]).to_dict())
                            if found.model.nodes else ["name"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def show_result(title: str, model: CompiledModel, result: Result) -> None:
    """What an inference did."""
    acc = sum(each.where == Where.ACCELERATOR for each in model.nodes)
    rows = [("on the accelerator", f"{acc} layers in {len(result.reports)} programs")]
    rows += [("on the CPU", f"{named(each.title)}: {named_reason(each.reason)}")
             for each in model.host_nodes]
    if result.cycles is not None:
        rows.append(("cycles", f"{result.cycles:,}"))
    if result.utilization is not None:
        rows.append(("utilization", f"{result.utilization:.1%} of the MAC array"))
    rows += [("output", f"{named(name)}: {type_}") for name, type_ in model.outputs.items()]
    show(title, rows)


def placement_lines(model: CompiledModel) -> Iterator[str]:
    """Where each node runs, a line each, with the reason."""
    for each in model.nodes:
        reason = f"  {named_reason(each.reason)}" if each.reason else ""
        if each.where == Where.FUSED:
            reason = f"  part of {named(each.reason)}"
        yield f"{each.where.value:<11}  {each.operator:<20}  {named(each.title)}{reason}"


def plan_lines(model: CompiledModel) -> Iterator[str]:
    """The memory plan of each program."""
    for number, step in enumerate(model.steps):
        if isinstance(step, ProgramStep):
            plan = step.plan
            yield f"step {number}: {plan.peak:,} bytes at most, {plan.total:,} without sharing"
            for name, offset in sorted(plan.offsets.items(), key=lambda each: each[1]):
                yield f"  {offset:>12,}  {named(name)}"
