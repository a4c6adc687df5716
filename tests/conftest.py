"""Tests compute everything, whatever was kept: some of them change parts of the compiler."""

import fcntl
import gc
import os
import sys

from hypothesis import settings

os.environ["MICROTRON_ANEW"] = "1"          # also for the commands that they start
# Tests start hundreds of commands: whatever the environment says, sources are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The same examples every run; `make soak` tries more, and others each time.
settings.register_profile("ci", settings.get_profile("ci"), max_examples=20)
for name, count in (("machine", 150), ("soak", 1000)):
    settings.register_profile(name, settings.get_profile("ci"), derandomize=False,
                              max_examples=count)


START = os.open(__file__, os.O_RDONLY)      # locked by the process that starts


def pytest_configure(config):
    """Of several processes, one compiles the simulators, the emitter and the tests' assertions
    while the others wait."""
    if hasattr(config, "workerinput"):
        from microtron import Conv2d, compile_op
        from microtron.isa.config import tiny
        from microtron.sim.cycle.run import run_cycles
        from microtron.sim.functional.simulator import Functional
        from microtron.testing.random_programs import random_program

        fcntl.flock(START, fcntl.LOCK_EX)
        program = random_program(tiny, 0)
        Functional(program).run()
        run_cycles(program)
        compile_op(Conv2d(height=4, width=4, channels_in=4, channels_out=4), tiny)
        gc.disable()        # until all tests are there


def pytest_collection_finish():
    """Ten thousand tests stay to the end: looking for what can go need not look at them, nor look
    as often as Python does, which takes 6 % of the time."""
    fcntl.flock(START, fcntl.LOCK_UN)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish():
    gc.unfreeze()           # else extension modules complain that it is still there
