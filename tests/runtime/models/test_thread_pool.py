"""Threads that share iterations: all of them, once."""

import os
from ctypes import CFUNCTYPE, c_int32, c_int64, c_void_p, cast
from threading import Barrier, Thread

import pytest

from microtron.base.errors import MicrotronError
from microtron.base.processor import host
from microtron.compiler.cpu.code.emit_kernel import Module
from microtron.compiler.cpu.code.sharing import HELP_STEPS, RUN_STEPS
from microtron.runtime.models.kernel_code import functions_of
from microtron.runtime.models.thread_pool import VARIABLE, Pool, Run, Step, share_of, thread_count

Finder = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_int64, c_int64)
FUNCTIONS = functions_of(Module(host()))
RUN = Run(FUNCTIONS[RUN_STEPS].address)
TABLE = 4096                    # nobody looks what is there


class Program:
    """Steps that note their iterations, and report one of them."""

    def __init__(self, *iterations, threads, shared=True, fails=None):
        self.ran = [[] for _ in iterations]
        self.fails = fails
        self.finders = [Finder(self._noting(number)) for number in range(len(iterations))]
        self.steps = (Step * len(iterations))(*(
            Step(cast(finder, c_void_p), None, None, count,
                 share_of(count, threads) if shared else 0)
            for finder, count in zip(self.finders, iterations, strict=True)))

    def _noting(self, number):
        def note(table, places, body, first, last):
            assert table == TABLE
            self.ran[number].extend(range(first, last))
            return int(self.fails == number and first <= 5 < last)
        return note

    def run(self, pool):
        return pool.run(RUN, TABLE, self.steps, 0, len(self.steps))


def pool_of(threads):
    return Pool(threads, FUNCTIONS[HELP_STEPS])


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_iteration_is_run_once_whatever_the_number_of_threads(threads, shared):
    counts, pool = (1, 2, 7, 100, 1000, 3), pool_of(threads)
    for _ in range(20):
        program = Program(*counts, threads=threads, shared=shared)
        assert program.run(pool) == 0
        assert [sorted(each) for each in program.ran] == [list(range(count)) for count in counts]
    pool.close()


@pytest.mark.parametrize("shared", [True, False])
def test_a_step_that_fails_is_the_last_one_and_named(shared):
    pool = pool_of(3)
    program = Program(9, 9, 9, threads=3, shared=shared, fails=1)
    assert program.run(pool) == 2
    assert sorted(program.ran[1]) == list(range(9))
    assert program.ran[2] == []
    assert Program(9, threads=3).run(pool) == 0             # it goes on after that
    pool.close()


def test_others_help():
    """Two iterations wait for each other, so that one thread could not run both."""
    together = Barrier(2, timeout=60)

    def waiting(table, places, body, first, last):
        together.wait()
        return 0
    finder, pool = Finder(waiting), pool_of(2)
    steps = (Step * 1)(Step(cast(finder, c_void_p), None, None, 2, 1))
    assert pool.run(RUN, TABLE, steps, 0, 1) == 0
    pool.close()


def test_two_callers_do_not_disturb_each_other():
    pool, programs = pool_of(3), [Program(300, 300, threads=3) for _ in range(40)]
    callers = [Thread(target=lambda half=half: [each.run(pool) for each in half])
               for half in (programs[::2], programs[1::2])]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert all(sorted(ran) == list(range(300)) for each in programs for ran in each.ran)
    pool.close()


def test_a_child_process_does_without_the_threads_that_stay_behind():
    pool = pool_of(2)
    program = Program(64, threads=2)
    child = os.fork()
    if not child:
        os._exit(program.run(pool) or program.ran != [list(range(64))])
    assert os.waitpid(child, 0)[1] == 0
    pool.close()


def test_the_number_of_threads_is_an_argument_or_a_setting(monkeypatch):
    monkeypatch.setenv(VARIABLE, "3")
    assert (thread_count(), thread_count(5)) == (3, 5)
    monkeypatch.delenv(VARIABLE)
    assert thread_count() >= 1


@pytest.mark.parametrize("wrong", ["0", "two", "-1", "1e3", "257", "２"])
def test_a_wrong_setting_is_refused(monkeypatch, wrong):
    monkeypatch.setenv(VARIABLE, wrong)
    with pytest.raises(MicrotronError, match=r"MICROTRON_THREADS is .*whole number from 1 to 256"):
        thread_count()


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5, 1000])
def test_a_wrong_argument_is_refused(wrong):
    with pytest.raises(MicrotronError, match=r"threads is .*, but must be a whole number"):
        thread_count(wrong)
