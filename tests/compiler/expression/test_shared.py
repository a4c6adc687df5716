"""A node that is used in several places is met once: expressions that would have more nodes than
memory holds, written out, are built, checked, computed and lowered."""

from __future__ import annotations

import numpy as np

from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import Expression, select, walk
from microtron.compiler.expression.rewrite import inline_tensor
from microtron.compiler.expression.tensor import compute, constant, placeholder
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule

STEPS = 60
X = placeholder("x", (3,), "int32")
VALUES = np.array([1, -5, 7], np.int32)


def double(value: Expression) -> Expression:
    for _ in range(STEPS):
        value = select(value < 0, value + value, value * 3 - value)
    return value


def expected() -> np.ndarray:
    return (VALUES.astype(object) * 2 ** STEPS % (1 << 32)).astype(np.int64).astype(np.int32)


def test_walk_meets_a_node_once():
    value = double(X[0])
    assert len(list(walk(value))) < 8 * STEPS


def test_it_is_computed_by_the_evaluator_and_as_a_nest():
    y = compute("y", (3,), lambda i: double(X[i]))
    np.testing.assert_array_equal(evaluate(y, {X: VALUES}), expected())
    nest = lower(Schedule(y))
    verify_nest(nest)
    np.testing.assert_array_equal(
        interpret(nest, {nest.inputs[0]: VALUES})[nest.outputs[0]], expected())


def test_what_is_put_in_the_place_of_an_element_stays_shared():
    half = compute("half", (3,), lambda i: double(X[i]))
    y = compute("y", (3,), lambda i: double(half[i]))
    value = inline_tensor(y.body, half)
    assert len(list(walk(value))) < 16 * STEPS


def test_a_constant_brings_its_values():
    table = constant("table", np.array([10, 20, 30], np.int32))
    y = compute("y", (3,), lambda i: table[2 - i] + X[i])
    np.testing.assert_array_equal(evaluate(y, {X: VALUES}), [31, 15, 17])
