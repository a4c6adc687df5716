"""The driver for Linux against the accelerator's Verilog, behind the shell and a model of PS7."""

import numpy as np
import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.config import tiny
from microtron.isa.instructions import Engines, Gemm, Load, Sync
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.registers import register_map
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.linux import LinuxLink
from microtron.runtime.devices.device import Address, run
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.runtime.devices.rtl import RtlDevice
from microtron.runtime.devices.rtl_build import library
from microtron.runtime.devices.rtl_harness import Harness, Window
from microtron.testing.random_programs import random_program

from ...runtime.devices.test_device import plus_seven
from ...runtime.devices.test_rtl import FAULTS, copying, is_copied, with_code
from .ps7_model import shell_verilog

PLACE = "board:pynq_z2@/dev/uio0"
PHYSICAL, SIZE = 0x1680_0000, 1 << 22
MOODY = MemoryTiming(read_latency=9, write_latency=4, stalls=100, seed=5)
NAMES = {register.offset: register.name for register in register_map()}


class HardwareRegisters:
    """Stands for /dev/uio0: the kernel's mapping becomes transactions on M_AXI_GP0."""

    def __init__(self, harness):
        self.harness, self.limit = harness, 200_000

    def read(self, offset):
        return self.harness.read(NAMES[offset])

    def write(self, offset, value):
        self.harness.write(NAMES[offset], value)

    def wait(self, seconds):
        return self.harness.run(self.limit)

    def close(self):
        pass


class HardwareBuffer:
    """Stands for a u-dma-buf: memory that the accelerator reaches through S_AXI_HP0."""

    def __init__(self, harness):
        self.address, self.data = PHYSICAL, np.full(SIZE, 0xAA, np.uint8)
        harness.place([Window(PHYSICAL, self.data, True)])


def driver(timing=None):
    harness = Harness(library(tiny, design=shell_verilog), timing or MemoryTiming())
    link = LinuxLink("/dev/uio0", HardwareRegisters(harness), HardwareBuffer(harness))
    return BoardDevice(tiny, place=PLACE, link=link), harness


@pytest.mark.parametrize("timing", [MemoryTiming(), MOODY], ids=["steady", "moody"])
def test_random_programs_leave_the_functional_memory(timing):
    (device, harness), right = driver(timing), FunctionalDevice(tiny)
    for seed in range(100, 120):
        program = random_program(tiny, seed)
        for each in (device, right):
            each.load(program)
            each.run()
        for segment in program.segments:
            where = Address(segment.name)
            assert (device.read(where, segment.size) == right.read(where, segment.size)).all()
        assert not harness.complaint()


def test_cycles_and_counters_are_those_of_the_hardware():
    device, _ = driver()
    direct = RtlDevice(tiny, design=shell_verilog)
    reports = []
    for each in (device, direct):
        each.load(copying())
        reports.append(each.run())
        assert is_copied(each, copying())
    assert reports[0].counters == reports[1].counters
    assert reports[0].cycles == reports[0].counters["cycles"] > 0


def test_inputs_go_in_and_outputs_come_out():
    x = np.array([[1, -1, 100, 127], [-128, 0, 5, 6]], np.int8)
    outputs, report = run(plus_seven(), {"x": x}, driver()[0])
    assert outputs["y"].tolist() == [[8, 6, 107, 127], [-121, 7, 12, 13]]
    assert report.device == PLACE


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_the_next_program_runs(name):
    program, message = FAULTS[name]
    device, _ = driver()
    device.load(program)
    with pytest.raises(ExecutionError, match=message):
        device.run()
    run(plus_seven(), {}, device)
    device.load(copying())
    device.run()
    assert is_copied(device, copying())


def test_a_deadlock_is_given_up_stopped_and_the_next_program_runs():
    device, harness = driver()
    device.connection.link.registers.limit = 2000
    device.load(with_code(Load(), Gemm(wait=Engines.ALU), Sync()))
    with pytest.raises(ExecutionError, match=r"has not ended after .* cycles, .*: \d of 3 "
                                             r"instructions were handed out$"):
        device.run()
    device.load(copying())
    device.run()
    assert is_copied(device, copying())
    assert not harness.complaint()


def test_several_programs_share_the_board_and_its_memory():
    first, _ = driver()
    second = BoardDevice(tiny, place=PLACE, link=first.connection.link)
    second.connection = first.connection
    for each, value in ((first, 1), (second, 2)):
        each.load(plus_seven())
        each.write(Address("input"), bytes([value] * 8))
    for each, value in ((second, 9), (first, 8), (second, 9)):
        each.run()
        assert each.read(Address("output"), 8).tolist() == [value] * 8
