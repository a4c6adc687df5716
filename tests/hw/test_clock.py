"""The clock does not rot: the slowest paths of `tiny` after synthesis stay below a limit.

The estimate has no noise: the same hardware always gives the same path, since nothing is placed.
Lower the limits whenever the hardware gets faster; docs/clock.md says how to find what is slow.
A unit takes seconds; `make soak` takes three more, and the whole, with the paths from one unit
to another.
"""

from __future__ import annotations

import pytest

from microtron.boards.timing.critical_paths import Timing
from microtron.boards.timing.explain_path import Explainer
from microtron.boards.timing.families import FAMILIES
from microtron.boards.timing.path_text import format_path
from microtron.boards.timing.unit_synthesis import elaborate, synthesize
from microtron.isa.config import tiny

LIMIT_NS = 10.9
LIMIT_LEVELS = 8
# Of units alone, whose inputs and outputs count as registers outside.
UNITS = {"gemm": (7.9, 6), "load": (10.0, 6), "store": (8.9, 7), "control": (8.9, 5),
         "fetch": (8.5, 6)}
# With the whole in `make soak`, as they take longest to synthesize.
LATER = ("load", "store", "control", "gemm")


@pytest.fixture(scope="module")
def text():
    return elaborate(tiny, "ecp5")


def describe(path, design):
    return "\n".join(format_path("slowest", path, Explainer(design.gates)))


def check(text, unit, most_ns, most_levels):
    design = synthesize(text, FAMILIES["ecp5"], unit)
    timing = Timing(design.cells)
    path, = timing.longest()
    assert path.time <= most_ns, describe(path, design)
    deepest = max((timing.path_to(end) for end in timing.ends()), key=lambda path: path.levels)
    assert deepest.levels <= most_levels, describe(deepest, design)


@pytest.mark.parametrize("unit", [
    pytest.param(unit, marks=[pytest.mark.soak] if unit in LATER else []) for unit in UNITS])
def test_the_slowest_path_of_a_unit_keeps_its_limit(text, unit):
    check(text, unit, *UNITS[unit])


@pytest.mark.soak
def test_the_slowest_path_of_tiny_keeps_its_limit(text):
    check(text, None, LIMIT_NS, LIMIT_LEVELS)
