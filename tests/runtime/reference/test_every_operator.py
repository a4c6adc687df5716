"""Every operator that is read, as machine code, means what an independent reference makes of it:
random shapes, also empty ones, and numbers, also infinite ones and what is no number."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import microtron.compiler.frontends.onnx.read_onnx  # noqa: F401  (registers operators)
from microtron.compiler.frontends.onnx.operator_table import supported_operators
from microtron.compiler.passes.pipeline import run_passes
from microtron.runtime.models.onnx_backend import roomy_outputs, specialize, used_rows

from ...compiler.cpu.machine import compute
from . import elements, images, microsoft, moves, steps, sums  # noqa: F401  (register nodes)
from .nodes import NODES, Draw, expected, model_of

EXAMPLES = 2


def check(name: str, seed: int) -> None:
    drawn = NODES[name](Draw(zlib.crc32(f"{name} {seed}".encode())), name)
    model, arrays = model_of(name, drawn)
    graph = specialize(model, arrays, [])
    found = compute(run_passes(graph), arrays)
    if roomy_outputs(graph):
        found = [used_rows(each) for each in found]
    for one, other in zip(found, expected(name, drawn), strict=True):
        wanted = np.asarray(other)
        assert (one.shape, one.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(one, wanted, rtol=drawn.rtol, atol=drawn.atol)


@pytest.mark.parametrize("name", NODES)
def test_compiled_nodes_mean_what_the_reference_makes_of_them(name):
    for seed in range(EXAMPLES):
        check(name, seed)


@pytest.mark.soak
@pytest.mark.parametrize("name", NODES)
def test_compiled_nodes_mean_what_the_reference_makes_of_them_for_long(name):
    for seed in range(EXAMPLES, 100):
        check(name, seed)


def test_every_operator_that_is_read_is_drawn():
    assert set(NODES) == set(supported_operators())
