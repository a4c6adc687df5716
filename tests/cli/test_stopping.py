"""Ctrl-C and SIGTERM end every command, in order, with everything it started.

A command runs in a process of its own and says through a named pipe that it is at work. The pipe's
other end is open in all its processes, so it has an end when all of them have. What does not stop
runs into a limit of time, and its exit code is another.
"""

import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from microtron.isa.config import tiny
from microtron.isa.image import program_image
from microtron.isa.instructions import AluI, Sync
from microtron.isa.program import Program
from microtron.isa.stream import encode

PROCESSOR_SECONDS = 60
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx"
RUN = ("run", "--no-check", "--limit", 10 ** 18)

COMMAND = """
import faulthandler, signal, sys
faulthandler.dump_traceback_later(600, exit=True)
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):     # whatever started the tests
    signal.signal(each, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

pipe = open(sys.argv[1], "w")

def at_work():
    print("at work", file=pipe, flush=True)

CHANGE
from microtron.cli.main import main
main(sys.argv[2:])
"""
# Changes to what a command does, so that it is known to be at work.
SHORT_VERILOG = """
import microtron.runtime.devices.rtl_build as build
build.write_verilog = lambda config, log: ""
"""
ENDLESS_AMARANTH = r"""
import os
import microtron.runtime.devices.verilog as verilog
verilog.SCRIPT = f"import os; os.system(\"(echo at work; exec sleep 1000) > '{sys.argv[1]}'\")"
"""
SIMULATED = """
from microtron.runtime.devices.rtl_harness import Harness
advance = Harness.run

def run(harness, limit):
    at_work()
    return advance(harness, limit)
Harness.run = run
"""
FUNCTIONAL = """
from microtron.sim.functional.simulator import Functional
run = Functional.run

def observed(simulator, order=None):
    at_work()
    return run(simulator, order)
Functional.run = observed
"""
CYCLE = """
import microtron.sim.cycle.run as cycle
simulate = cycle._simulate

def observed(*arguments):
    at_work()
    return simulate(*arguments)
cycle._simulate = observed
"""
SEARCH = """
import microtron.compiler.operators.kernel as kernel
rank = kernel.rank_candidates

def observed(*arguments):
    at_work()
    return rank(*arguments)
kernel.rank_candidates = observed
"""
EMISSION = """
import microtron.compiler.accelerator.emission.emit as emission
emit = emission.emit

def observed(*arguments, **options):
    at_work()
    return emit(*arguments, **options)
emission.emit = observed
"""
COMPILATION = """
import time
import microtron.runtime.models.compilation as compilation

def endless(*arguments, **options):
    at_work()
    time.sleep(1000)
compilation.compile_network = endless
"""
INFERENCE = """
import time
from microtron.runtime.models.inference import LoadedProgram

def endless(self, tiles, outputs):
    at_work()
    time.sleep(1000)
LoadedProgram.run = endless
"""
LIBRARY = """
import ctypes
import microtron.isa.program_files

def load_program(path):
    mutex = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).pthread_mutex_lock(mutex)
    at_work()
    ctypes.CDLL(None).pthread_mutex_lock(mutex)     # never returns, and no signal makes it
microtron.isa.program_files.load_program = load_program
"""


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "at work")
    return tmp_path / "at work"


@pytest.fixture
def endless(tmp_path):
    """A program that takes years."""
    code = encode([AluI(loops=(65535,) * 3), Sync()])
    program_image.save(Program(tiny, code, ()), tmp_path / "long.mt")
    return tmp_path / "long.mt"


@pytest.fixture
def toolbox(tmp_path):
    """A Verilator that starts a compiler that never ends, and waits for it."""
    (tmp_path / "bin").mkdir()
    for name in ("verilator", "make", "g++"):
        tool = tmp_path / "bin" / name
        tool.write_text("#!/bin/sh\n"
                        "case $* in *--version*|*-dM*) echo a tool; exit;; esac\n"
                        f"(echo at work; exec sleep 1000) > '{tmp_path}/at work' &\n"
                        "wait\n")
        tool.chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "MICROTRON_CACHE": str(tmp_path / "cache")}


def stop(number, pipe, change, *arguments, **environment):
    """Start a command, wait until it is at work, send the signal, wait until all has ended."""
    limit = (PROCESSOR_SECONDS, PROCESSOR_SECONDS)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)     # there is no writer yet
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND.replace("CHANGE", change), str(pipe), *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit))
    select.select([reader, process.stderr], [], [])
    os.set_blocking(reader, True)
    with os.fdopen(reader) as at_work:
        assert at_work.readline() == "at work\n", process.communicate()
        process.send_signal(number)
        at_work.read()
    out, error = process.communicate()
    assert process.returncode == CODES[number], error
    assert out == ""
    assert error.splitlines()[-1] == "microtron: interrupted"
    assert all(line.startswith("microtron: ") for line in error.splitlines())


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_a_build_ends_with_its_compilers_and_leaves_nothing(tmp_path, pipe, endless, toolbox,
                                                            number):
    stop(number, pipe, SHORT_VERILOG, *RUN, endless, "--device", "rtl", **toolbox)
    kept = [path for path in (tmp_path / "cache" / "rtl").iterdir()
            if not path.name.startswith("verilog-")]        # which was complete
    assert [path.suffix for path in kept] == [".lock"]


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_writing_verilog_ends_with_what_amaranth_started(tmp_path, pipe, number):
    target = tmp_path / "there.v"
    target.write_text("what was there before")
    stop(number, pipe, ENDLESS_AMARANTH, "verilog", "--config", "tiny", "-o", target)
    assert target.read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["at work", "there.v"]


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_the_hardware_stops_in_the_middle_of_a_run(pipe, endless, number):
    stop(number, pipe, SIMULATED, *RUN, endless, "--device", "rtl")


@pytest.mark.parametrize(("change", "arguments"), [
    (FUNCTIONAL, (*RUN, "--device", "functional")), (CYCLE, (*RUN, "--device", "cycle")),
    (CYCLE, ("profile", "--limit", 10 ** 18)), (CYCLE, ("compare", "--limit", 10 ** 18)),
], ids=["functional", "cycle", "profile", "compare"])
def test_commands_that_simulate_end_with_one_line(pipe, endless, change, arguments):
    stop(signal.SIGINT, pipe, change, *arguments, endless)


@pytest.mark.parametrize("change", [SEARCH, EMISSION, CYCLE], ids=["search", "emission", "cycle"])
def test_compiling_an_operator_ends_wherever_it_is(tmp_path, pipe, change):
    """It would take longer than the limit: the layer is nine million pixels."""
    stop(signal.SIGINT, pipe, change, "kernel", "conv2d", "--height", 3000, "--width", 3000,
            "--channels-in", 16, "--channels-out", 16, "--pad", 1, "-o", tmp_path / "k.mt")
    assert not (tmp_path / "k.mt").exists()


@pytest.mark.parametrize(("change", "arguments"), [
    (COMPILATION, ("compile", DIGITS, "-o", "digits.mt")), (COMPILATION, ("inspect", DIGITS)),
    (INFERENCE, ("run", DIGITS, "--config", "tiny", "-i", "image.npy", "-o", "scores.npy")),
], ids=["compile", "inspect", "run"])
def test_networks_end_with_one_line_and_no_file(tmp_path, pipe, monkeypatch, change, arguments):
    monkeypatch.chdir(tmp_path)
    np.save("image.npy", np.zeros((1, 1, 8, 8), np.float32))
    stop(signal.SIGINT, pipe, change, *arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["at work", "image.npy"]


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_a_library_that_does_not_return_is_not_waited_for(pipe, endless, number):
    stop(number, pipe, LIBRARY, "verify", endless)


WHILE_IMPORTING = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from microtron.__main__ import main
main()
"""


def test_an_interrupt_before_anything_has_begun_is_one_line_too():
    done = subprocess.run([sys.executable, "-c", WHILE_IMPORTING], capture_output=True, text=True)
    assert done.returncode == CODES[signal.SIGINT]
    assert done.stderr == "microtron: interrupted\n"
