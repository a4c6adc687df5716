"""What numba compiles is announced, kept where it can be, and is never a reason to stop."""

import errno
import os
import subprocess
import sys

import numba
import pytest
from numba.core.caching import CacheImpl, FunctionCache

from microtron.base import numba_cache
from microtron.base.atomic_files import lock_file
from microtron.base.numba_cache import enable_cache


def one_more(number):
    return number + 1


@pytest.fixture(params=[True, False])
def made(monkeypatch, tmp_path, request):
    """Makes the same function anew, as another process would."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba_cache, "_said", set())

    def make():
        function = numba.njit(one_more)
        enable_cache(function, "little thing", needs_numba=request.param)
        return function
    return make


LINE = "microtron: compiling the little thing, once: this takes some seconds\n"


def test_only_the_first_process_compiles_and_says_so(made, capsys):
    assert made()(1) == 2
    assert capsys.readouterr().err == LINE
    again = made()
    assert again(1) == 2
    assert sum(again.stats.cache_hits.values()) == 1
    assert capsys.readouterr().err == ""


def test_what_needs_nothing_of_numba_is_loaded_without_preparing_it(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for prepares in (True, False):
        function = numba.njit(one_more)
        enable_cache(function, "little thing", needs_numba=False)
        if not prepares:
            monkeypatch.setattr(type(function.targetctx), "refresh", None)
        assert function(1) == 2
    assert sum(function.stats.cache_hits.values()) == 1


def test_of_several_functions_only_the_first_says_so(made, capsys):
    function = made()
    assert (function(1), function(1.5)) == (2, 2.5)
    assert capsys.readouterr().err == LINE


def test_with_a_full_disk_it_works_and_says_so(made, capsys, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("microtron.base.atomic_files._write", full)
    assert made()(1) == 2
    assert "cannot be kept" in (said := capsys.readouterr().err)
    assert "No space left on device; name another folder with NUMBA_CACHE_DIR" in said


def test_without_any_folder_it_works(made, monkeypatch):
    assert FunctionCache._impl_class is not CacheImpl
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(FunctionCache._impl_class, "_locator_classes", [])
    assert made()(1) == 2


SLOW = """
import sys
sys.path.insert(0, sys.argv[1])
import numba, slow_function
from microtron.base.numba_cache import enable_cache

function = numba.njit(slow_function.one_more)
enable_cache(function, "little thing")
print(function(1), sum(function.stats.cache_misses.values()))
"""


def test_of_several_processes_one_compiles(tmp_path):
    (tmp_path / "slow_function.py").write_text(
        "def one_more(number):\n"
        + "".join(f"    number += number % {each}\n" for each in range(2, 60))
        + "    return number\n")
    racers = [subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)], text=True,
                               env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
                               stdout=subprocess.PIPE) for _ in range(3)]
    results = [racer.communicate()[0].split() for racer in racers]
    assert len({result for result, _ in results}) == 1
    assert sorted(misses for _, misses in results) == ["0", "0", "1"]


def test_a_lock_that_is_another_process_keeps_is_given_up(made, monkeypatch):
    monkeypatch.setattr(numba_cache, "PATIENCE", 0)
    with lock_file(made()._cache._cache_file.lock):
        assert made()(1) == 2
