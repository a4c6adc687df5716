"""cocotb drives a Verilog top through real AXI, and its verdict arrives here."""

from dataclasses import replace

import pytest

from microtron.isa.config import tiny

from ..runtime.stand_in import stand_in
from .cocotb_runner import CocotbError, run

WIDE = replace(tiny, bus_bits=256, address_bits=40)


@pytest.mark.parametrize(("config", "seed"), [(tiny, 1), (tiny, 2), (WIDE, 3)])
def test_a_copy_survives_random_pauses_on_every_channel(tmp_path, config, seed):
    assert run(config, "cocotb_copy", stand_in, tmp_path, seed=seed, size="777") == 2


def test_a_test_that_fails_is_reported_with_its_reason(tmp_path):
    with pytest.raises(CocotbError, match=r"(?s)failed: finds_that_one_is_two\n.*one is not two"):
        run(tiny, "cocotb_wrong", stand_in, tmp_path)


def test_a_module_that_cannot_be_imported_is_an_error(tmp_path):
    with pytest.raises(CocotbError, match="module cocotb_missing"):
        run(tiny, "cocotb_missing", stand_in, tmp_path)
