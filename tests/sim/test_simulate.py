"""Simulation as a function: alone, and many at once in processes."""

import gc
import os
import re
import signal
import subprocess
import sys
import weakref
from dataclasses import replace

import pytest

import microtron
from microtron.base.errors import ExecutionError, MicrotronError
from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, Engine, Engines, Gemm, Load
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.registers import counter_names
from microtron.sim import parallel
from microtron.sim import simulate as module
from microtron.sim.cycle.prepared_program import prepare
from microtron.sim.functional.simulator import Functional
from microtron.sim.parallel import Job, simulate_many
from microtron.sim.simulate import Ready, simulate
from microtron.testing.random_programs import random_program

from .functional.support import program

PROGRAMS = [random_program(tiny, seed, length=6) for seed in range(20)]
COPY = program(tiny, Load(shape=(1, 1, 40)), memory=160)
STUCK = program(tiny, Load(), Gemm(wait=Engines.LOAD), memory=160)
WRONG = program(tiny, AluI(dst=9999))


def test_a_report_has_cycles_counters_and_a_timeline():
    report = simulate(COPY)
    assert tuple(report.counters) == counter_names()
    assert report.cycles == report.counters["cycles"] > 40
    assert 0 < report.timeline.start[0] < report.timeline.end[0] < report.cycles
    assert report.memory == MemoryTiming()
    assert report.bytes == 160
    assert simulate(COPY) == report


def test_accelerator_and_memory_can_be_others_than_the_program_s():
    usual = simulate(COPY)
    slow = simulate(COPY, memory=MemoryTiming(read_latency=42))
    assert slow.cycles == usual.cycles + 2 * 10         # one after the other: code, then data
    wide = replace(tiny, bus_bits=256)
    faster = simulate(COPY, wide)
    assert faster.config == wide
    assert faster.cycles < usual.cycles
    assert faster.cycles == simulate(replace(COPY, config=wide)).cycles


def test_a_program_is_prepared_once_for_all_memories(monkeypatch):
    prepared = []
    monkeypatch.setattr(module, "prepare",
                        lambda *given, **more: prepared.append(given) or prepare(*given, **more))
    copy = replace(COPY)
    first = simulate(copy)
    assert simulate(copy) == first
    assert simulate(copy, memory=MemoryTiming(read_latency=42)).cycles > first.cycles
    assert len(prepared) == 1
    simulate(copy, replace(tiny, bus_bits=256))
    assert simulate(copy) == first
    assert len(prepared) == 3


def test_cycles_alone_are_those_of_the_report():
    for is_proven in (False, True):
        copy = Ready(replace(COPY), tiny, is_proven)
        assert copy.count_cycles(None) == simulate(COPY).cycles
        slow = MemoryTiming(read_latency=42)
        assert copy.count_cycles(slow) == simulate(COPY, memory=slow).cycles


def test_what_does_not_end_is_refused_without_a_report_as_well():
    stuck = replace(COPY, code=COPY.code.copy())
    stuck.code["wait"][0] = 1 << Engine.STORE
    for run in (simulate, lambda program: Ready(program, tiny).count_cycles(None)):
        with pytest.raises(ExecutionError, match="wait"):
            run(stuck)


def test_a_program_that_is_changed_in_place_is_prepared_again():
    changed = replace(COPY, code=COPY.code.copy())
    simulate(changed)
    changed.code.view(Load.dtype())["shape"][0] = (1, 1, 4)
    report = simulate(changed)
    assert report.bytes == 16
    assert report.cycles < simulate(COPY).cycles


def test_nothing_keeps_a_program_that_was_simulated():
    gone = replace(COPY)
    simulate(gone)
    remains = weakref.ref(gone)
    del gone
    gc.collect()
    assert remains() is None


def test_an_accelerator_with_other_tiles_is_refused():
    with pytest.raises(MicrotronError, match="block_in"):
        simulate(COPY, replace(tiny, block_in=8))


@pytest.mark.parametrize(("broken", "message"), [
    (WRONG, r"instruction 0 \(alui\.add dst=9999.*\): index fault"),
    (STUCK, r"deadlock after 1 of 3 instructions: gemm waits at instruction 1 \(gemm wait=load\) "
            r"for a token from load; tokens: none"),
    (replace(COPY, code=COPY.code[:1]), "ran out of instructions: it has 1"),
])
def test_a_program_that_does_not_end_is_an_error_that_says_why(broken, message):
    with pytest.raises(ExecutionError, match=message):
        simulate(broken)


@pytest.fixture(params=[-1, 0, float("inf")], ids=["at once", "soon", "never"])
def start(request, monkeypatch):
    """When processes begin: before anything is done, after the first batch, or not at all."""
    monkeypatch.setattr(parallel, "ALONE", request.param)


@pytest.mark.parametrize("processes", [1, 2])
def test_many_simulations_report_in_the_order_of_their_jobs(processes, start):
    expected = [simulate(each) for each in PROGRAMS]
    assert len({report.cycles for report in expected}) > 10
    reports = simulate_many(PROGRAMS, processes)
    assert reports == expected
    assert all(report.timeline is None for report in reports)


def test_jobs_may_differ_in_everything_and_come_from_a_generator(start):
    moody = MemoryTiming(stalls=100, seed=3)
    wide = replace(tiny, bus_bits=128)
    jobs = (Job(program=each, config=config, memory=memory, name=f"{number}")
            for number, each in enumerate(PROGRAMS[:4])
            for config in (None, wide) for memory in (None, moody))
    expected = [simulate(each, config, memory) for each in PROGRAMS[:4]
                for config in (None, wide) for memory in (None, moody)]
    reports = simulate_many(jobs, processes=2)
    assert reports == expected
    assert [each.to_row()["name"] for each in reports] == [
        f"{number}" for number in range(4) for _ in range(4)]


def test_a_long_job_goes_to_a_process_at_once(monkeypatch):
    """With -1 they begin at once, whatever comes; with infinity only a long job starts them."""
    begun = []
    monkeypatch.setattr(parallel, "_run_in_processes",
                        lambda batches, workers: begun.append(workers) or parallel._here(batches))
    monkeypatch.setattr(parallel, "ALONE", float("inf"))
    assert len(simulate_many([COPY] * 8, processes=2)) == 8
    assert begun == []
    monkeypatch.setattr(parallel, "LONG", 10)
    assert len(simulate_many([COPY] * 8, processes=2)) == 8
    assert begun == [2]


def test_a_program_that_comes_again_is_worked_out_once(monkeypatch):
    made = []
    monkeypatch.setattr("microtron.sim.simulate.prepare",
                        lambda *given, **more: made.append(given) or prepare(*given, **more))
    memories = [MemoryTiming(read_latency=each) for each in range(1, 7)]
    wide = replace(tiny, bus_bits=128)
    jobs = [Job(program=each, config=config, memory=memory)
            for each in PROGRAMS[:2] for config in (None, wide) for memory in memories]
    expected = [simulate(job.program, job.config, job.memory) for job in jobs]
    made.clear()
    assert simulate_many(jobs, processes=1) == expected
    assert len(made) == 4


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_job_that_fails_is_named(processes, start):
    jobs = [*PROGRAMS, Job(program=WRONG, name="tile 7"), STUCK, *PROGRAMS]
    with pytest.raises(ExecutionError, match=r"^job 20 \(tile 7\): instruction 0 \(alui"):
        simulate_many(jobs, processes)
    with pytest.raises(ExecutionError, match=r"^job 0: deadlock after 1 of 3 "):
        simulate_many([STUCK, WRONG], processes)


def test_no_jobs_are_no_reports_and_no_processes_are_refused():
    assert simulate_many([]) == []
    with pytest.raises(MicrotronError, match="processes is 0, but must be an integer of 1 or more"):
        simulate_many([], processes=0)


def test_progress_is_shown_on_a_terminal_only(capfd, monkeypatch):
    simulate_many(PROGRAMS[:3], processes=1)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    simulate_many(PROGRAMS[:3], processes=1, progress=False)
    assert capfd.readouterr() == ("", "")
    simulate_many(PROGRAMS[:3], processes=1)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "simulating" in shown.err


# A script that simulates for ever, and says so once it is well under way.
ENDLESS = """
import multiprocessing
from microtron import simulate_many
from microtron.isa.assembly.assembler import assemble
from microtron.sim import parallel
from microtron.sim import simulate as module

parallel.ALONE = -1

PROGRAM = assemble(".config tiny\\n.code\\n    sync.end\\n")


def jobs():
    for number in range(10**9):
        if number == 500:
            print("busy:", len(multiprocessing.active_children()), flush=True)
        yield PROGRAM


if __name__ == "__main__":
    try:
        simulate_many(jobs(), processes=2)
    except KeyboardInterrupt:
        print("left:", len(multiprocessing.active_children()))
"""


def heed_interrupts():
    """As in a terminal: a shell lets what it starts in the background ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def endless(tmp_path):
    """That script, running in a group of its own, as the shell would start it."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, start_new_session=True,
                          preexec_fn=heed_interrupts) as process:
        assert process.stdout.readline() == "busy: 2\n"
        yield process
        process.kill()


@pytest.mark.parametrize("interrupt", [
    lambda process: process.send_signal(signal.SIGINT),         # as a notebook does
    lambda process: os.killpg(process.pid, signal.SIGINT),      # as a terminal does
], ids=["one", "group"])
def test_ctrl_c_ends_everything_and_leaves_no_process(endless, interrupt):
    interrupt(endless)
    out, err = endless.communicate()        # ends only when no process holds the pipe any more
    assert out == "left: 0\n"
    assert err == ""
    assert endless.returncode == 0


def test_no_process_outlives_a_parent_that_was_killed(endless):
    endless.kill()
    out, _ = endless.communicate()
    assert out == ""
    assert endless.returncode == -signal.SIGKILL


UNGUARDED = """
from threading import Event, Thread
from microtron import simulate_many
from microtron.isa.assembly.assembler import assemble
from microtron.sim import parallel
from microtron.sim import simulate as module

parallel.ALONE = -1
THREAD
print(len(simulate_many([assemble(".config tiny\\n.code\\n    sync.end\\n")] * 40, processes=2)))
"""


def test_a_script_needs_a_guard_only_if_it_has_threads(tmp_path):
    """Without, processes are copies of it; else they are new ones, which run the script again."""
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED.replace("THREAD", ""))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("40\n", 0)
    thread = "Thread(target=Event().wait, daemon=True).start()"
    script.write_text(UNGUARDED.replace("THREAD", thread))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"MicrotronError: a process .* outside `if __name__ == \"__main__\":`",
                     done.stderr)


def test_the_package_offers_simulation_and_imports_nothing_until_it_is_used():
    assert microtron.simulate is simulate
    assert microtron.simulate_many is simulate_many
    assert microtron.Job is Job
    with pytest.raises(AttributeError, match="no attribute 'emulate'"):
        _ = microtron.emulate
    script = "import sys, microtron; assert 'numpy' not in sys.modules; microtron.simulate"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: simulate("k.mt"), r"program is 'k\.mt', but must be a Program, as load_program, "),
    (lambda: simulate(None), "program is None, but must be a Program"),
    (lambda: simulate([COPY] * 20), r"program is \[Program.*…, but must be a Program"),
    (lambda: simulate(COPY, config=7), "config is 7, but must be a Config, or a preset's"),
    (lambda: simulate(COPY, config="tyni"), "configuration 'tyni' is neither a preset"),
    (lambda: simulate(COPY, config="base"), "the program is for another accelerator"),
    (lambda: simulate(COPY, memory="read_latency=64"),
     "memory is 'read_latency=64', but must be a MemoryTiming"),
    (lambda: Job(program="x"), "program is 'x', but must be a Program"),
    (lambda: Job(program=COPY, config=3), "config is 3, but must be"),
    (lambda: Job(program=COPY, memory=tiny), r"memory is Config\(.*, but must be a MemoryTiming"),
    (lambda: Job(program=COPY, name=5), "name is 5, but must be a string"),
    (lambda: Job(program=COPY, limit=0), "limit is 0, but must be an integer of 1 or more"),
    (lambda: simulate_many(COPY), r"jobs is Program\(.*, but must be a sequence of programs"),
    (lambda: simulate_many(["k.mt"]), r"a job is 'k\.mt', but must be a Program or a Job"),
    (lambda: simulate_many([COPY], processes="2"), "processes is '2', but must be an integer"),
    (lambda: simulate_many([COPY], processes=1.5), "processes is 1.5, but must be an integer"),
    (lambda: Functional("k.mt"), r"program is 'k\.mt', but must be a Program"),
])
def test_arguments_of_the_wrong_kind_are_refused_in_one_line(call, message):
    with pytest.raises(MicrotronError, match=message) as caught:
        call()
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_a_configuration_may_be_a_preset_s_name():
    assert simulate(COPY, "tiny") == simulate(COPY)
    assert simulate_many([Job(program=COPY, config="tiny")], processes=1)[0].config == tiny
