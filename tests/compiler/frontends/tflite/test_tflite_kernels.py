"""Random models of one operator each equal TFLite's own kernels: integers to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.frontends.tflite.operator_node import RULES
from microtron.compiler.graph.evaluate_graph import evaluate

from . import tflite_moves, tflite_sequential  # noqa: F401  (declare cases)
from .tflite_cases import CASES
from .tflite_files import reference

# The reference resolver has no ELU, CEIL and ROUND; its SUM of int8 adds up something else than its
# inputs (that of uint8 does not), and its response norm leaves out the last channel of each window.
OPTIMIZED = {("ELU", "int8"), ("ELU", "float32"), ("CEIL", "float32"), ("ROUND", "float32"),
             ("LOCAL_RESPONSE_NORMALIZATION", "float32"), ("SUM", "int8")}
# Near a half, these depend on how the host rounds real numbers.
ONE_OFF = {("RESIZE_BILINEAR", "uint8"), ("SUM", "int8"), ("GELU", "int8"), ("GELU", "uint8")}


def draw(name, dtype, seed):
    """A model's file and numbers for its inputs."""
    rng = np.random.default_rng([seed, *f"{name} {dtype}".encode()])
    model, arrays = CASES[name, dtype](rng, dtype, name)
    return model.data(), arrays


def agree(name, dtype, found, data, arrays):
    """Results are what TFLite's kernel gives."""
    right = reference(data, arrays, optimized=(name, dtype) in OPTIMIZED)
    for output, wanted in zip(found, right, strict=True):
        assert output.dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(output, wanted, rtol=2e-5, atol=2e-5)
        elif (name, dtype) in ONE_OFF:
            assert output.shape == wanted.shape
            assert np.abs(output.astype(int) - wanted).max() <= 1
        else:
            np.testing.assert_array_equal(output, wanted, strict=True)


def check(name, dtype, seed):
    data, arrays = draw(name, dtype, seed)
    graph = read_tflite(data, "random.tflite")
    found = evaluate(graph, dict(zip(graph.inputs, arrays, strict=True)))
    agree(name, dtype, [found[each] for each in graph.outputs], data, arrays)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_operator_equals_the_kernel(name, dtype):
    for seed in range(4):
        check(name, dtype, seed)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_operator_equals_the_kernel_for_long(name, dtype):
    for seed in range(4, 200):
        check(name, dtype, seed)


# What has no result of its own, or no kernel to compare with: streams and sparse constants.
ELSEWHERE = {"ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE", "DENSIFY"}


def test_every_operator_that_is_read_has_a_case():
    assert {name for name, _ in CASES} | ELSEWHERE == set(RULES)
