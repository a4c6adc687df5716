"""Loops that only copy become transfers; others stay loops."""

import numpy as np
import pytest

from microtron.compiler.dma import form_transfers
from microtron.compiler.evaluate import evaluate
from microtron.compiler.expression import both, select
from microtron.compiler.lower import lower
from microtron.compiler.nest import Copy, Scope, statements_of
from microtron.compiler.nest_run import interpret
from microtron.compiler.schedule import Schedule
from microtron.compiler.tensor import compute, placeholder

X = placeholder("x", (6, 6), "int8")


def formed(function, shape=(6, 6), *, split=None):
    """The nest of a copy into the activation scratchpad and out again, and what it should give."""
    inside = compute("inside", shape, function)
    y = compute("y", shape, lambda i, j: inside[i, j])
    schedule = Schedule(y)
    schedule[inside].scope = Scope.INP
    if split:
        outer, _ = schedule[y].split(schedule[y].leaves[0], split)
        schedule[inside].compute_at(schedule[y], outer)
    return form_transfers(lower(schedule)), y


def copies(nest):
    return [each for each in statements_of(nest.body) if isinstance(each, Copy)]


def is_right(nest, y):
    values = np.random.default_rng(0).integers(-128, 128, X.shape, dtype=np.int8)
    results = interpret(nest, {nest.inputs[0]: values})
    return (results[nest.outputs[0]] == evaluate(y, {X: values})).all()


@pytest.mark.parametrize("split", [None, 2, 4])
def test_a_copy_is_one_transfer_each_way(split):
    nest, y = formed(lambda i, j: X[i, j], split=split)
    assert len(copies(nest)) == 2
    assert is_right(nest, y)


@pytest.mark.parametrize("split", [None, 3, 5])
def test_padding_is_recognized_with_its_value(split):
    nest, y = formed(lambda i, j: select(both(i >= 1, i < 7, j >= 2, j < 8), X[i - 1, j - 2], 7),
                     (8, 9), split=split)
    load, _ = copies(nest)
    assert load.padding == 7
    assert is_right(nest, y)


@pytest.mark.parametrize("function", [
    lambda i, j: X[j, i],
    lambda i, j: X[i, j] + 1,
    lambda i, j: X[i, 5 - j],
    lambda i, j: X[i // 2, j],
    lambda i, j: select(i < 3, X[i, j], 0),
], ids=["transposed", "changed", "reversed", "repeated", "half of it"])
def test_what_is_more_than_a_copy_stays_loops(function):
    nest, y = formed(function)
    assert len(copies(nest)) == 1           # only the way out
    assert is_right(nest, y)
