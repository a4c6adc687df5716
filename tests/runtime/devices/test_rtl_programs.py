"""Random programs on the hardware: equal to its twin in every cycle, and to the functional memory.

240 right programs, 120 wrong ones and 20 whose instructions take long, over two configurations,
each with a memory of its own; `make soak` runs some more of them, also on a third configuration,
and goes on with as many as it is told, over these, all presets and random ones.
"""

import pytest

from microtron.testing.campaign import SMALL as CONFIGS
from microtron.testing.campaign import check_case, long_case, valid_case, wrong_case
from microtron.testing.differences import explain, save_case

PART = 60
RIGHT = {"tiny": 240, "batch": 180, "int4": 180}
WRONG = {"tiny": 60, "batch": 60, "int4": 60}


def marked(name, first, tested):
    """What `make test` leaves to `make soak`: programs after the first ones, and 4-bit weights.
    Their hardware takes a minute to compile, and tests/hw/gemm/test_gemm.py has them, too."""
    later = name == "int4" or first >= tested
    return pytest.param(name, first, marks=[pytest.mark.soak] if later else [])


def parts(programs):
    return [marked(name, first, tested=120) for name, count in programs.items()
            for first in range(0, count, PART)]


def assert_equal(case, folder, name, *, right):
    comparison = check_case(case, right=right)
    if comparison.differences:
        path = folder / f"{name}.mt"
        save_case(comparison, path)
        pytest.fail(explain(comparison, path))
    return comparison


@pytest.mark.parametrize(("name", "first"), parts(RIGHT))
def test_random_programs_take_the_twin_s_cycles_and_leave_the_functional_memory(
        tmp_path, name, first):
    for seed in range(first, first + PART):
        case = valid_case(CONFIGS[name], seed)
        comparison = assert_equal(case, tmp_path, f"{name}-{seed}", right=True)
        assert comparison.rtl.counters["instructions"] == len(case.program.code)
        assert comparison.rtl.cycles > 0


@pytest.mark.parametrize(("name", "first"), parts(WRONG))
def test_wrong_programs_and_buses_fail_alike_in_the_same_cycle(tmp_path, name, first):
    failed = 0
    for seed in range(first, first + PART):
        comparison = assert_equal(wrong_case(CONFIGS[name], seed), tmp_path, f"{name}-{seed}",
                                  right=False)
        failed += comparison.rtl.words != ""
    assert failed > PART / 4        # some are wrong only in that they race


@pytest.mark.parametrize(("name", "first"), [marked(name, first, tested=10)
                                             for name in CONFIGS for first in (0, 10)])
def test_programs_whose_instructions_take_long_take_the_twin_s_cycles(tmp_path, name, first):
    reached = 0
    for seed in range(first, first + 10):
        comparison = assert_equal(long_case(CONFIGS[name], seed), tmp_path, f"{name}-{seed}",
                                  right=False)
        reached += comparison.rtl.words == ""
    assert reached > 5          # some gemms race with the load of their micro-ops
