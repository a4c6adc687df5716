"""Arrays with different blocks: activations lie in memory in tiles of the larger one, and every
operator reads and writes them there."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.accelerator.emission.interleave_buffers import interleave_buffers, runs_of
from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.nest.nest import Interleave
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Kind, Pool
from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer, Load, Store
from microtron.isa.stream import decode

from .operations import check

RECTANGLES = {
    "8 × 4": replace(tiny, block_in=8),
    "4 × 8": replace(tiny, block_out=8, wgt_bytes=8 << 10, acc_bytes=16 << 10),
    "16 × 4": replace(tiny, block_in=16, inp_bytes=4 << 10, wgt_bytes=16 << 10),
    "4 × 16": replace(tiny, block_out=16, wgt_bytes=16 << 10, acc_bytes=32 << 10,
                      out_bytes=4 << 10),
}
IMAGE = {"height": 6, "width": 7}
BORDER = {"kernel": (3, 3), "pad": (1, 1, 1, 1)}
SPECS = [
    *(Conv2d(**IMAGE, channels_in=inputs, channels_out=outputs, zero_point_in=3, **more)
      for inputs, outputs in ((3, 5), (8, 8), (20, 12), (16, 37))
      for more in (BORDER, {"kernel": (1, 1), "stride": (2, 1)},
                   {"kernel": (3, 2), "stride": (2, 2), "pad": (0, 1, 1, 0)})),
    *(ResidualConv2d(**IMAGE, channels_in=9, channels_out=outputs, **BORDER)
      for outputs in (4, 12, 19)),
    *(AveragedConv2d(**IMAGE, channels_in=9, channels_out=outputs, kernel=(1, 1))
      for outputs in (4, 19)),
    *(Grouped(**IMAGE, channels_in=channels, channels_out=channels, groups=channels, **BORDER)
      for channels in (3, 8, 12, 24)),
    *(Depthwise(**IMAGE, channels_in=channels, channels_out=channels, zero_point_in=3, **BORDER)
      for channels in (3, 8, 12, 24, 37)),
    Depthwise(**IMAGE, channels_in=12, channels_out=12, stride=(2, 2), **BORDER),
    *(Grouped(**IMAGE, channels_in=16, channels_out=24, groups=groups, **BORDER)
      for groups in (2, 8)),
    Transposed(height=4, width=5, channels_in=9, channels_out=12, **BORDER),
    *(Upsample(height=4, width=5, channels=channels, zero_point_in=3) for channels in (9, 9, 20)),
    *(Pool(kind=kind, **IMAGE, channels=channels, stride=(2, 2), **BORDER)
      for kind, channels in zip(cycle(Kind), (4, 12, 20, 37), strict=False)),
    *(Dense(rows=rows, inputs=inputs, outputs=outputs)
      for rows, inputs, outputs in ((1, 9, 4), (5, 40, 37))),
    Conv2d(**IMAGE, channels_in=9, channels_out=20, wide=True, **BORDER),
    Dense(rows=5, inputs=9, outputs=20, wide=True),
]


@pytest.mark.parametrize("config", RECTANGLES)
def test_operators_equal_numpy(config):
    which = list(RECTANGLES).index(config)
    for spec in SPECS[which % 2::2]:            # every other one, so that each meets both ways
        check(spec, RECTANGLES[config])


@pytest.mark.soak
@pytest.mark.parametrize("config", RECTANGLES)
def test_all_operators_equal_numpy_on_devices_that_count_cycles(config):
    for spec in SPECS:
        check(spec, RECTANGLES[config], "functional", "cycle")


@pytest.mark.parametrize(("config", "kind", "buffer"), [
    ("8 × 4", Store, Buffer.OUT), ("4 × 8", Load, Buffer.INP)])
def test_narrow_tiles_are_moved_in_rows_as_long_as_wide_ones(config, kind, buffer):
    spec = Conv2d(height=8, width=8, channels_in=16, channels_out=16, kernel=(1, 1))
    program = compile_op(spec, RECTANGLES[config]).program
    moves = [each for each in decode(program.code)
             if isinstance(each, kind) and each.buffer == buffer]
    assert moves
    assert all(each.shape[2] >= 2 * spec.width for each in moves)


def test_what_a_program_leaves_is_what_the_next_one_reads():
    """The same bytes, whichever side of the array is the wider one."""
    spec = Conv2d(height=3, width=3, channels_in=20, channels_out=20, kernel=(1, 1))
    for config in RECTANGLES.values():
        form = compile_op(spec, config).form
        assert form.layouts["data"] == form.layouts["output"]


@given(st.integers(0, 9), st.integers(1, 40), st.sampled_from((1, 2, 4, 16)))
@settings(max_examples=50)
def test_runs_go_through_every_index_once(first, count, ways):
    found = [run.first + number for run in runs_of(first, count, ways)
             for number in range(max(run.groups, 1) * run.length)]
    assert found == list(range(first, first + count))
    for run in runs_of(first, count, ways):
        assert (run.first % ways == 0 and run.length == ways if run.groups
                else run.first % ways + run.length <= ways)


def test_only_buffers_that_there_are_can_be_interleaved():
    nest = compile_op(Conv2d(height=3, width=3, channels_in=4, channels_out=4), tiny).nest
    with pytest.raises(CompileError, match="result is to be interleaved, but the nest has no such"):
        interleave_buffers(nest, {"result": Interleave(1, 2)}, tiny)
    assert interleave_buffers(nest, {"data": Interleave(1, 1)}, tiny) is nest
    assert np.prod(Interleave(1, 2).memory_shape((1, 3, 5, 7, 1, 4))) == 4 * 5 * 7 * 4
