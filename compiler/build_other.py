"""Operators other than convolution compiled: from a description to a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..isa.config import Config
from ..isa.instructions import Requantize
from ..isa.program import Program
from .intrinsic import Intrinsic, requantize
from .nest import Nest
from .operators import dense, dense_schedule, elementwise, pool, pool_schedule
from .pipeline import build
from .schedule import Schedule


@dataclass(frozen=True)
class Kernel:
    """A compiled operator. `knobs` are those of its template."""

    knobs: Any
    nest: Nest
    program: Program


def compile_dense(spec: dense.Dense, config: Config, *,
                  knobs: dense_schedule.Knobs | None = None,
                  hide_latency: bool = True) -> Kernel:
    """A matrix product on the accelerator. The program's tensors are `data`, `weights`,
    `parameters` and `output`, packed as `operators.dense` says."""
    what = dense.expressions(spec, config)
    chosen = knobs or dense_schedule.default_knobs(what)
    return _compiled(chosen, dense_schedule.schedule(what, chosen), config,
                     [requantize(config, what.function)],
                     {what.function.name: spec.requantization()}, hide_latency=hide_latency)


def compile_elementwise(spec: elementwise.Elementwise, config: Config, *,
                        knobs: elementwise.Knobs | None = None,
                        hide_latency: bool = True) -> Kernel:
    """An element-wise operation on the accelerator. The program's tensors are `left`, `right`,
    `parameters` (see `elementwise.parameters`) and `output`."""
    what = elementwise.expressions(spec, config)
    chosen = knobs or elementwise.default_knobs(what)
    return _compiled(chosen, elementwise.schedule(what, chosen), config, what.intrinsics,
                     what.requantizations, hide_latency=hide_latency)


def compile_pool(spec: pool.Pool, config: Config, *,
                 knobs: pool_schedule.Knobs | None = None,
                 hide_latency: bool = True) -> Kernel:
    """A maximum or an average over windows on the accelerator. The program's tensors are `data`,
    `parameters` (see `pool.parameters`) and `output`."""
    what = pool.expressions(spec, config)
    chosen = knobs or pool_schedule.default_knobs(what)
    return _compiled(chosen, pool_schedule.schedule(what, chosen), config,
                     [requantize(config, what.function)],
                     {what.function.name: spec.requantization()}, hide_latency=hide_latency)


def _compiled(knobs: object, plan: Schedule, config: Config, intrinsics: list[Intrinsic],
              requantizations: dict[str, Requantize], *, hide_latency: bool = True) -> Kernel:
    nest, program = build(plan, config, intrinsics, requantizations=requantizations,
                          hide_latency=hide_latency)
    return Kernel(knobs, nest, program)
