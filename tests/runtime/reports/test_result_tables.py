"""Answers for people: all of a few numbers, or the largest of many."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.types import Quantization, TensorType
from microtron.runtime.reports.result_tables import answer


def said(array, scale=None):
    array = np.asarray(array)
    quantization = None if scale is None else Quantization((scale,), (1,))
    return answer(array, TensorType(array.shape, str(array.dtype), quantization))


@pytest.mark.parametrize(("array", "scale", "text"), [
    (np.array([[1, 3, -1]], np.int8), 0.5, "[0, 1, -1]"),           # real numbers, not stored ones
    (np.array([[1, 3, -1]], np.int8), None, "[1, 3, -1]"),
    (np.array(2.5, np.float32), None, "[2.5]"),
    (np.array([True, False]), None, "[True, False]"),
    (np.zeros((0, 3), np.float32), None, "[]"),
    (np.array([np.nan, np.inf], np.float32), None, "[nan, inf]"),
])
def test_small_answers_are_whole(array, scale, text):
    assert said(array, scale) == text


def test_of_a_vector_the_largest_have_one_index():
    scores = np.zeros((1, 1000), np.float32)
    scores[0, 7], scores[0, 300] = 0.25, 0.75
    assert said(scores) == ("largest: 0.75 at [300], 0.25 at [7], 0 at [0], 0 at [1], 0 at [2]; "
                            "smallest: 0")


def test_of_a_tensor_they_have_all_and_unsigned_numbers_do_not_wrap():
    values = np.zeros((2, 3, 4), np.uint8)
    values[1, 2, 3], values[0, 1, 0] = 255, 128
    assert said(values).startswith("largest: 255 at [1, 2, 3], 128 at [0, 1, 0], 0 at [0, 0, 0]")


def test_what_is_no_number_is_counted():
    values = np.full(20, np.nan, np.float32)
    values[3] = -2
    assert said(values).startswith("largest: -2 at [3], nan at")
    assert said(values).endswith("19 of 20 are NaN")
