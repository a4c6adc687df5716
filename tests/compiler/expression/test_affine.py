"""Affine forms of indices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.expression.affine import Affine, affine, simplify_index
from microtron.compiler.expression.expression import Axis, Constant, maximum

from .indices import AFFINE_INDICES, AXES, values

i, j, k = AXES
FORMS = st.builds(Affine, st.integers(-9, 9), st.dictionaries(
    st.sampled_from(AXES), st.integers(-4, 4).filter(bool)))


@given(FORMS)
def test_a_form_is_the_form_of_its_expression(form):
    assert affine(form.expression()) == form


@given(AFFINE_INDICES)
def test_an_index_and_its_form_have_the_same_values(index):
    form = affine(index)
    assert form is not None
    for value, same, shorter in values(index, form.expression(), simplify_index(index)):
        assert value == same == shorter


@given(AFFINE_INDICES)
def test_the_range_of_a_form_is_exact(index):
    found = [value for value, in values(index)]
    assert affine(index).range() == (min(found), max(found))


@given(FORMS, FORMS, st.integers(-3, 3))
def test_sums_and_multiples_of_forms_are_those_of_their_values(one, other, factor):
    forms = (one, other, one + other, one.times(factor))
    for first, second, added, multiple in values(*(form.expression() for form in forms)):
        assert added == first + second
        assert multiple == first * factor


@given(FORMS, st.integers(0, 4), st.integers(0, 2))
def test_a_form_at_known_values_is_what_it_is_there(form, first, second):
    at = form.at({i: first, j: second})
    assert at == form.drop_axes(i, j) + Affine(form.of(i) * first + form.of(j) * second)
    assert at.of(i) == at.of(j) == 0


def test_terms_that_cancel_are_left_out():
    assert affine(i * 4 + j - i * 4) == Affine(0, {j: 1})
    assert affine(i * 2).times(0) == Affine()


@pytest.mark.parametrize("index", [
    i * j, i // 2, i % 2, maximum(i, j), i + j // 2, Constant(1, "int8"), Constant(1.5, "float32"),
    i.cast("int32"),
])
def test_what_is_not_affine_has_no_form(index):
    assert affine(index) is None


@given(FORMS, st.integers(1, 6))
def test_a_quotient_and_its_rest_are_affine_only_where_all_their_values_are(form, divisor):
    index = form.expression()
    quotient, rest = index // divisor, index % divisor
    for expression in (quotient, rest):
        found = affine(expression)
        if found is not None:
            for value, same in values(expression, found.expression()):
                assert value == same


def test_the_quotient_of_a_multiple_and_less_than_the_divisor_is_affine():
    inner = Axis("inner", 8)
    assert affine((i * 16 + inner + 3) // 16) == Affine(0, {i: 1})
    assert affine((i * 16 + inner + 3) % 16) == Affine(3, {inner: 1})
    assert affine((i * 16 + inner + 9) // 16) is None
