"""Weights as they lie in DRAM: whole bytes, or two to a byte as the scratchpad unpacks them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.operators import dense
from microtron.compiler.operators.depthwise import Chunks
from microtron.compiler.operators.grouped import Grouped
from microtron.compiler.operators.packing import pack_weights, weight_tiles
from microtron.compiler.operators.packing_convolutions import (
    pack_depthwise_weights,
    pack_grouped_weights,
    pack_transposed_weights,
)
from microtron.compiler.operators.transposed import Transposed
from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer
from microtron.runtime.campaign import SMALL
from microtron.sim.functional.scratchpads import unpack

CONFIGS = {
    "int4": SMALL["int4"],
    "rows of one weight": replace(tiny, wgt_bits=4, block_in=1, block_out=2),
    "one row": replace(tiny, wgt_bits=4, block_in=2, block_out=1),
    "8 bits": tiny,
}
INT4 = CONFIGS["int4"]


def weights_for(config, *shape):
    limit = 1 << config.wgt_bits - 1
    return np.random.default_rng(0).integers(-limit, limit, shape, np.int8)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_scratchpad_gets_the_weights_that_were_packed(config):
    weights = weights_for(config, 11, 7, 3, 2)
    packed = pack_weights(weights, config)
    data = packed.view(np.uint8).reshape(-1, config.tile_bytes(Buffer.WGT))
    tiles = weight_tiles(weights, config)
    assert np.array_equal(unpack(data, Buffer.WGT, config).reshape(tiles.shape), tiles)


GROUPED = Grouped(height=3, width=3, channels_in=4, channels_out=4, groups=2)
TRANSPOSED = Transposed(height=3, width=3, channels_in=4, channels_out=4)


@pytest.mark.parametrize(("pack", "shape"), [
    (pack_weights, (4, 4, 3, 3)),
    (dense.pack_matrix, (1, 4, 4)),
    (lambda weights, config: pack_depthwise_weights(weights, config, Chunks((3, 3), (1, 1))),
     (4, 3, 3)),
    (lambda weights, config: pack_grouped_weights(weights, config, GROUPED, 1), (4, 2, 3, 3)),
    (lambda weights, config: pack_transposed_weights(weights, config, TRANSPOSED), (4, 4, 3, 3)),
], ids=("conv2d", "dense", "depthwise", "grouped", "transposed"))
@pytest.mark.parametrize("value", [8, -9])
def test_weights_that_do_not_fit_are_refused_whatever_the_operator(pack, shape, value):
    weights = np.zeros(shape, np.int8)
    weights.flat[-1] = value
    with pytest.raises(CompileError, match=rf"weights\[.*\] is {value}, but weights of this "
                                           r"configuration have 4 bits: -8 to 7"):
        pack(weights, INT4)
    weights.flat[-1] = 7
    assert pack(weights, INT4).dtype == np.uint8
