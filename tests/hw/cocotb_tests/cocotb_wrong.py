"""A test that fails, to see that the runner says so."""

import cocotb
from cocotb.triggers import Timer


@cocotb.test()
async def finds_that_one_is_two(dut):
    await Timer(1, "ns")
    assert int(dut.rst.value) + 1 == 2, "one is not two"
