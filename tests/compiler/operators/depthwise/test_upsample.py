"""Bilinear enlargements give what NumPy gives, borders included, in one program."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.depthwise.upsample import Upsample, parts_along, pieces_of
from microtron.isa.config import base, tiny

from ..operations import CONFIGS, check
from ..shapes import ANY

SPECS = {
    "2 × 2": Upsample(height=5, width=4, channels=6, zero_point_in=3, zero_point_out=-4),
    "corners": Upsample(height=3, width=4, channels=5, centred=False, images=3),
    "3 × 3": Upsample(height=2, width=3, channels=5, factors=3, rounding="even"),
    "columns": Upsample(height=3, width=4, channels=5, factors=(1, 4), zero_point_in=-99),
    "one row": Upsample(height=1, width=4, channels=5, low=-20, high=60),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_an_enlargement_equals_numpy(config):
    """Every other one, so that each meets half of the accelerators."""
    which = list(CONFIGS.values()).index(config)
    for spec in list(SPECS.values())[which % 2::2]:
        check(spec, config)


@settings(max_examples=6)
@given(ANY["upsample"])
def test_any_shape_equals_numpy(spec):
    check(spec, tiny)


def test_borders_are_pieces_of_their_own():
    spec = Upsample(height=4, width=1, channels=3)
    found = [(part.phase, part.first, part.count, part.start, part.weights)
             for part in parts_along(spec, 0)]
    assert found == [(0, 0, 1, 0, (4, 0)), (0, 1, 3, 0, (1, 3)),
                     (1, 0, 3, 0, (3, 1)), (1, 3, 1, 2, (0, 4))]
    assert len(pieces_of(spec)) == 8


def test_it_takes_a_small_part_of_what_a_dense_one_takes():
    spec = Upsample(height=20, width=20, channels=32)
    _, [report] = check(spec, base, "cycle")
    assert report.cycles < 20_000


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(CompileError, match="weights add up to 16, which 4 bits do not hold"):
        compile_op(Upsample(height=4, width=4, channels=4), replace(tiny, wgt_bits=4))
