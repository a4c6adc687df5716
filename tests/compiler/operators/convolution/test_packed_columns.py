"""Images with several columns in a tile of memory, on arrays with different blocks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.first_layer import forms_of
from microtron.compiler.operators.convolution.packed_columns import most_columns
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.isa.config import tiny

from ..operations import check

RECTANGLES = {
    "8 × 4": replace(tiny, block_in=8),
    "4 × 8": replace(tiny, block_out=8, wgt_bytes=8 << 10, acc_bytes=16 << 10),
    "16 × 4": replace(tiny, block_in=16, inp_bytes=4 << 10, wgt_bytes=16 << 10),
    "4 × 16": replace(tiny, block_out=16, wgt_bytes=16 << 10, acc_bytes=32 << 10,
                      out_bytes=4 << 10),
}
WINDOWS = [{"kernel": (3, 3), "pad": (1, 1, 1, 1)}, {"kernel": (1, 1)},
           {"kernel": (3, 3), "stride": (2, 2), "pad": (0, 1, 0, 1)},
           {"kernel": (1, 1), "stride": (2, 2)}, {"kernel": (2, 5), "pad": (1, 0, 2, 2)},
           {"kernel": (1, 3), "dilation": (1, 2), "pad": (0, 0, 2, 2)}]
SPECS = [spec(height=5, width=8, zero_point_in=3, columns_in=columns_in, columns_out=columns_out,
              channels_in=channels_in, channels_out=channels_out, **window)
         for columns_in, columns_out, window in product((1, 2, 4), (1, 2, 4), WINDOWS)
         for spec, channels_in, channels_out in ((Conv2d, 3, 4), (ResidualConv2d, 4, 3),
                                                 (Conv2d, 4, 19))]
SPECS += [Depthwise(height=5, width=8, zero_point_in=3, columns_in=columns_in,
                    columns_out=columns_out, channels_in=3, channels_out=3, **window)
          for columns_in, columns_out, window in product((1, 2, 4), (1, 2, 4), WINDOWS)]
WITH_WINDOWS = {"8 × 4", "4 × 8"}


def takes(config, spec):
    most = max(config.block_in, config.block_out) // min(config.block_in, config.block_out)
    if isinstance(spec, Depthwise) and not {spec.columns_in, spec.columns_out} <= {1, most}:
        return False
    return all(columns <= most_columns(config, channels) for columns, channels in (
        (spec.columns_in, spec.channels_in), (spec.columns_out, spec.channels_out)))


@pytest.mark.parametrize("name", RECTANGLES)
def test_convolutions_equal_numpy(name):
    config = replace(RECTANGLES[name], window_taps=3 if name in WITH_WINDOWS else 1)
    fitting = [spec for spec in SPECS if takes(config, spec)]
    for spec in fitting[list(RECTANGLES).index(name)::11]:          # some of each kind
        check(spec, config)


@pytest.mark.soak
@pytest.mark.parametrize("name", RECTANGLES)
def test_all_convolutions_equal_numpy_on_devices_that_count_cycles(name):
    for taps in (1, 3):
        config = replace(RECTANGLES[name], window_taps=taps)
        for spec in (each for each in SPECS if takes(config, each)):
            check(spec, config, "functional", "cycle")


def test_what_is_written_is_what_is_read():
    """A pixel of four channels takes four bytes, on whichever side of the array it is."""
    for config in RECTANGLES.values():
        spec = Conv2d(height=3, width=8, channels_in=4, channels_out=4,
                      columns_in=most_columns(config, 4), columns_out=most_columns(config, 4),
                      pad=1)
        form = compile_op(spec, config).form
        assert form.layouts["data"] == form.layouts["output"]
        assert form.layouts["data"].size == 3 * 8 * 4


def test_three_columns_take_fewer_products_where_two_outputs_share_a_tile():
    spec = Conv2d(height=4, width=8, channels_in=4, channels_out=4, pad=1)
    packed = replace(spec, columns_in=2, columns_out=2)
    config = RECTANGLES["4 × 8"]
    alone, together = (operator_of(each).forms_of(each, config)[0].work.products
                       for each in (spec, packed))
    assert (alone, together) == (4 * 8 * 9, 4 * 8 * 6)


@pytest.mark.parametrize(("fields", "reason"), [
    ({"columns_in": 3}, r"columns_in is 3, but must be a power of two that divides 8 columns"),
    ({"columns_out": 4, "stride": (1, 4), "pad": 1}, r"columns_out is 4, but must be a power of "
                                                     r"two that divides 2 columns"),
    ({"columns_out": 2, "wide": True, "pad": 1}, r"columns_out is 2, but must be 1 if results"),
    ({"columns_in": 4}, r"columns_in is 4, but must be a power of two of at most 2 for 4 channels "
                        r"and blocks of 4 and 8")])
def test_columns_that_cannot_share_a_tile_are_refused(fields, reason):
    with pytest.raises(CompileError, match=reason):
        compile_op(Conv2d(**{"height": 4, "width": 8, "channels_in": 4, "channels_out": 4}
                          | fields), RECTANGLES["8 × 4"])


def test_depthwise_columns_are_groups_of_lanes():
    fields = {"height": 4, "width": 8, "channels_out": 4}
    for more, reason in (
            ({"channels_in": 4, "columns_out": 2}, "columns_out is 2, but must be 1 or 4, groups"),
            ({"channels_in": 2, "columns_in": 4}, "columns_in is 4, but must be 1 if channels")):
        with pytest.raises(CompileError, match=reason):
            compile_op(Depthwise(**fields, **more), RECTANGLES["16 × 4"])


def test_other_operators_take_no_such_images():
    with pytest.raises(CompileError, match="averaged_conv2d: columns_in is 2, but must be 1: only"):
        AveragedConv2d(height=4, width=8, channels_in=4, channels_out=4, columns_in=2)


def test_equal_blocks_leave_no_columns_to_share():
    assert most_columns(tiny, 2) == most_columns(replace(tiny, block_in=8, batch=2), 2) == 1
    with pytest.raises(CompileError, match="columns_in is 2, but must be a power of two of at "):
        compile_op(Conv2d(height=4, width=8, channels_in=2, channels_out=4, columns_in=2), tiny)


def test_the_host_packs_columns_of_a_first_layer():
    spec = Conv2d(height=6, width=8, channels_in=1, channels_out=3, pad=1, zero_point_in=3,
                  columns_out=2)
    for name, taps in (("8 × 4", (3, 1)), ("16 × 4", (1, 3))):      # 10 columns: not in fours
        form, = (each for each in forms_of(spec, RECTANGLES[name]) if each.asked.columns_in > 1)
        assert (form.fold.taps, form.description) == (taps, spec)
        check(spec, RECTANGLES[name], form=form)
