"""Threads that share iterations: all of them, once."""

import pytest

from microtron.isa.errors import MicrotronError
from microtron.runtime.thread_pool import VARIABLE, Pool, thread_count


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("iterations", [1, 2, 7, 100])
def test_every_iteration_is_run_once_whatever_the_number_of_threads(threads, iterations):
    ran = []

    def kernel(table, first, last):
        assert table == "table"
        ran.extend(range(first, last))
        return 0
    assert Pool(threads).run(kernel, "table", iterations) == 0
    assert sorted(ran) == list(range(iterations))


def test_what_one_of_them_reports_is_the_status():
    assert Pool(3).run(lambda table, first, last: int(first <= 5 < last), None, 9) == 1


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
