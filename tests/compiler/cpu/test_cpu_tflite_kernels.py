"""Random models of one operator each, as machine code, equal TFLite's own kernels: integers to the
bit."""

from __future__ import annotations

import pytest

from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.passes.pipeline import run_passes

from ..frontends.tflite.test_tflite_kernels import CASES, agree, draw
from .machine import compute


def check(name, dtype, seed):
    data, arrays = draw(name, dtype, seed)
    graph = read_tflite(data, "random.tflite")
    found = compute(run_passes(graph), dict(zip(graph.inputs, arrays, strict=True)))
    agree(name, dtype, found, data, arrays)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_operator_equals_the_kernel(name, dtype):
    check(name, dtype, 0)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_operator_equals_the_kernel_for_long(name, dtype):
    for seed in range(1, 50):
        check(name, dtype, seed)
