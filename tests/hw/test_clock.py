"""The clock does not rot: the slowest path of `tiny` after synthesis stays below a limit.

The estimate has no noise: the same hardware always gives the same path, since nothing is placed.
Lower the limits whenever the hardware gets faster; docs/clock.md says how to find what is slow.
Synthesis takes most of a minute, once for the same hardware.
"""

from __future__ import annotations

import pytest

from microtron.isa.config import tiny

from ..benchmarks.fpga_modules import fpga

LIMIT_NS = 12.7
LIMIT_LEVELS = 8


@pytest.fixture(scope="module")
def design():
    synthesis = fpga("synthesis")
    return synthesis.synthesize(synthesis.elaborate(tiny, "ecp5"),
                                fpga("families").FAMILIES["ecp5"])


def described(path, design):
    return "\n".join(fpga("show").lines("slowest", path, fpga("explain").Explainer(design.gates)))


def test_the_slowest_path_of_tiny_keeps_its_limit(design):
    timing = fpga("paths").Timing(design.cells)
    path, = timing.longest()
    assert path.time <= LIMIT_NS, described(path, design)
    deepest = max((timing.path_to(end) for end in timing.ends()), key=lambda path: path.levels)
    assert deepest.levels <= LIMIT_LEVELS, described(deepest, design)
