"""Tokens on every device: how full their counters were, and what a deadlock waits for."""

import re

import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, Engines, Gemm, Load, Store, Sync
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.runtime.devices.rtl import RtlDevice
from microtron.sim.functional.order import Adversarial

from .devices.test_rtl import with_code

L, G, A, S = Engines.LOAD, Engines.GEMM, Engines.ALU, Engines.STORE
DEVICES = {"functional": FunctionalDevice, "cycle": CycleDevice, "rtl": RtlDevice}
DISORDERLY = {f"functional, seed {seed}": lambda config, seed=seed: FunctionalDevice(
    config, order=Adversarial(seed)) for seed in range(3)}

# Programs that stop for ever; what waits then, where and for whom; and the tokens that are left.
DEADLOCKS = {
    "nobody posts": ([Load(), Gemm(wait=A), Sync()],
                     {("gemm", "1 (gemm", "from alu")}, "none"),
    "a circle": ([Load(wait=S, post=G), Gemm(wait=L, post=S), Store(segment=1, wait=G, post=L),
                  Sync()],
                 {("load", "0 (load.inp", "from store"), ("gemm", "1 (gemm", "from load"),
                  ("store", "2 (store.out", "from gemm")}, "none"),
    "one token too few": ([Load(post=G), Gemm(wait=L), Gemm(wait=L), AluI(), Sync()],
                          {("gemm", "2 (gemm", "from load")}, "none"),
    "one of two is there": ([Load(post=A), AluI(wait=L | G), Store(segment=1), Sync()],
                            {("alu", "1 (alui.add", "from gemm")}, "load → alu 1"),
    "two are missing": ([Store(segment=1, wait=G | A), Sync()],
                        {("store", "0 (store.out", "from gemm and from alu")}, "none"),
}
WAIT = re.compile(r"(\w+) waits at instruction (\d+ \([\w.]+)[^)]*\) for a token ([\w ]+)")

# Whatever the timing, these counters hold as much at one time: their takers wait for the last post.
FILLED = {
    "no token": ([Load(), Gemm(), Sync()], {}),
    "one after the other": ([Load(post=A), AluI(wait=L, post=S), Store(segment=1, wait=A), Sync()],
                            {"load → alu": 1, "alu → store": 1}),
    "three together": ([*[Load(post=G)] * 3, Load(post=A), AluI(wait=L, post=G),
                        Gemm(wait=L | A), *[Gemm(wait=L)] * 2, Sync()],
                       {"load → gemm": 3, "load → alu": 1, "alu → gemm": 1}),
    "never taken": ([*[Store(segment=1, post=L)] * 5, Sync()], {"store → load": 5}),
}


def deadlock(device, code):
    device.load(with_code(*code))
    with pytest.raises(ExecutionError, match="deadlock") as caught:
        device.run()
    return str(caught.value)


@pytest.mark.parametrize("name", DEADLOCKS)
@pytest.mark.parametrize("device", ["cycle", "rtl", *DISORDERLY])
def test_a_deadlock_names_who_waits_where_for_which_token_and_what_is_left(device, name):
    code, waits, left = DEADLOCKS[name]
    words = deadlock((DEVICES | DISORDERLY)[device](tiny), code)
    *found, tokens = words.partition(": ")[2].split("; ")
    assert {WAIT.fullmatch(each).groups() for each in found} == waits
    assert len(found) == len(waits)
    assert tokens == f"tokens: {left}"


@pytest.mark.parametrize("name", DEADLOCKS)
def test_in_program_order_a_deadlock_names_the_first_that_waits_and_its_token(name):
    code, waits, _ = DEADLOCKS[name]
    words = deadlock(FunctionalDevice(tiny), code)
    first = min(waits, key=lambda wait: wait[1])
    assert words.startswith(f"deadlock in program order at instruction {first[1].split()[0]}: ")
    assert first in WAIT.findall(words)


@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("device", DEVICES)
def test_a_report_says_how_full_the_counters_were(device, name):
    code, expected = FILLED[name]
    chosen = DEVICES[device](tiny)
    chosen.load(with_code(*code))
    assert chosen.run().counts.most_tokens == expected
