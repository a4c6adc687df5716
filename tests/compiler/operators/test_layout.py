"""Layouts say the same as packing does, for every form of every operator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.layout import Layout, Stage, tile_images
from microtron.compiler.operators.packing import check_operands
from microtron.isa.config import tiny

from .operations import CONFIGS, operands_for
from .shapes import ANY, form_for


@pytest.mark.parametrize("operator", ANY)
@given(st.data())
@settings(max_examples=12)
def test_tiles_have_the_bytes_of_packed_operands(operator, data):
    spec = data.draw(ANY[operator])
    config = data.draw(st.sampled_from([
        each for each in CONFIGS.values() if "separable" not in operator or (
            each.block_in == each.block_out)]))
    forms = list(operator_of(spec).forms(spec, config))
    chosen = form_for(operator, spec, config)
    for form in [*forms, *([chosen] if chosen else [])]:
        operands = check_operands(form.operands, operands_for(form))
        packed = form.pack(operands)
        for name, layout in form.layouts.items():
            if name == "output":
                continue
            plain = operands[name].reshape(layout.source)
            assert layout.pack(plain).tobytes() == packed[name].tobytes(), (form.note, name)
        output = form.layouts["output"]
        tiles = np.random.default_rng(0).integers(-128, 128, form.shapes["output"]).astype(np.int8)
        assert output.size == tiles.size
        assert output.unpack(tiles).tobytes() == form.unpack(tiles).tobytes()
        assert (output.unpack(output.pack(output.unpack(tiles))) == output.unpack(tiles)).all()


def test_axes_may_stand_elsewhere():
    array = np.random.default_rng(1).integers(-9, 9, (2, 5, 4, 3)).astype(np.int8)
    layout = tile_images(2, 3, 5, 4, tiny, 4)
    turned = layout.with_axes((2, 5, 4, 3), (0, 3, 1, 2))
    assert (turned.pack(array) == layout.pack(array.transpose(0, 3, 1, 2))).all()
    assert (turned.unpack(turned.pack(array)) == array).all()


def test_what_is_not_in_the_tiles_once_cannot_be_unpacked():
    for stage in (Stage((4,), (3,), ((0, 1),), (0,)), Stage((4,), (4, 2), ((0, 1), (0, 0)), (0,)),
                  Stage((4,), (4,), ((0, 1),), (1,))):
        with pytest.raises(CompileError, match="axis 0"):
            Layout((stage,)).unpack(np.zeros(stage.shape, np.int8))


@pytest.mark.parametrize(("change", "message"), [
    ({"steps": ((0, 1),)}, "has 2 starts and 1 steps"),
    ({"starts": (0,)}, "has 1 starts and 2 steps"),
    ({"shape": (2, 0)}, r"from shape \(2, 3\) to \(2, 0\) is empty"),
    ({"source": (2, 0)}, "is empty"),
    ({"steps": ((0, 1), (2, 1))}, "the step 1 along axis 2 of 2"),
    ({"steps": ((0, 1), (-1, 1))}, "the step 1 along axis -1 of 2"),
    ({"steps": ((0, 1), (1, -1))}, "the step -1 along axis 1 of 2"),
])
def test_a_stage_that_would_reach_beyond_its_source_is_refused(change, message):
    right = {"source": (2, 3), "shape": (2, 3), "steps": ((0, 1), (1, 1)), "starts": (0, 0)}
    Stage(**right)
    with pytest.raises(CompileError, match=message):
        Stage(**{**right, **change})
