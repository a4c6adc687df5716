"""Comparing hardware and twin: what is said when they are equal, and when one of them is wrong."""

import dataclasses
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError
from microtron.cli import main
from microtron.isa.config import tiny
from microtron.isa.config_files import save_config
from microtron.isa.faults import Fault
from microtron.isa.image import program_image
from microtron.isa.instructions import Buffer, Engine, Engines, Load, Store, Sync
from microtron.isa.memory_timing import MemoryTiming, parse_timing
from microtron.sim.cycle.run import registers_at, run_cycles
from microtron.testing import compare as both
from microtron.testing.compare import compare
from microtron.testing.differences import describe_agreement, explain, format_timing, save_case
from microtron.testing.random_programs import random_program

from ..runtime.devices.test_rtl import FAULTS, copying, with_code
from ..runtime.small_model import small_graph

SLOWER = MemoryTiming(read_latency=33)
PATH = Path("copy.mt")
RELATIVE = dataclasses.replace(tiny, bus_bits=128, acc_banks=8, queue_depth=8)


@pytest.fixture
def late(monkeypatch):
    """A twin that is wrong: its memory takes a cycle longer."""
    def slower(program, *, timing, **options):
        timing = dataclasses.replace(timing, read_latency=timing.read_latency + 1)
        return run_cycles(program, timing=timing, **options)
    monkeypatch.setattr(both, "run_cycles", slower)


@pytest.fixture
def late_after(monkeypatch):
    """A twin that is wrong after so many runs."""
    def begin(count):
        runs = iter(range(count))

        def slower(program, *, timing, **options):
            more = int(next(runs, None) is None)
            timing = dataclasses.replace(timing, read_latency=timing.read_latency + more)
            return run_cycles(program, timing=timing, **options)
        monkeypatch.setattr(both, "run_cycles", slower)
    return begin


def spoil(monkeypatch, change):
    """A twin whose run is changed afterwards."""
    def changed(program, **options):
        return change(run_cycles(program, **options))
    monkeypatch.setattr(both, "run_cycles", changed)


def test_what_is_equal_is_said_in_one_line():
    comparison = compare(copying(), timing=SLOWER)
    assert comparison.differences == ()
    line = describe_agreement("copy.mt", comparison)
    assert line == (f"copy.mt: equal: {comparison.rtl.cycles} cycles, 4 instructions, all counters "
                    f"and memory")
    program, _ = FAULTS["index"]
    assert re.search(r"2? instructions; both stop after \d+ cycles: .*index fault$",
                     describe_agreement("x", compare(program)))
    stuck = with_code(Load(wait=Engines.ALU), Sync())
    assert ("both stop: deadlock after 0 of 2 instructions: load waits at"
            in describe_agreement("x", compare(stuck)))


def test_the_first_diverging_cycle_is_found_and_explained(late):
    comparison = compare(copying(), timing=MemoryTiming(stalls=9, seed=3))
    first = comparison.differences[0]
    starts = [int(side.timeline.start[0]) for side in (comparison.rtl, comparison.twin)]
    assert starts[0] != starts[1]
    assert (first.cycle, first.engine) == (min(starts), Engine.LOAD)
    assert first.what == "start of instruction 0"
    text = explain(comparison, PATH)
    assert text.startswith(f"copy.mt: differs first in cycle {first.cycle}: start of instruction 0")
    assert f"    rtl    in cycle {starts[0]}\n    cycle  in cycle {starts[1]}" in text
    assert re.search(r"load   rtl    1 started, 0 ended, at instruction 0 \(load\.acc8 ", text)
    assert re.search(r"\n    load_queue: ready=1", text)
    assert re.search(r"\n    dram: .*reads=1 ", text)
    assert ("microtron run copy.mt --no-check --device rtl --waveform copy.fst "
            "--memory stalls=9,seed=3\n") in text
    assert f"lies {first.cycle * 10} ns after trace_running rises" in text


def test_a_counter_s_first_difference_is_found_by_bisection(monkeypatch):
    honest = run_cycles(copying()).timeline
    first = int(honest.start[2]) + 5           # while the store is under way

    def change(run):
        wrong = max(0, min(run.cycles, int(honest.end[2])) - first)
        return dataclasses.replace(run, counters={
            **run.counters, "store_busy": run.counters["store_busy"] + wrong})

    spoil(monkeypatch, change)
    comparison = compare(copying())
    difference, = comparison.differences
    assert (difference.what, difference.engine) == ("counter store_busy", Engine.STORE)
    assert difference.cycle == first


def test_a_different_end_is_a_difference(monkeypatch):
    spoil(monkeypatch, lambda run: dataclasses.replace(
        run, cycles=run.cycles + 1,
        counters={**run.counters, "cycles": run.counters["cycles"] + 1}))
    comparison = compare(copying())
    difference, = comparison.differences
    assert difference.what == "end of the program"
    assert difference.cycle == comparison.rtl.cycles - 1


def test_a_fault_elsewhere_is_a_difference(monkeypatch):
    spoil(monkeypatch, lambda run: dataclasses.replace(run, fault_position=0))
    program, _ = FAULTS["index"]
    difference, = compare(program).differences
    assert difference.what == "end of the program"
    assert "instruction 1 (alui" in difference.rtl
    assert "instruction 0 (load" in difference.twin


def test_memory_that_differs_is_a_difference_unless_the_program_races(monkeypatch):
    replay = both.Replay.run

    def wrong(self, timeline):
        replay(self, timeline)
        self.memory.segments[1][17] ^= 1

    monkeypatch.setattr(both.Replay, "run", wrong)
    comparison = compare(copying())
    difference, = comparison.differences
    assert difference.what == "segment output, 1 bytes from 0x11 on"
    assert difference.cycle == comparison.rtl.timeline.end[2]
    racing = with_code(*[Store(segment=1), Load(segment=1, offset=0)] * 3, Sync())
    assert not compare(racing).differences


def test_a_run_that_is_given_up_at_work_is_compared_up_to_there(late):
    assert compare(copying(400), limit=100).differences
    with pytest.MonkeyPatch.context() as honest:
        honest.setattr(both, "run_cycles", run_cycles)
        for limit in (30, 100, 101, 102, 103, 200):
            comparison = compare(copying(400), limit=limit)
            assert not comparison.differences
            assert comparison.rtl.counters is None


def test_a_run_can_be_given_up_in_any_cycle():
    """Also in one in which something starts: that it is reset is no start."""
    program = random_program(tiny, 1)
    starts = run_cycles(program).timeline.start
    for limit in sorted({int(start) + late for start in starts[starts > 0] for late in (0, 1)}):
        assert not compare(program, limit=limit).differences, limit


def test_a_run_can_be_given_up_after_a_fault_while_the_bus_is_busy():
    wrong = with_code(Load(sram=tiny.tiles(Buffer.INP) - 2, shape=(1, 1, 16)), Sync())
    timing = MemoryTiming(cycles_per_beat=5)
    ended = run_cycles(wrong, timing=timing)
    assert ended.fault == Fault.INDEX
    for limit in range(ended.cycles - 20, ended.cycles + 3):
        assert not compare(wrong, timing=timing, limit=limit).differences, limit


def test_another_accelerator_may_differ_in_what_does_not_matter_to_the_program():
    comparison = compare(copying(config=RELATIVE), config=tiny)
    assert not comparison.differences
    assert comparison.case.program.config == tiny
    with pytest.raises(ExecutionError, match="batch 1 \\(asked for 2\\)"):
        compare(copying(), config=dataclasses.replace(tiny, batch=2))


def test_a_timing_is_written_as_it_is_read():
    timing = MemoryTiming(read_latency=7, shared=False, stalls=3, seed=1 << 50)
    assert parse_timing(format_timing(timing)) == timing
    assert format_timing(MemoryTiming()) == ""


def test_registers_are_those_of_a_cycle():
    program = random_program(tiny, 3)
    for cycle in (0, 1, 100, 250):
        registers = registers_at(program, cycle)
        assert registers["clock"]["now"] == registers["memory_counts"]["cycles"] == cycle
        assert len(registers["tokens"]["count"]) == 16
    timeline = run_cycles(program).timeline
    started = np.flatnonzero((timeline.start >= 0) & (timeline.start < 250))
    taken = sum(registers[f"{engine.name.lower()}_queue"]["taken"] for engine in Engine)
    assert taken == len(started)


# As a command.

def command(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main.main([str(each) for each in arguments])
    return stop.value.code or 0, capsys.readouterr()


def test_the_command_says_equal_and_exits_with_0(tmp_path, capsys):
    program_image.save(copying(), tmp_path / "copy.mt")
    code, said = command(capsys, "compare", tmp_path / "copy.mt", "--memory", "read_latency=9")
    assert code == 0
    assert said.out.count("\n") == 1
    assert ": equal: " in said.out


def test_the_command_says_what_differs_and_exits_with_1(tmp_path, capsys, late):
    program_image.save(copying(), tmp_path / "copy.mt")
    code, said = command(capsys, "compare", tmp_path / "copy.mt")
    assert code == 1
    assert "copy.mt: differs first in cycle" in said.out
    run, again = (shlex.split(line) for line in said.out.splitlines()
                  if line.startswith("    microtron"))
    assert again == ["microtron", "compare", str(tmp_path / "copy.mt")]
    assert run[:3] == ["microtron", "run", str(tmp_path / "copy.mt")]


def test_the_command_keeps_the_program_it_made_for_another_accelerator(tmp_path, capsys, late):
    program_image.save(copying(config=RELATIVE), tmp_path / "copy.mt")
    save_config(tiny, tmp_path / "other.toml")
    code, said = command(capsys, "compare", tmp_path / "copy.mt", "--config",
                         tmp_path / "other.toml")
    assert code == 1
    kept, = tmp_path.glob("copy-*.mt")
    assert str(kept) in said.out
    assert program_image.load(kept).config == tiny


def test_the_command_refuses_bad_input_with_2(tmp_path, capsys):
    for arguments, words in (((tmp_path / "none.mt",), "none.mt"),
                             ((PATH, "--memory", "speed=1"), "copy.mt"),
                             ((PATH, "--config", "odd"), "copy.mt")):
        code, said = command(capsys, "compare", *arguments)
        assert code == 2
        assert words in said.err
        assert said.err.count("\n") == 1


def test_a_program_that_no_image_can_hold_is_explained_without_a_command(tmp_path, late):
    program, _ = FAULTS["illegal"]
    comparison = compare(program)
    save_case(comparison, tmp_path / "x.mt")
    assert not (tmp_path / "x.mt").exists()
    assert "No command runs this" in explain(comparison, tmp_path / "x.mt")


def test_every_program_of_a_network_is_compared(tmp_path, capsys, late_after):
    microtron.compile(small_graph(), tiny).save(tmp_path / "small.mt")
    code, said = command(capsys, "compare", tmp_path / "small.mt")
    assert code == 0
    lines = said.out.splitlines()
    assert [line.partition(": equal: ")[0] for line in lines] == [
        f"{tmp_path / 'small.mt'}, program {number} of 2" for number in (1, 2)]
    late_after(1)                       # the second program differs: it is saved, and explained
    code, said = command(capsys, "compare", tmp_path / "small.mt")
    assert code == 1
    assert f"{tmp_path / 'small.mt'}, program 1 of 2: equal: " in said.out
    saved, = tmp_path.glob("small-2-*.mt")
    assert f"{saved}: differs first in cycle " in said.out
    assert program_image.load(saved).config == tiny
