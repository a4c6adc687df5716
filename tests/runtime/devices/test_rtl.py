"""The accelerator's Verilog as a device: what it reports, how it fails and what it notices.

Misbehaviour that the accelerator must not show comes from a stand-in with the same ports.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import ExecutionError, MicrotronError
from microtron.isa import registers
from microtron.isa.address_map import place_windows
from microtron.isa.config import tiny
from microtron.isa.instructions import (
    AluI,
    Buffer,
    Engine,
    Engines,
    Gemm,
    Load,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Access, Program, Segment
from microtron.isa.program_files import save_program
from microtron.isa.registers import Control, Status, counter_names
from microtron.isa.stream import as_bytes, encode, from_bytes
from microtron.runtime.devices import rtl
from microtron.runtime.devices.device import Address
from microtron.runtime.devices.rtl import RtlDevice
from microtron.runtime.devices.rtl_build import library
from microtron.runtime.devices.rtl_harness import Harness, Window
from microtron.runtime.devices.waveform_view import signal_groups

from ...command import good
from .stand_in import FLAWS, stand_in
from .test_rtl_programs import CONFIGS

WIDE = replace(tiny, bus_bits=256, address_bits=40)
MOODY = MemoryTiming(read_latency=9, write_latency=4, stalls=100, seed=5)


def copying(tiles=40, config=tiny):
    """Loads tiles as accumulators, adds one, and stores them: every engine but GEMM works."""
    size = tiles * config.tile_bytes(Buffer.OUT)
    code = [Load(buffer=Buffer.ACC8, shape=(1, 1, tiles), post=Engines.ALU),
            AluI(loops=(1, 1, tiles), dst_stride=(0, 0, 1), src_stride=(0, 0, 1), immediate=1,
                 target=Buffer.OUT, wait=Engines.LOAD, post=Engines.STORE),
            Store(segment=1, shape=(1, 1, tiles), wait=Engines.ALU), Sync()]
    data = (np.arange(size) % 100).astype(np.uint8)
    return Program(config, encode(code), (Segment("input", size, Access.READ, data),
                                          Segment("output", size, Access.WRITE)))


def with_code(*code, config=tiny):
    return Program(config, encode(code), copying().segments)


def is_copied(device, program):
    data = program.segments[0].data
    return (device.read(Address("output"), len(data)) == data + 1).all()


# What a run reports.

def test_counters_and_timeline_tell_what_every_engine_did_and_when():
    device, program = RtlDevice(tiny), copying()
    device.load(program)
    report = device.run()
    assert is_copied(device, program)
    assert tuple(report.counters) == counter_names()
    assert report.cycles == report.counters["cycles"]
    assert report.counters["instructions"] == 4
    assert report.counters["load_bytes"] == report.counters["store_bytes"] == 160
    assert report.counters["gemm_busy"] == 0
    start, end = report.timeline.start, report.timeline.end
    (load, alu, store, sync), (loaded, added, stored, synced) = start, end
    assert 0 < load < loaded < alu < added < store < stored < report.cycles
    assert report.counters["store_busy"] == stored - store
    assert (sync, synced) == (-1, -1)
    assert "timeline" not in report.to_dict()


@pytest.mark.parametrize("timing", [MemoryTiming(), MOODY], ids=["steady", "moody"])
def test_every_run_takes_the_same_cycles(timing):
    reports = []
    for _ in range(2):
        device = RtlDevice(tiny, timing=timing)
        device.load(copying())
        reports += [device.run(), device.run()]
    assert len({tuple(report.counters.values()) for report in reports}) == 1
    assert len({tuple(report.timeline.end) for report in reports}) == 1


def test_the_memory_s_timing_is_felt():
    def cycles(**settings):
        device = RtlDevice(tiny, timing=MemoryTiming(**settings))
        device.load(copying())
        return device.run().cycles

    usual = cycles()
    assert cycles(read_latency=42) == usual + 2 * 10        # one after the other: code, then data
    assert cycles(write_latency=21) == usual + 5
    assert cycles(stalls=200) > 1.5 * usual


def test_a_program_with_fewer_segments_than_the_last_one_runs():
    program = copying()
    last = Store(segment=3, shape=(1, 1, 2))
    more = Program(tiny, encode([last, Sync()]), (*program.segments, *(
        Segment(name, 1024, Access.WRITE) for name in ("third", "fourth"))))
    device = RtlDevice(tiny)
    for each in (more, program):
        device.load(each)
        device.run()
    assert is_copied(device, program)


def test_a_device_without_a_configuration_takes_programs_for_any():
    device = RtlDevice()
    with pytest.raises(ExecutionError, match="no program is loaded"):
        device.run()
    cycles = []
    for config in (tiny, CONFIGS["batch"], tiny):
        device.load(copying(config=config))
        cycles.append(device.run().cycles)
        assert is_copied(device, copying(config=config))
    assert cycles[0] == cycles[2] != cycles[1]


# How a run fails.

def broken_word():
    raw = as_bytes(copying().code).copy()
    raw[1, 0] = 99
    return Program(tiny, from_bytes(raw.tobytes()), copying().segments)


FAULTS = {
    "illegal": (broken_word(), r"instruction 1 \(opcode is 99, but must be one of .*\): illegal"),
    "index": (with_code(Load(), AluI(dst=9999), Sync()),
              r"instruction 1 \(alui\.add dst=9999.*\): index fault"),
    "address": (with_code(Load(offset=160), Sync()),
                r"instruction 0 \(load\.inp segment=input.*offset=0xa0.*\): address fault"),
    "read-only": (with_code(Store(), Sync()), r"instruction 0 \(store\.out .*\): address fault"),
    "alignment": (with_code(Load(offset=2), Sync()),
                  r"instruction 0 \(load\.inp .*\): alignment fault"),
    "empty": (with_code(), "ran out of instructions: it has 0, but none of them is sync.end"),
    "endless": (with_code(Load()), "ran out of instructions: it has 1"),
    "overflow": (with_code(*[Load(post=Engines.GEMM)] * 256, Sync()),
                 r"instruction 255 \(load\.inp .*\): token_overflow fault"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_cause_and_instruction_and_the_next_program_runs(name):
    program, message = FAULTS[name]
    device = RtlDevice(tiny)
    device.load(program)
    with pytest.raises(ExecutionError, match=message):
        device.run()
    assert not device.read(Address("output"), 160).any()
    device.load(copying())
    device.run()
    assert is_copied(device, copying())


def test_bus_errors_are_faults():
    program = copying()
    code, source, target = place_windows(program)
    for failing, message in ((code, r"instruction 0 \(load.*: read_error"),
                             (source + 96, r"instruction 0 \(load.*: read_error"),
                             (target + 159, r"instruction 2 \(store.*: write_error")):
        device = RtlDevice(tiny, failing=range(failing, failing + 1))
        device.load(program)
        with pytest.raises(ExecutionError, match=message):
            device.run()


def test_a_program_that_waits_for_ever_is_given_up_and_the_next_one_runs():
    device = RtlDevice(tiny)
    device.load(with_code(Load(), Gemm(wait=Engines.ALU), Store(wait=Engines.GEMM),
                          Sync(action=SyncAction.BARRIER), Sync()))
    with pytest.raises(ExecutionError, match=r"deadlock after 1 of 5 instructions: gemm waits "
                                             r"at .* for a token from alu; store waits .* from "
                                             r"gemm; tokens: none"):
        device.run()
    device.load(copying())
    device.run()
    assert is_copied(device, copying())


def test_after_an_interrupt_from_the_keyboard_the_next_run_is_right(monkeypatch):
    device = RtlDevice(tiny)
    device.load(copying())

    def interrupted(harness, limit):
        assert not run(harness, 20)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        run = Harness.run
        patched.setattr(Harness, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            device.run()
    device.run()
    assert is_copied(device, copying())


def test_the_limit_can_be_chosen():
    device = RtlDevice(tiny, limit=60)
    device.load(copying())
    with pytest.raises(ExecutionError, match="not ended after 60 cycles"):
        device.run()


def test_a_start_while_running_is_a_fault_that_the_next_start_clears():
    harness = Harness(library(tiny), MemoryTiming())
    program = copying()
    harness.place([Window(0x1000, as_bytes(program.code).ravel().copy(), False)])
    harness.write("program_low", 0x1000)
    harness.write("program_count", 4)
    harness.write("control", Control.START | Control.INTERRUPT_ENABLE)
    assert not harness.run(20)
    harness.write("control", Control.START | Control.INTERRUPT_ENABLE)
    assert harness.run(1000)
    assert Status(harness.read("status")) == Status.FAILED | Status.INTERRUPT
    assert harness.read("fault") == 9
    harness.write("control", Control.START)         # which also lowers the interrupt
    assert not harness.run(1000)
    assert harness.read("fault") == 3               # there are no segments: an address fault
    assert harness.complaint() == ""


# What is refused.

def test_hardware_of_another_kind_is_refused(monkeypatch):
    device = RtlDevice(tiny)
    monkeypatch.setattr(registers, "ISA_VERSION", 99)
    with pytest.raises(ExecutionError, match="register isa_version is 0x1, but the program needs "
                                             "0x63"):
        device.load(copying())


# Waveforms, and what the harness notices: with the stand-in.

def flawed(flaw="none", config=tiny, size=1000):
    """The stand-in copies `input` to `output`; the size of segment 7 is its flaw."""
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    rest = [Segment(f"s{number}", FLAWS.index(flaw) or 4096) for number in range(2, 8)]
    return Program(config, encode([Load(), Store(segment=1), Sync()]), (
        Segment("input", size, Access.READ, data), Segment("output", size, Access.WRITE),
        *(rest if flaw != "none" else ())))


@pytest.mark.parametrize(("config", "suffix", "magic"), [
    (tiny, ".vcd", b"$version"),
    pytest.param(WIDE, ".fst", b"\x00", marks=pytest.mark.soak)])      # another model to compile
def test_a_waveform_has_every_signal_of_the_latest_run(tmp_path, config, suffix, magic):
    path = tmp_path / f"wave{suffix}"
    path.write_text("what was there before")
    device, program = RtlDevice(config, design=stand_in, waveform=path, timing=MOODY), flawed(
        config=config)
    device.load(program)
    assert path.read_text() == "what was there before"
    first = device.run()
    content = path.read_bytes()
    assert content.startswith(magic)
    assert device.run().cycles == first.cycles
    assert (device.read(Address("output"), 1000) == program.segments[0].data).all()
    assert len(path.read_bytes()) < 1.5 * len(content)          # the first one is not in it
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    if suffix == ".vcd":
        signals = re.findall(r"\$var \w+ +\d+ \S+ (\S+)", content.decode())
        assert {"trace_running", "m_axi_araddr", "state"} <= set(signals)
        viewed = [each for group in signal_groups().values() for each in group]
        assert "$scope module top $end" in content.decode()
        assert {each.removesuffix("[31:0]") for each in viewed} <= set(signals)
        assert content.decode().count("\n#") >= 2 * first.cycles


@pytest.mark.parametrize("suffix", [
    ".vcd", pytest.param(".fst", marks=pytest.mark.soak)])              # another model to compile
def test_the_command_writes_a_waveform_and_views_of_it(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(rtl, "library", lambda config, *, waveform, design: library(
        config, waveform=waveform, design=stand_in))
    path = tmp_path / f"wave{suffix}"
    save_program(flawed(), tmp_path / "copy.mt")
    said = good("run", tmp_path / "copy.mt", "--device", "rtl", "--waveform", path, "--no-check")
    assert "cycles" in said
    assert path.stat().st_size > 1000
    assert sorted(each.suffix for each in tmp_path.iterdir()) == sorted(
        [".mt", suffix, ".gtkw", ".sucl"])
    for ending in (".gtkw", ".sucl"):
        view = path.with_suffix(ending).read_text()
        assert path.name in view
        assert view.count("top.trace_") >= 2 * len(Engine)


def test_a_waveform_replaces_another_only_if_the_run_was_not_stopped(tmp_path, monkeypatch):
    path = tmp_path / "wave.vcd"
    path.write_text("what was there before")
    device = RtlDevice(tiny, design=stand_in, waveform=path, limit=100)
    device.load(flawed("stuck"))

    def interrupted(harness, limit):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Harness, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            device.run()
    assert path.read_text() == "what was there before"
    with pytest.raises(ExecutionError, match="not ended"):
        device.run()
    assert path.read_text().startswith("$version")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_waveforms_are_refused_where_they_cannot_be(tmp_path):
    with pytest.raises(MicrotronError, match=r"wave\.txt: a waveform's name must end in \.vcd or"):
        RtlDevice(tiny, waveform=tmp_path / "wave.txt")
    device = RtlDevice(tiny, design=stand_in, waveform=tmp_path / "no" / "wave.vcd")
    device.load(flawed())
    with pytest.raises(MicrotronError, match=r"wave\.vcd: cannot be written: No such file"):
        device.run()
    (tmp_path / "no" / "wave.vcd").mkdir(parents=True)
    with pytest.raises(MicrotronError, match=r"wave\.vcd: cannot be written: Is a directory"):
        device.run()


@pytest.mark.parametrize(("flaw", "message"), [
    ("unstable", r"misbehaved: it broke a rule of the bus: in cycle \d+, ar changed before"),
    ("fixed", "misbehaved: it broke .* ar at 0x1000 is not an incrementing burst"),
    ("stray", r"misbehaved: it wrote to 0x[0-9a-f]+, where it has no window; 16 such beats"),
    ("crossing", "misbehaved: it broke .* aw at 0x[0-9a-f]+ crosses 4096 with 16 beats"),
    ("dependent", r"not ended after 5,000 cycles, .* store is at instruction 1 \(store.out "
                  r"segment=output\); it broke .* wvalid depends on what memory shows"),
    ("endless", "misbehaved: it broke .* wlast is 0 with 1 beats left"),
    ("deaf", "did not accept 0x0 for its register segment7_access"),
    ("stuck", r"not ended .*: load is at instruction 0 \(load.inp segment=input\); gemm has "
              r"completed 0 instructions; alu .*; store has completed 0 instructions"),
])
def test_misbehaviour_is_noticed(tmp_path, flaw, message):
    device = RtlDevice(tiny, design=stand_in, waveform=tmp_path / "wave.vcd", limit=5000,
                       timing=MOODY)
    with pytest.raises(ExecutionError, match=message):
        load_and_run(device, flawed(flaw))


def load_and_run(device, program):
    device.load(program)
    return device.run()


def test_after_misbehaviour_a_right_program_runs(tmp_path):
    device = RtlDevice(tiny, design=stand_in, waveform=tmp_path / "wave.vcd", limit=5000)
    for flaw in ("stray", "stuck", "crossing"):
        device.load(flawed(flaw))
        with pytest.raises(ExecutionError, match=r"misbehaved|not ended"):
            device.run()
        device.load(flawed())
        device.run()
        assert (device.read(Address("output"), 1000) == flawed().segments[0].data).all()
