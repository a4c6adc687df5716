"""Ctrl-C ends what takes long, on every simulator, from whatever thread it was called."""

import subprocess
import sys
from threading import Thread

import pytest

from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Alu, AluI, Gemm, Load, Requantize, Store
from microtron.sim.compiled.interruptible import NEVER, Stop, interruptible
from microtron.sim.functional.effects import Effects
from microtron.sim.functional.machine_table import DONE, STOPPED
from microtron.sim.functional.memory import Memory
from microtron.sim.functional.scratchpads import Scratchpads
from microtron.sim.functional.simulator import _compute, compute

from ..command import FIRST_USE
from .functional.support import SMALL, program

LOOPS = (2, 2, 2)

# Every program here would take hours. A process that does not hear the signal is killed when it has
# used up its processor time, of which each case needs a few tenths of a second.
CASES = """
import os, resource, signal, sys, time
from threading import Event, Thread
import numpy as np
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import *
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.runtime.devices.cycle import CycleDevice
from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional
from microtron.sim.simulate import simulate

ALL = (65535, 65535, 65535)
odd = Config(block_in=2, block_out=2, uop_bytes=512, inp_bytes=1024, wgt_bytes=4096, acc_bytes=8192,
             out_bytes=2048)


def program(config, *code):
    return Program(config, encode([*code, Sync()]), (
        Segment("source", 4096, Access.READ), Segment("target", 4096, Access.WRITE)))


def functional(*code, order=None, config=tiny):
    Functional(program(config, *code), limit=1 << 70).run(order)


def cycle(*code):
    simulate(program(tiny, *code), limit=1 << 60)


def with_data(*code):
    device = CycleDevice(limit=1 << 60)
    device.load(program(tiny, *code))
    device.run()


def in_a_thread(function, *arguments):
    worker = Thread(target=function, args=arguments, daemon=True)
    worker.start()
    worker.join()


UNEVEN = AluI(loops=(65535, 65535, 2), dst_stride=(0, 0, 1))
cases = {
    "alui": lambda: functional(AluI(loops=ALL)),
    "gemm": lambda: functional(Gemm(loops=ALL)),
    "odd lanes": lambda: functional(AluI(loops=ALL), config=odd),
    "load": lambda: functional(*[Load(shape=(65535, 1, 100))] * 1000),
    "store": lambda: functional(Store(segment=1, shape=(65535, 65535, 1))),
    "two steps": lambda: functional(AluI(loops=ALL), order=Adversarial(5)),
    "load in two steps": lambda: functional(*[Load(shape=(65535, 1, 100))] * 1000,
                                            order=Adversarial(5)),
    "cycle": lambda: cycle(UNEVEN),
    "cycle, memory": lambda: cycle(*[Load(shape=(65535, 1, 8))] * 4000),
    "cycle, with data": lambda: with_data(AluI(loops=(65535, 65535, 1))),
    "thread": lambda: in_a_thread(functional, AluI(loops=ALL)),
    "cycle, thread": lambda: in_a_thread(cycle, UNEVEN),
}
begun = Event()


def press():
    while True:
        begun.wait()
        begun.clear()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)


signal.signal(signal.SIGINT, signal.default_int_handler)
functional(AluI(), Gemm(), Requantize(), Alu(), Load(), Store(segment=1))       # compiled by now
with_data(AluI())
most = int(time.process_time()) + 30
resource.setrlimit(resource.RLIMIT_CPU, (most, most))
Thread(target=press, daemon=True).start()
for name, run in cases.items():
    try:
        begun.set()
        run()
        print(name, "ended", flush=True)
    except KeyboardInterrupt:
        print(name, "interrupted", flush=True)
os._exit(0)
"""


def test_every_simulator_hears_an_interrupt_at_once():
    done = subprocess.run([sys.executable, "-c", CASES], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(" interrupted")] == []
    assert (done.returncode, len(lines), FIRST_USE.sub("", done.stderr)) == (0, 12, "")


KINDS = {
    "alu": Alu(loops=LOOPS), "alui": AluI(loops=LOOPS), "requantize": Requantize(loops=LOOPS),
    "gemm": Gemm(loops=LOOPS), "load": Load(shape=LOOPS),
    "store": Store(segment=0, shape=LOOPS)}


@pytest.mark.parametrize("name", KINDS)
def test_compiled_functions_look_at_the_cell_that_says_to_stop(name):
    image = program(tiny, KINDS[name], memory=4096)
    effects = Effects(image, Memory(image))
    effects.use(Scratchpads(tiny))
    assert effects.execute(0, heavy=True) == DONE
    effects._stop.set(True)
    assert effects.execute(0) == STOPPED


@pytest.mark.parametrize("name", ["alu", "alui", "requantize", "gemm"])
def test_so_do_those_for_any_tiles(name):
    config = Config(block_in=2, block_out=2, **SMALL)
    pads = Scratchpads(config)
    pads.acc += 1
    before = pads.acc.copy()
    stop = Stop()
    stop.set(True)
    _compute(KINDS[name], pads, {"stop": stop.address})
    assert (pads.acc == before).all()
    compute(KINDS[name], pads, heavy=True)


def test_what_ends_the_waiting_stops_the_code_and_is_raised(monkeypatch):
    stop, seen = Stop(), []

    class Interrupted(BaseException):
        pass

    def endless():
        while not stop._cell[0]:
            pass
        seen.append("stopped")

    def interrupted(worker):
        monkeypatch.undo()                  # only the first wait is
        raise Interrupted

    monkeypatch.setattr(Thread, "join", interrupted)
    with pytest.raises(Interrupted):
        interruptible(endless, stop)
    assert seen == ["stopped"]
    assert not stop._cell[0]
    assert not NEVER._cell[0]
