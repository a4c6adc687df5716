"""float16 to and from other types, with instructions and without, against NumPy."""

import re
from itertools import product

import numpy as np
import pytest

from microtron.base.machine_code import assembly
from microtron.base.processor import TARGETS, Target
from microtron.compiler.expression.expression import FLOATS
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule

from .machine import compiled, run

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
# What compilers' libraries call conversions of halves: __truncdfhf2, __aeabi_d2h, __gnu_h2f_ieee …
CALLS = re.compile(r"__\w*(hf|\dh|h\d)\w*")


def doubles_near_ties():
    """Halves, the middles between them, and what is next to a middle: rounding to float32 first
    would make it one."""
    with np.errstate(all="ignore"):
        finite = np.unique(HALVES[np.isfinite(HALVES)].astype(np.float64))
        middles = np.concatenate(((finite[:-1] + finite[1:]) / 2, [-65520.0, 65520.0]))
        around = [np.nextafter(middles, end) for end in (np.inf, -np.inf)]
    return np.concatenate((HALVES.astype(np.float64), middles, *around, [
        1e300, -1e300, 5e-324, 2.0 ** -25 * (1 + 2.0 ** -50), -3.4e38, 3.5e38, 1e-40]))


def casting(values, dtype, lanes):
    x = placeholder("x", values.shape, str(values.dtype))
    y = compute("y", values.shape, lambda i: x[i].cast(dtype))
    schedule = Schedule(y)
    if lanes > 1:
        _, inner = schedule[y].split(schedule[y].leaves[0], lanes)
        schedule[y].vectorize(inner)
    return lower(schedule)


@pytest.fixture(params=[True, False], ids=["instructions", "integers"])
def _both_ways(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(Target, "converts_halves", False)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("before", "after"), [
    *product(("float32", "float64", "int64"), ("float16",)), *product(("float16",), FLOATS[1:])])
def test_every_half_and_every_tie_is_what_numpy_says(before, after, lanes):
    values = HALVES if before == "float16" else doubles_near_ties()
    if before == "int64":
        values = np.arange(-70_000, 70_000)
    with np.errstate(all="ignore"):
        values = values.astype(before)
        expected = values.astype(after)
    nest = casting(values, after, lanes)
    status, found = run(nest, {nest.inputs[0]: values})
    assert status == 0
    np.testing.assert_array_equal(found[nest.outputs[0]], expected)
    np.testing.assert_array_equal(np.signbit(found[nest.outputs[0]]), np.signbit(expected))


@pytest.mark.parametrize("name", TARGETS)
def test_no_library_is_asked_for_a_half(name):
    for before, after in (*product(("float16",), ("float32", "float64", "int8")),
                          *product(("float32", "float64", "int64"), ("float16",))):
        text = compiled(casting(np.zeros(20, before), after, 8), TARGETS[name])[2]
        assert "half" in text
        assert not CALLS.search(assembly(text, TARGETS[name])), (before, after)
