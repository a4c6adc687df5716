"""The whole accelerator under cocotb, with a memory and a driver that were not written by us."""

import pytest

from microtron.isa.config import tiny
from microtron.isa.config_files import format_toml

from ..emitted import CONFIGS
from .cocotb_runner import CocotbError, run

# Other tests run more random programs on hardware of many shapes.
RANDOM = [pytest.param("tiny", 4), *(pytest.param(name, 16, marks=pytest.mark.soak)
                                     for name in CONFIGS)]


@pytest.mark.parametrize(("name", "programs"), RANDOM)
def test_random_programs_survive_random_pauses_on_every_channel(tmp_path, name, programs):
    config = CONFIGS[name]
    assert run(config, "cocotb_programs", tmp_path, seed=1, programs=str(programs),
               configuration=format_toml(config)) == 1


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("module", "tests"), [("cocotb_faults", 6), ("cocotb_bus_errors", 4)])
def test_every_fault_halts_touches_nothing_else_and_lets_the_next_program_run(
        tmp_path, module, tests, every):
    """Every sixth case; the others take as long in `make soak`."""
    assert run(tiny, module, tmp_path, seed=1, every=str(every)) == tests


def test_a_test_that_fails_is_reported_with_its_reason(tmp_path):
    with pytest.raises(CocotbError, match=r"(?s)failed: finds_that_one_is_two\n.*one is not two"):
        run(tiny, "cocotb_wrong", tmp_path)


def test_a_module_that_cannot_be_imported_is_an_error(tmp_path):
    with pytest.raises(CocotbError, match="module cocotb_missing"):
        run(tiny, "cocotb_missing", tmp_path)
