"""The whole accelerator through memory and driver that were not written by us."""

import pytest

from microtron.hw.top import verilog
from microtron.isa.config_files import format_toml

from ..runtime.test_rtl_programs import CONFIGS
from .cocotb_runner import run


@pytest.mark.parametrize("name", CONFIGS)
def test_random_programs_survive_random_pauses_on_every_channel(tmp_path, name):
    config = CONFIGS[name]
    assert run(config, "cocotb_programs", verilog, tmp_path, seed=1, programs="12",
               configuration=format_toml(config)) == 1
