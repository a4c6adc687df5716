"""The self-test of devices: it covers the instruction set, passes good devices and says where a bad
one parts from the simulator."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from microtron.isa.config import Config, base, tiny
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer, GemmFlags, Load, Store
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.stream import decode
from microtron.isa.verification.verifier import verify
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.diagnosis import check_memory, check_registers
from microtron.runtime.board.link import LinkError
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.device import Address
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.testing import self_test as tested
from microtron.testing.instruction_programs import instruction_programs
from microtron.testing.self_test import Comparison, find_memory_fault, self_test

from ..command import bad, command, good
from ..runtime.board.fake_board import DirectLink, FakeBoard

LITTLE = Config(block_in=4, block_out=4, uop_bytes=1024, inp_bytes=512, wgt_bytes=1024,
                acc_bytes=2048, out_bytes=512, acc_banks=2, window_taps=3, tables=8)
MEMORY = range(0x4000_0000, 0x4010_0000)


@pytest.fixture
def without_network(monkeypatch):
    """The network takes seconds to compile."""
    monkeypatch.setattr(tested, "digits_programs", lambda config: ())


@pytest.mark.parametrize("config", [tiny, base, LITTLE], ids=["tiny", "base", "little"])
def test_the_programs_have_every_variant_of_every_instruction_and_are_safe(config):
    found = {each.name: each for each in instruction_programs(config)}
    assert set(found) >= {"load", "gemm", "alu", "alui", "requantize", "store", "sync"}
    assert ("window" in found, "table" in found) == (config.has_windows, config.tables > 0)
    bodies = {}
    for name, each in found.items():
        verify(each.program)
        code = list(decode(each.program.code))
        bodies[name] = [code[place] for place in each.instructions]
    for name, kind in (("alu", Alu), ("alui", AluI)):
        assert {each.op for each in bodies[name] if isinstance(each, kind)} == set(AluOp)
    assert {each.buffer for each in bodies["load"] if isinstance(each, Load)} == {
        Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8}
    assert {each.buffer for each in bodies["store"] if isinstance(each, Store)} == {
        Buffer.OUT, Buffer.ACC}
    assert {bool(each.flags & GemmFlags.DEPTHWISE) for each in bodies["gemm"]} == {True, False}
    assert {each.flags & 0b1101 for each in bodies["requantize"]} == {
        rounding << 2 | acc for rounding in range(3) for acc in range(2)}


class Flawed(FunctionalDevice):
    """Adds one to a byte that a program with such an instruction writes."""

    def __init__(self, config, is_bad):
        super().__init__(config)
        self.is_bad = is_bad

    def load(self, program):
        super().load(program)
        self.code = list(decode(program.code))

    def run(self):
        report = super().run()
        if any(map(self.is_bad, self.code)):
            where = Address("dump", 5)
            self.write(where, bytes([(int(self.read(where, 1)[0]) + 1) % 256]))
        return report


def test_the_instruction_with_which_device_and_simulator_part_is_named(without_network):
    def is_bad(instruction):
        return isinstance(instruction, AluI) and instruction.op == AluOp.SHR

    checks = {each.name: each for each in self_test(Flawed(tiny, is_bad), tiny)}
    problem = checks.pop("alui").problem
    assert problem.startswith("byte 5 of segment dump is ")
    assert "1 of " in problem
    assert "; they part at instruction " in problem
    assert "alui" in problem.split("they part at")[1]
    alui = next(each for each in instruction_programs(tiny) if each.name == "alui").program
    first = next(place for place, each in enumerate(decode(alui.code)) if is_bad(each))
    assert f"instruction {first} " in problem
    assert all(each.passed for name, each in checks.items() if name != "sync")


def test_a_flaw_of_every_program_is_before_the_first_instruction():
    program, *_ = instruction_programs(tiny)
    device = Flawed(tiny, lambda each: True)
    found = Comparison(device, CycleDevice(tiny)).check("load", program.program,
                                                         program.instructions)
    assert "they part before the first instruction that is tested" in found.problem


def test_another_number_of_cycles_is_a_difference_on_devices_that_are_exact():
    program = next(iter(instruction_programs(tiny)))
    slow = CycleDevice(tiny, timing=MemoryTiming(read_latency=99))
    found = Comparison(slow, CycleDevice(tiny)).check("load", program.program,
                                                      program.instructions)
    assert f"it takes {found.cycles} cycles, but the simulator {found.expected}" in found.problem


def test_memory_that_loses_a_byte_is_found():
    class Forgetful(FunctionalDevice):
        def read(self, address, size):
            found = super().read(address, size)
            if address.segment == "second" and size > 4096:
                found[4096] ^= 4
            return found

    assert find_memory_fault(FunctionalDevice(tiny), tiny) is None
    assert "byte 4096 of segment second" in find_memory_fault(Forgetful(tiny), tiny)


class Bent(DirectLink):
    """A link to a board with a broken wire."""

    def __init__(self, board, *, data=0, address=0, register=""):
        super().__init__(board)
        self.data, self.alias, self.register = data, address, register

    def read(self, address, size):
        return super().read(address & ~self.alias, size) & ~np.uint8(self.data)

    def write(self, address, data):
        super().write(address & ~self.alias, data)

    def read_registers(self, offset, count):
        found = super().read_registers(offset, count)
        return [value & ~(1 << 7) if 4 * number + offset == 0x058 and self.register else value
                for number, value in enumerate(found)]


def board(config=tiny, **flaws):
    return BoardDevice(config, place="board:ulx3s@/dev/null",
                       link=Bent(FakeBoard(config, MEMORY, 0x9000_0000), **flaws))


def test_wires_of_a_board_are_checked():
    assert check_registers(board()) is None
    assert check_memory(board()) is None
    assert check_memory(board(data=128)) == "memory at 0x40000000 is 0x00, but 0x80 was written"
    for bit in (6, 12, 19):
        assert "memory at 0x40" in check_memory(board(address=1 << bit))
    assert "register segment1_size is" in check_registers(board(register="segment1_size"))


def test_all_of_it_passes_on_a_board(without_network):
    checks = list(self_test(board(), tiny))
    assert [each.name for each in checks][:3] == ["registers", "memory of the board", "memory"]
    assert all(each.passed for each in checks), [each for each in checks if not each.passed]


def test_a_board_that_does_not_answer_is_no_difference():
    class Dead(Bent):
        def wait(self, seconds):
            raise LinkError("gone")

    dead = BoardDevice(tiny, place="board:ulx3s@/dev/null",
                       link=Dead(FakeBoard(tiny, MEMORY, 0x9000_0000)))
    program = next(iter(instruction_programs(tiny)))
    with pytest.raises(LinkError, match="gone"):
        Comparison(dead, CycleDevice(tiny)).check("load", program.program, program.instructions)


def test_the_command_prints_checks_and_its_exit_code_tells(monkeypatch):
    found = json.loads(good("selftest", "--device", "functional", "--json"))
    assert found["passed"]
    assert [each["name"] for each in found["checks"]][-1] == "digits"
    assert found["checks"][-1]["expected"] > 10_000
    monkeypatch.setattr(tested, "digits_programs", lambda config: ())
    out = good("selftest", "--device", "cycle", "--memory", "read_latency=50")
    assert "8 of 8 checks passed" in out
    monkeypatch.setattr("microtron.runtime.devices.device.open_device",
                        lambda *_, **__: Flawed(tiny, lambda each: isinstance(each, Alu)))
    ended = command("selftest", "--device", "functional")
    assert ended.code == 1
    assert "alu: byte 5 of segment dump is" in ended.error


@pytest.mark.parametrize(("arguments", "message"), [
    (("--device", "functional", "--memory", "stalls=1"), "--memory is for the cycle or rtl device"),
    (("--device", "functoinal"), "did you mean functional?"),
    (("--device", "cycle", "--config", "tny"), "did you mean tiny?"),
    (("--device", "board:ulx3s"), "names no board and its address"),
    ((), "--device"),
])
def test_bad_input_is_one_line(arguments, message):
    assert message in bad("selftest", *arguments)


@pytest.mark.soak
@pytest.mark.parametrize("config", ["tiny", "micro"])
def test_the_rtl_passes(config):
    found = json.loads(good("selftest", "--device", "rtl", "--config", config, "--json"))
    assert found["passed"], found
    assert all(each["cycles"] == each["expected"] for each in found["checks"])


def test_another_configuration_than_the_bitstream_has_is_refused(monkeypatch):
    monkeypatch.setattr("microtron.runtime.devices.device.open_device",
                        lambda *_, **__: board(replace(tiny, queue_depth=8)))
    assert "has another configuration; leave it out" in bad(
        "selftest", "--device", "board:ulx3s@/dev/null", "--config", "tiny")
