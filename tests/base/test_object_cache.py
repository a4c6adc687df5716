"""Compiled code is kept where it can be, and is never a reason to stop."""

import errno
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from microtron.base.cache import CODE, cache_key
from microtron.base.machine_code import object_file
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Program
from microtron.isa.stream import encode
from microtron.sim.llvm.entry import Entry
from microtron.sim.llvm.values import NUMBER
from microtron.sim.simulate import simulate


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "code"


class Maker:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return b"code"


def keep(name, made_from, make):
    return CODE.get_or_make(cache_key(name, made_from), make)


def test_it_is_made_once_and_again_when_its_origin_changes(folder, capsys):
    make = Maker()
    assert keep("little thing", "one", make) == keep("little thing", "one", make) == b"code"
    assert make.calls == 1
    keep("little thing", "another", make)
    assert make.calls == 2
    assert capsys.readouterr().err == ""
    assert all(each.name.startswith("little_thing-") for each in folder.iterdir())


@pytest.mark.parametrize("damage", [lambda code: code[:-1], lambda code: b"", lambda code: code[1:],
                                    lambda code: code[:-1] + b"X"])
def test_damaged_code_is_made_anew(folder, damage):
    make = Maker()
    keep("thing", "one", make)
    path, = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert keep("thing", "one", make) == b"code"
    assert make.calls == 2
    assert keep("thing", "one", make) == b"code"
    assert make.calls == 2


def test_without_a_folder_it_works_and_says_so(folder, capsys):
    folder.parent.write_text("a file is in the way")
    make = Maker()
    assert keep("thing", "one", make) == keep("thing", "one", make) == b"code"
    assert make.calls == 2
    assert re.search(f"cannot be kept .*{folder}.*: Not a directory", capsys.readouterr().err)


def test_without_a_home_it_works_and_says_so(monkeypatch, capsys):
    def homeless():
        raise RuntimeError("Could not determine home directory.")
    monkeypatch.delenv("MICROTRON_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", homeless)
    assert keep("thing", "one", Maker()) == b"code"
    assert "this user has no home folder" in capsys.readouterr().err


def test_with_a_full_disk_it_works_and_says_so(folder, capsys, monkeypatch):
    def full(file, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("microtron.base.atomic_files._write", full)
    assert keep("thing", "one", Maker()) == b"code"
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def one_more(number: int) -> int:
    return number + 1


def test_an_entry_is_compiled_once_whoever_calls_it(folder, monkeypatch, capsys):
    made = []
    monkeypatch.setattr("microtron.sim.llvm.entry.object_file",
                        lambda text: made.append(text) or object_file(text))
    entry = Entry(one_more, {"number": NUMBER}, name="test", sources="1")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(entry, range(100))) == list(range(1, 101))
    again = Entry(one_more, {"number": NUMBER}, name="test", sources="1")
    assert again(5) == 6
    assert len(made) == 1
    assert capsys.readouterr().err == (
        "microtron: compiling the test, once: this takes some seconds\n")
    assert Entry(one_more, {"number": NUMBER}, name="test", sources="2")(5) == 6
    assert len(made) == 2


SCRIPT = """
import sys
from microtron import simulate
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Program
from microtron.isa.stream import encode
print(simulate(Program(tiny, encode([Sync()]))).cycles, "numba" in sys.modules)
"""


def test_a_new_process_finds_what_another_compiled():
    """It says nothing, because it does not compile; and it needs no numba."""
    cycles = simulate(Program(tiny, encode([Sync()]))).cycles
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                          check=True)
    assert done.stdout.split() == [str(cycles), "False"]
    assert done.stderr == ""
