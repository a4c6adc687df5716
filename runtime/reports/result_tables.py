"""What a run of a model gave, for people: its answer, its time, and what the CPU computed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base.checked_values import show_name
from ...compiler.graph.types import Array, TensorType
from ...compiler.network.network import Where
from ..models.compiled_model import CompiledModel
from ..models.result import Result
from ..models.tensors import real
from ..times.end_to_end import EndToEnd
from .model_tables import format_time, host_line, reason_lines
from .tables import show

SMALL = 16                  # elements of an answer that is shown as a whole
TOP = 5                     # values of a larger one


def show_result(title: str, model: CompiledModel, result: Result, time: EndToEnd, *,
                all_reasons: bool = False) -> None:
    """What an inference gave and did."""
    rows = [row for name, type_ in model.outputs.items()
            for row in _answer_rows(name, result[name], type_)]
    rows += time_rows(model, time)
    rows += _reason_rows(model, time, all_reasons=all_reasons)
    show(title, rows)


def show_end_to_end(title: str, model: CompiledModel, time: EndToEnd, *,
                    all_reasons: bool = False) -> None:
    """The time of an inference, and what it consists of."""
    show(title, [*time_rows(model, time), *_reason_rows(model, time, all_reasons=all_reasons)])


def _reason_rows(model: CompiledModel, time: EndToEnd, *,
                 all_reasons: bool) -> list[tuple[str, str]]:
    lines = list(reason_lines(model, time, {}, all_reasons=all_reasons))
    if lines and not all_reasons:
        lines = [each.strip() for each in lines[1:]]
    return [("on the CPU", each.removeprefix("cpu ")) for each in lines]


def time_rows(model: CompiledModel, time: EndToEnd) -> list[tuple[str, str]]:
    """The time of an inference, and its parts. All but the last row are of one part alone."""
    acc = sum(each.where == Where.ACCELERATOR for each in model.nodes)
    host, programs = time.host, len(model.programs)
    layers = f"{acc} layer{'s' * (acc != 1)} in {programs} program{'s' * (programs != 1)}"
    rows = [("accelerator", layers)]
    if time.accelerator_seconds is not None and time.cycles is not None:
        rows[0] = ("accelerator", f"{layers}: {time.cycles:,} cycles, "
                                  f"{format_time(time.accelerator_seconds, None)} at {time.clock}")
    if time.accelerator_utilization is not None:
        rows.append(("utilization", f"{time.accelerator_utilization:.1%} of the MAC array while "
                                    f"the accelerator runs; {time.utilization or 0:.1%} of the "
                                    f"time from end to end"))
    hosted = len(model.host_nodes)
    rows += [("CPU", f"{hosted} node{'s' * (hosted != 1)}: "
                     f"{format_time(host.node_seconds, host.source)}, {host_line(time)}"),
             ("hand-overs", f"{len(host.handovers)} tensors, "
                            f"{sum(each.bytes for each in host.handovers):,} bytes, "
                            f"{format_time(host.repack_seconds, host.source)} of repacking")]
    if time.seconds is not None:
        rows.append(("end to end",
                     f"{format_time(time.seconds, host.source)}, without overlap"))
    return rows


def _answer_rows(name: str, array: Array, type_: TensorType) -> Iterator[tuple[str, str]]:
    """An output: what it is, and its numbers or the largest of them."""
    yield "output", f"{show_name(name)}: {type_}"
    yield "", answer(array, type_)


def answer(array: Array, type_: TensorType) -> str:
    """The real numbers of an output: all of a few, or the largest of many with their places."""
    values = real(array, type_)
    if values.size <= SMALL:
        return f"[{', '.join(_number(each) for each in values.reshape(-1))}]"
    flat = values.reshape(-1)
    unknown = int(np.isnan(flat).sum()) if flat.dtype.kind == "f" else 0
    keys = np.where(np.isnan(flat), -np.inf, flat) if unknown else flat
    order = np.argsort(-keys.astype(np.float64), kind="stable")[:TOP]
    top = ", ".join(f"{_number(flat[each])} at {_place(int(each), values.shape)}"
                    for each in order)
    nans = f"; {unknown:,} of {flat.size:,} are NaN" if unknown else ""
    return f"largest: {top}; smallest: {_number(keys.min())}{nans}"


def _place(number: int, shape: tuple[int, ...]) -> str:
    """An index; of one number where only one axis has more than one."""
    if sum(extent > 1 for extent in shape) == 1:
        return f"[{number}]"
    return f"[{', '.join(str(int(each)) for each in np.unravel_index(number, shape))}]"


def _number(value: np.generic) -> str:
    return f"{value:.4g}" if value.dtype.kind == "f" else str(value)
