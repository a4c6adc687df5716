"""Every operator on every device: safe streams, NumPy's results to the bit, and the hardware takes
the cycles that its twin says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.runtime.devices.rtl import RtlDevice
from microtron.testing.campaign import SMALL as CONFIGS

from ...examples import examples
from .operations import check
from .shapes import ANY, CORNERS, form_for

# The right side of a product of two activations has 8 bits.
# Results are activations only where both have as many lanes.
OPERATORS = [pytest.param(operator, config, marks=[pytest.mark.soak] if config == "int4" else [])
             for operator in ANY for config, chosen in CONFIGS.items()
             if (operator, config) != ("matmul", "int4")
             and ("separable" not in operator or chosen.block_in == chosen.block_out)]
SPATIAL = {"1 × 1 spatial", "batch 4", "1 channels", "3 channels", "17 channels"}
WINDOWED = {"kernel larger than the image", "pads larger than the kernel",
            "stride larger than the kernel"}


def check_everywhere(operator, spec, config, timing, seed=0):
    """NumPy's result on every device, and the same cycles in both that count them."""
    _, (_, cycle, rtl) = check(
        spec, config, FunctionalDevice(config), CycleDevice(config, timing=timing),
        RtlDevice(config, timing=timing), seed=seed, form=form_for(operator, spec, config))
    assert rtl.cycles == cycle.cycles


@pytest.mark.parametrize(("operator", "config"), OPERATORS)
@given(data=st.data(), seed=st.integers(0, 99), latency=st.sampled_from((32, 1, 100)),
       stalls=st.sampled_from((0, 60)))
@examples(3)
def test_any_shape_equals_numpy_on_every_device(operator, config, data, seed, latency, stalls):
    check_everywhere(operator, data.draw(ANY[operator]), CONFIGS[config],
                     MemoryTiming(read_latency=latency, stalls=stalls), seed)


@pytest.mark.parametrize(("operator", "config"), OPERATORS)
def test_corners_equal_numpy_on_every_device(operator, config):
    for spec in CORNERS[operator].values():
        check_everywhere(operator, spec, CONFIGS[config], MemoryTiming())


def test_every_operator_is_tried_in_every_corner_that_it_has():
    assert list(CORNERS) == list(ANY)
    for operator, corners in CORNERS.items():
        windowed = any(hasattr(spec, "stride") for spec in corners.values())
        wanted = SPATIAL | WINDOWED if windowed and operator != "global pool" else SPATIAL
        assert set(corners) == wanted, operator
