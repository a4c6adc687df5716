"""A board as a device: what it checks first, how it runs, and what it says when it cannot."""

import gc
import json
from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import ExecutionError, MicrotronError
from microtron.isa.config import PAGE_BYTES, small, tiny
from microtron.isa.instructions import AluI, Load, Sync
from microtron.isa.registers import Status, counter_names
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.link import LinkError
from microtron.runtime.devices.device import Address, open_device, run

from ..devices.test_device import plus_seven
from ..devices.test_rtl import with_code
from .fake_board import CYCLES, DirectLink, FakeBoard

PLACE = "board:ulx3s@/dev/null"
MEMORY = range(0x4001_0000, 0x4003_0000)


def board(config=tiny, **options):
    return FakeBoard(config, MEMORY, 0x9000_0000, **options)


def device(fake=None, **options):
    return BoardDevice(tiny, place=PLACE, link=DirectLink(fake or board()), **options)


def test_inputs_go_in_and_outputs_come_out():
    x = np.array([[1, -1, 100, 127], [-128, 0, 5, 6]], np.int8)
    outputs, report = run(plus_seven(), {"x": x}, device())
    assert outputs["y"].tolist() == [[8, 6, 107, 127], [-121, 7, 12, 13]]
    assert outputs["rest"].tolist() == [0, 0, 0, 0]         # not what the memory held before
    assert report.device == PLACE
    assert report.cycles == CYCLES
    assert tuple(report.counters) == counter_names()
    assert report.counts.instructions["alui"] == 1
    assert json.loads(json.dumps(report.to_dict()))["memory"] is None


def test_a_loaded_program_runs_again_on_new_input():
    chosen = device()
    chosen.load(plus_seven())
    for value in (1, 2, 3):
        chosen.write(Address("input", 1), bytes([value] * 7))
        chosen.run()
        assert chosen.read(Address("output", 1), 7).tolist() == [value + 7] * 7
    chosen.load(plus_seven())
    assert chosen.read(Address("input"), 3).tolist() == [1, 2, 3]
    assert not chosen.read(Address("output"), 64).any()


def test_programs_of_several_devices_have_their_own_memory_until_nobody_wants_it():
    fake = board()
    first, second = (BoardDevice(tiny, place=PLACE, link=DirectLink(fake)) for _ in range(2))
    second.connection = first.connection          # as those with the same address have
    first.load(plus_seven())
    second.load(plus_seven())
    first.write(Address("input"), bytes([1] * 8))
    second.write(Address("input"), bytes([2] * 8))
    for chosen, value in ((first, 8), (second, 9), (first, 8)):
        chosen.run()
        assert chosen.read(Address("output"), 8).tolist() == [value] * 8
    bases = {base for each in (first, second) for base in each._bases}
    assert len(bases) == 6
    assert all(base % PAGE_BYTES == 0 and base in MEMORY for base in bases)
    start = first._bases[0]
    del first, chosen
    gc.collect()
    third = BoardDevice(tiny, place=PLACE, link=DirectLink(fake))
    third.connection = second.connection
    third.load(plus_seven())
    assert third._bases[0] == start


def test_a_program_that_does_not_fit_is_refused_with_both_sizes():
    program = plus_seven()
    large = replace(program, segments=(program.segments[0],
                                       replace(program.segments[1], size=1 << 20)))
    chosen = device()
    with pytest.raises(ExecutionError, match=r"needs 1,056,768 bytes in one piece, but of the "
                                             r"board's 131,072 there are 131,072 free"):
        chosen.load(large)
    chosen.load(program)            # and the next one runs
    chosen.run()


# What is checked before anything runs.

@pytest.mark.parametrize(("register", "value", "message"), [
    ("identity", 0xFFFF_FFFF, r"fake: there is no accelerator: the identity is 0xffffffff, but "
                              r"must be 0x4d54524e; is its bitstream loaded\?"),
    ("isa_version", 999, "the accelerator has version 999 of the instruction set, but this kit"),
    ("config_block_in", 3, "does not describe itself: block_in is 3, but must be a power of two"),
])
def test_what_is_no_accelerator_of_ours_is_refused_at_once(register, value, message):
    fake = board()
    fake.registers[register] = value
    link = DirectLink(fake)
    with pytest.raises(LinkError, match=message):
        BoardDevice(tiny, place=PLACE, link=link)
    assert fake.starts == 0


@pytest.mark.parametrize("field", tiny.to_dict())
def test_a_bitstream_of_another_configuration_is_refused_field_by_field(field):
    fake = board()
    fake.registers[f"config_{field}"] += max(3, fake.registers[f"config_{field}"])
    with pytest.raises(ExecutionError, match=rf"(another configuration than this device has: "
                                             rf"{field} |not describe itself: ({field}|a) )"):
        device(fake).load(plus_seven())
    assert fake.starts == 0


def test_a_program_for_another_configuration_is_refused_even_if_the_caller_wanted_it():
    chosen = BoardDevice(place=PLACE, link=DirectLink(board(small)))
    with pytest.raises(ExecutionError, match=r"another configuration .* block_in 4 \(here 8\)"):
        chosen.load(plus_seven())
    chosen.load(plus_seven(small))
    chosen.run()


def test_nothing_runs_before_a_program_is_loaded():
    chosen = device()
    for use in (chosen.run, lambda: chosen.read(Address("input"), 1),
                lambda: chosen.write(Address("input"), b"1")):
        with pytest.raises(ExecutionError, match="no program is loaded"):
            use()


@pytest.mark.parametrize(("offset", "size"), [(60, 5), (-1, 1), (65, 0), (0, -1)])
def test_accesses_outside_of_a_segment_are_refused(offset, size):
    chosen = device()
    chosen.load(plus_seven())
    with pytest.raises(ExecutionError, match=f"segment input: {size} bytes at {offset} end at"):
        chosen.read(Address("input", offset), size)


# How a run fails.

def test_a_fault_is_named_as_on_other_devices_and_the_next_program_runs():
    chosen = device()
    chosen.load(with_code(Load(), AluI(dst=9999), Sync()))
    with pytest.raises(ExecutionError, match=r"instruction 1 \(alui\.add dst=9999.*\): index"):
        chosen.run()
    outputs, _ = run(plus_seven(), {}, chosen)
    assert outputs["y"].ravel().tolist() == list(range(8, 16))


def test_a_program_that_hangs_is_stopped_and_the_next_one_runs():
    fake = board(hangs=True)
    chosen = device(fake, limit=1000)
    chosen.load(plus_seven())
    with pytest.raises(ExecutionError, match=r"has not ended after 1,000 cycles, the limit .*: 1 "
                                             r"of 4 instructions were handed out$"):
        chosen.run()
    assert Status.RUNNING not in Status(fake.registers["status"])
    fake.hangs = False
    assert run(plus_seven(), {}, chosen)[1].cycles == CYCLES


def test_hardware_that_cannot_be_stopped_is_said_to_need_its_bitstream_again():
    chosen = device(board(hangs=True, deaf=True), limit=1000)
    chosen.load(plus_seven())
    with pytest.raises(ExecutionError, match="it cannot be stopped either: load the bitstream"):
        chosen.run()
    with pytest.raises(ExecutionError, match="the accelerator runs something and does not stop"):
        chosen.run()


def test_what_another_process_left_running_is_stopped_first():
    fake = board(hangs=True)
    fake.write_word(fake.base + 8, 1)
    fake.hangs = False
    outputs, _ = run(plus_seven(), {}, device(fake))
    assert outputs["y"].ravel().tolist() == list(range(8, 16))


def test_an_interrupted_wait_stops_the_hardware():
    class Interrupted(DirectLink):
        waits = 0

        def wait(self, seconds):
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt
            return super().wait(seconds)

    fake = board(hangs=True)
    chosen = BoardDevice(tiny, place=PLACE, link=Interrupted(fake))
    chosen.load(plus_seven())
    with pytest.raises(KeyboardInterrupt):
        chosen.run()
    assert Status.RUNNING not in Status(fake.registers["status"])


# Names.

@pytest.mark.parametrize(("name", "options", "message"), [
    ("board:", {}, "'board:' names no board and its address: it must be board:NAME@ADDRESS, as in"),
    ("board:ulx3s", {}, "names no board and its address"),
    ("board:@/dev/uio0", {}, "names no board and its address"),
    ("board:ulx3s@", {}, "names no board and its address"),
    ("board:ulx4s@/dev/ttyUSB0", {}, "there is no board 'ulx4s'; .*; did you mean ulx3s?"),
    ("board:none.toml@/dev/ttyUSB0", {}, "none.toml: cannot be read: No such file"),
    ("board:kv260@/dev/uio0", {}, "kv260: there is no driver for boards of vivado"),
    ("board:pynq_z2@192.168.1.50", {}, "pynq_z2 is driven by its own Linux, through a file such"),
    ("board:pynq_z2@/dev/uio987", {}, "/dev/uio987: cannot be opened: No such file or directory; "
                                      "is the bitstream loaded"),
    ("board:ulx3s@/dev/ttyUSB987", {}, "/dev/ttyUSB987: cannot be opened: No such file or "
                                       "directory; is the board connected"),
    ("board:ulx3s@/dev/null", {}, "/dev/null: not a serial line: Inappropriate ioctl"),
    ("board:ulx3s@/dev/ttyUSB987:7", {}, "/dev/ttyUSB987: speed is 7, but must be one of 50, 75"),
    ("board:ulx3s@/dev/ttyUSB987:1000000", {}, "/dev/ttyUSB987: cannot be opened"),
    ("board:ulx3s@no.such.host.invalid", {}, "no.such.host.invalid: there is no way to the board"),
    ("board:ulx3s@localhost:port", {}, "the port is 'port', but must be a number to 65535"),
    ("board:ulx3s@/dev/null", {"waveform": "x.vcd"}, "has no option 'waveform'; it has limit"),
    ("board:ulx3s@/dev/null", {"limit": 0}, "limit is 0, but must be an integer of 1 or more"),
    ("board", {}, "there is no device 'board'; there are functional, cycle, rtl and board:NAME@"),
])
def test_a_board_that_is_not_there_is_answered_in_one_line(name, options, message):
    with pytest.raises(MicrotronError, match=message) as caught:
        open_device(name, tiny, **options)
    assert "\n" not in str(caught.value)


def test_the_link_is_closed_when_the_last_device_is_gone():
    link = DirectLink(board())
    chosen = BoardDevice(tiny, place=PLACE, link=link)
    assert link.is_open
    del chosen
    gc.collect()
    assert not link.is_open
