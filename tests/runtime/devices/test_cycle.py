"""The cycle-exact simulator as a device: the hardware's words, and data as it happened."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.address_map import place_windows
from microtron.isa.config import tiny
from microtron.isa.instructions import (
    AluI,
    Buffer,
    Engines,
    Gemm,
    Load,
    MicroOp,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Access, Program, Segment
from microtron.isa.registers import counter_names
from microtron.isa.stream import encode, encode_micro_ops
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.device import Address
from microtron.runtime.devices.rtl import RtlDevice
from microtron.sim.functional.simulator import Functional
from microtron.testing.random_programs import random_program

from .test_rtl import FAULTS, MOODY, copying, is_copied, with_code

BARRIER = Sync(action=SyncAction.BARRIER)


def load(program, **options):
    device = CycleDevice(program.config, **options)
    device.load(program)
    return device


def complaint(kind, program, **options):
    """What a device says about a program that does not reach its end."""
    device = kind(program.config, **options)

    def run():
        device.load(program)
        device.run()
    with pytest.raises(ExecutionError) as caught:
        run()
    return str(caught.value)


@pytest.mark.parametrize("timing", [MemoryTiming(), MOODY], ids=["steady", "moody"])
def test_a_report_equals_that_of_the_hardware(timing):
    program = copying()
    device, hardware = load(program, timing=timing), RtlDevice(tiny, timing=timing)
    hardware.load(program)
    ours, theirs = device.run(), hardware.run()
    assert is_copied(device, program)
    assert tuple(ours.counters) == counter_names()
    assert replace(ours, device="rtl") == theirs
    assert (ours.timeline.start == theirs.timeline.start).all()
    assert (ours.timeline.end == theirs.timeline.end).all()
    assert device.run() == ours


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_leave_the_memory_of_the_functional_simulator(seed):
    program = random_program(tiny, seed, length=30)
    expected = Functional(program)
    expected.run()
    device = load(program, timing=MemoryTiming(stalls=seed * 10, seed=seed))
    device.run()
    for segment in program.segments:
        ours = device.read(Address(segment.name), segment.size)
        assert (ours == expected.memory.read(segment.name, 0, segment.size)).all()


def test_data_follow_the_order_in_which_instructions_started_not_the_program_s():
    program = copying()
    program = replace(program, code=program.code[[2, 1, 0, 3]])     # the store first, the load last
    device = load(program)
    start = device.run().timeline.start
    assert start[2] < start[1] < start[0]
    assert is_copied(device, program)


def test_without_data_time_passes_and_memory_stays():
    program = copying()
    device = load(program, data=False)
    assert device.run() == load(program).run()
    assert not device.read(Address("output"), 160).any()


# How a run fails: with the words of the hardware.

@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_in_the_hardware_s_words(name):
    program, message = FAULTS[name]
    device = load(program)
    with pytest.raises(ExecutionError, match=message) as caught:
        device.run()
    assert str(caught.value) == complaint(RtlDevice, program)
    assert not device.read(Address("output"), 160).any()
    device.load(copying())
    device.run()
    assert is_copied(device, copying())


def test_bus_errors_are_told_in_the_hardware_s_words():
    program = copying()
    code, source, target = place_windows(program)
    for address in (code, source + 96, target + 159):
        failing = range(address, address + 1)
        words = complaint(CycleDevice, program, failing=failing)
        assert words.endswith(("read_error fault", "write_error fault"))
        assert words == complaint(RtlDevice, program, failing=failing)


@pytest.mark.parametrize(("program", "limit", "expected"), [
    (with_code(Load(), Gemm(wait=Engines.ALU), Store(wait=Engines.GEMM), BARRIER, Sync()), None,
     "deadlock after 1 of 5 instructions"),
    (copying(), 60, "has not ended after 60 cycles, the limit "),
    (copying(400), 440, "has not ended after 440 cycles, the limit "),
    (copying(400), 100, "needs at least 400 cycles, but the limit is 100"),
], ids=["deadlock", "early", "at work", "too long"])
def test_a_program_that_does_not_end_is_told_in_the_hardware_s_words(program, limit, expected):
    words = complaint(CycleDevice, program, limit=limit)
    assert expected in words
    assert words == complaint(RtlDevice, program, limit=limit)


def test_after_a_fault_memory_holds_what_had_ended():
    code = [*copying().code, *encode([AluI(dst=9999), Sync()])]
    code[3:4] = encode([BARRIER])
    program = replace(copying(), code=np.array(code))
    device = load(program)
    with pytest.raises(ExecutionError, match=r"instruction 4 \(alui.*: index fault"):
        device.run()
    assert is_copied(device, program)


def test_micro_ops_are_those_that_memory_holds_when_the_run_begins():
    def micro_ops(dst):
        return encode_micro_ops([MicroOp(dst=dst)]).tobytes()

    code = [Load(buffer=Buffer.UOP, post=Engines.GEMM), Gemm(wait=Engines.LOAD), Sync()]
    device = load(Program(tiny, encode(code), (
        Segment("micro_ops", 8, Access.READ, np.frombuffer(micro_ops(9999), np.uint8)),)))
    with pytest.raises(ExecutionError, match=r"instruction 1 \(gemm wait=load\): index fault"):
        device.run()
    device.write(Address("micro_ops"), micro_ops(1))
    assert device.run().cycles > 0


def test_memory_that_no_bus_could_reach_is_refused_when_it_is_loaded():
    segments = tuple(Segment(f"s{number}", 1 << 30) for number in range(4))
    with pytest.raises(ExecutionError, match=r"segment s3 does not fit: .* addresses have 32 bits"):
        load(Program(tiny, encode([Sync()]), segments))
