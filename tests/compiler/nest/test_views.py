"""Nests joined on views of common buffers do what they did alone, each in its part."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import Axis
from microtron.compiler.nest.nest import Allocate, Buffer, Copy, Nest, Scope, make_sequence
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.nest.views import View, concatenate

from .nests import loop, region


def through_the_chip(name, size):
    """y[i] = x[i], by way of a scratchpad."""
    x, y = Buffer(f"x.{name}", (size, 1, 4), "int8"), Buffer(f"y.{name}", (size, 1, 4), "int8")
    middle, i = Buffer(f"m.{name}", (1, 1, 4), "int8", Scope.INP), Axis("i", size)
    here, lanes = (i, 1), ((0, 1), (0, 4))
    body = loop(i, Allocate(middle, make_sequence(
        Copy(region(middle, (0, 1), *lanes), region(x, here, *lanes)),
        Copy(region(y, here, *lanes), region(middle, (0, 1), *lanes)))))
    return Nest((x,), (y,), body)


def test_parts_read_and_write_their_places_of_common_buffers():
    x, y = Buffer("x", (2, 3, 1, 4), "int8"), Buffer("y", (2, 3, 1, 4), "int8")
    parts = []
    for number in range(2):
        nest = through_the_chip(str(number), 3)
        parts.append((nest, {nest.inputs[0]: View(x, {0: number}),
                             nest.outputs[0]: View(y, {0: 1 - number})}))
    together = concatenate(parts, (x,), (y,))
    values = np.arange(24, dtype=np.int8).reshape(x.shape)
    result = interpret(together, {x: values})[y]
    assert np.array_equal(result, values[::-1])
    assert (together.inputs, together.outputs) == ((x,), (y,))


def test_a_buffer_between_views_of_different_kinds_is_refused():
    nest = through_the_chip("alone", 3)
    x, y = Buffer("x", (2, 3, 1, 4), "int8"), Buffer("y", (3, 2, 1, 4), "int8")
    views = {nest.inputs[0]: View(x, {0: 1}), nest.outputs[0]: View(y, {1: 0})}
    with pytest.raises(CompileError, match="is copied from and to views that have"):
        concatenate([(nest, views)], (x,), (y,))


def test_buffers_on_the_chip_get_the_dimensions_that_a_view_has_more():
    nest = through_the_chip("alone", 3)
    x, y = Buffer("x", (3, 2, 1, 4), "int8"), Buffer("y", (3, 2, 1, 4), "int8")
    views = {nest.inputs[0]: View(x, {1: 1}), nest.outputs[0]: View(y, {1: 0})}
    together = concatenate([(nest, views)], (x,), (y,))
    verify_nest(together)
    assert together.body.body.buffer.shape == (1, 1, 1, 4)
