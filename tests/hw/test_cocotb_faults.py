"""What goes wrong between accelerator, memory and driver, on buses that were not written by us."""

import pytest

from microtron.hw.top import verilog
from microtron.isa.config import tiny

from .cocotb_runner import run


@pytest.mark.parametrize(("module", "tests"), [("cocotb_faults", 6), ("cocotb_bus_errors", 4)])
def test_every_fault_halts_touches_nothing_else_and_lets_the_next_program_run(
        tmp_path, module, tests):
    assert run(tiny, module, verilog, tmp_path, seed=1) == tests
