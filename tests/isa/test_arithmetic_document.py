"""The examples of docs/arithmetic.md are true."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from microtron.isa.arithmetic import scale
from microtron.isa.instructions import Rounding

DOCUMENT = (Path(__file__).parents[2] / "docs" / "arithmetic.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| (-?\d+) \| (\d+) \| (\d+) \| (-?[\d.]+) \| (-?\d+) \| (-?\d+) \| "
                      r"(-?\d+) \|$", DOCUMENT, re.MULTILINE)


def test_the_document_has_examples():
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize("example", EXAMPLES, ids=" ".join)
def test_an_example_of_rounding_is_what_scale_computes(example):
    value, multiplier, shift = (int(each) for each in example[:3])
    assert Fraction(example[3]) == Fraction(value * multiplier, 1 << shift)
    assert [scale(value, multiplier, shift, rounding) for rounding in
            (Rounding.TWICE, Rounding.EVEN, Rounding.AWAY)] == [int(each) for each in example[4:]]
