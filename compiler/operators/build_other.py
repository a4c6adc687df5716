"""Operators other than convolution compiled: from a description to a program."""

from __future__ import annotations

from typing import Unpack

from ...isa.config import Config
from . import dense, dense_schedule, elementwise, pool, pool_schedule
from .build import Kernel, compiled
from .choice import Options


def compile_dense(spec: dense.Dense, config: Config, *,
                  knobs: dense_schedule.Knobs | None = None,
                  **options: Unpack[Options]) -> Kernel:
    """A matrix product on the accelerator. The program's tensors are `data`, `weights`,
    `parameters` and `output`, packed as `operators.dense` says."""
    return compiled(dense_schedule, [dense.expressions(spec, config)], knobs, **options)


def compile_elementwise(spec: elementwise.Elementwise, config: Config, *,
                        knobs: elementwise.Knobs | None = None,
                        **options: Unpack[Options]) -> Kernel:
    """An element-wise operation on the accelerator. The program's tensors are `left`, `right`,
    `parameters` (see `elementwise.parameters`) and `output`."""
    return compiled(elementwise, [elementwise.expressions(spec, config)], knobs, **options)


def compile_pool(spec: pool.Pool, config: Config, *,
                 knobs: pool_schedule.Knobs | None = None,
                 **options: Unpack[Options]) -> Kernel:
    """A maximum or an average over windows on the accelerator. The program's tensors are `data`,
    `parameters` (see `pool.parameters`) and `output`."""
    return compiled(pool_schedule, [pool.expressions(spec, config)], knobs, **options)
