"""Every cache of the tree: what is damaged or another entry's is made again, never believed."""

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import numba
import numpy as np
import pytest

from microtron.base import cached_folder as folders
from microtron.base.cache import ANEW, CODE, RESULTS, Cache, cache_key, read_entry
from microtron.base.cached_folder import cached_folder
from microtron.base.errors import MicrotronError
from microtron.base.numba_cache import enable_cache
from microtron.base.source_digest import SourceTree
from microtron.compiler.operators import program_cache as kernels
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.isa.verification import token_cache
from microtron.runtime.devices import rtl_build
from microtron.sim.simulated_cost import SimulatedCost
from microtron.testing.random_programs import random_program

DAMAGES = {
    "truncated": lambda content: content[:len(content) // 2],
    "cut by a byte": lambda content: content[:-1],
    "emptied": lambda content: b"",
    "flipped": lambda content: content[:-3] + bytes([content[-3] ^ 4]) + content[-2:],
    "flipped at its start": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "zeros": lambda content: bytes(len(content)),
    "longer": lambda content: content + b"\0",
}
PROGRAMS = [Program(tiny, encode([Sync()] * count), (
    Segment("uop", 8, Access.READ, data=np.full(8, count, np.uint8)),)) for count in (1, 2)]


@dataclass
class Asker:
    """A cache under test: `ask` wants one of two things, as a new process would."""

    patch: pytest.MonkeyPatch
    made: list[int] = field(default_factory=list)


class Results(Asker):
    folder = RESULTS.part

    def ask(self, which):
        return Cache(self.folder, 1 << 20).get_or_make(cache_key("result", str(which)), lambda: (
            self.made.append(which) or bytes([which + 1] * 10)))


class Cycles(Asker):
    folder = RESULTS.part
    modules = ("microtron.sim.simulated_cost",)

    def ask(self, which):
        self.patch.setattr(SimulatedCost, "_simulate", lambda cost, program: (
            self.made.append(which) or 1000 + len(program.code)))
        return SimulatedCost()(PROGRAMS[which])


class Tokens(Asker):
    folder = RESULTS.part
    modules = ("microtron.isa.verification.token_cache",)
    programs = tuple(random_program(tiny, seed) for seed in range(2))

    def ask(self, which):
        self.patch.setattr(token_cache, "with_tokens", lambda program: (
            self.made.append(which) or program))
        return token_cache.with_cached_tokens(self.programs[which]).code.tobytes()


class Kernels(Asker):
    """The module of what makes it, and those of what it is made from."""

    folder = RESULTS.part
    modules = ("microtron.compiler.operators.kernel", "microtron.isa.config",
               "microtron.isa.instructions")

    def ask(self, which):
        def make():
            self.made.append(which)
            return PROGRAMS[which]

        make.__module__ = "microtron.compiler.operators.kernel"
        return kernels.cached_program(make, tiny, which, Sync).code.tobytes()


class Code(Asker):
    folder = CODE.part

    def ask(self, which):
        return CODE.get_or_make(cache_key("thing", str(which)), lambda: (
            self.made.append(which) or bytes([which + 1] * 10)))


class Numba(Asker):
    """Two signatures of one function."""

    folder = "numba"

    def ask(self, which):
        function = numba.njit(_one_more)
        enable_cache(function, "little thing", needs_numba=which == 0)
        result = function((1, 1.5)[which])
        self.made += [which] * sum(function.stats.cache_misses.values())
        return result


def _one_more(number):
    return number + 1


class Hardware(Asker):
    folder = "rtl"

    def ask(self, which):
        def make(folder, log):
            self.made.append(which)
            (folder / "inside").mkdir()
            (folder / "inside" / "library.so").write_bytes(bytes([which + 1] * 10))

        self.patch.setattr(rtl_build, "_tool_versions", lambda: ("Verilator 9",))
        return (rtl_build.cached_build("model", (str(which),), make) / "inside"
                / "library.so").read_bytes()


class Boards(Asker):
    folder = "fpga"

    def ask(self, which):
        def make(folder):
            self.made.append(which)
            (folder / "netlist").write_bytes(bytes([which + 1] * 10))

        return (cached_folder(self.folder, "step", (str(which),), make, work="working")
                / "netlist").read_bytes()


CACHES = (Results, Cycles, Tokens, Kernels, Code, Numba, Hardware, Boards)


@pytest.fixture(params=CACHES, ids=lambda each: each.__name__)
def cache(request, monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path))
    monkeypatch.delenv(ANEW, raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setattr(folders, "_checked", {})
    return request.param(monkeypatch)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


@pytest.mark.parametrize(("cache", "damage"), [
    (cache, damage) for cache in CACHES for damage in DAMAGES
    if cache is not Numba or damage in ("truncated", "flipped")],       # it compiles each time
    indirect=["cache"])
def test_what_is_damaged_is_made_again_and_kept(cache, damage, tmp_path):
    right = cache.ask(0)
    assert cache.ask(0) == right
    assert cache.made == [0]
    for path in files(tmp_path / cache.folder):
        whole = path.read_bytes()
        path.write_bytes(DAMAGES[damage](whole))
        cache.made.clear()
        assert cache.ask(0) == right
        assert cache.made == [0]
        assert cache.ask(0) == right
        assert cache.made == [0]


def test_an_entry_under_another_s_name_is_not_believed(cache, tmp_path):
    right = [cache.ask(which) for which in range(2)]
    assert right[0] != right[1]
    entries = files(tmp_path / cache.folder)
    first = [path for path in entries if path.suffix != ".nbi"]
    assert len(first) in (2, 4)             # with a manifest each, if they are folders
    half = len(first) // 2
    contents = [path.read_bytes() for path in first]
    for path, content in zip(first, contents[half:] + contents[:half], strict=True):
        path.write_bytes(content)
    cache.made.clear()
    assert [cache.ask(which) for which in range(2)] == right
    assert cache.made == [0, 1]


@pytest.mark.parametrize("cache", [Cycles, Tokens, Kernels], indirect=True)
def test_other_sources_make_it_again(cache, monkeypatch):
    """Whatever they are: `test_source_digest.py` says when the digest changes."""
    right, digest, asked = cache.ask(0), SourceTree.digest, []
    monkeypatch.setattr(SourceTree, "digest", lambda tree, modules: (
        asked.append(modules) or digest(tree, modules)[::-1]))
    assert cache.ask(0) == cache.ask(0) == right
    assert cache.made == [0, 0]
    assert set(asked) == {cache.modules}


@pytest.mark.parametrize("cache", [Hardware, Boards], indirect=True)
def test_a_folder_that_was_replaced_is_made_again(cache, tmp_path):
    right = [cache.ask(which) for which in range(2)]
    folders = sorted(path for path in (tmp_path / cache.folder).iterdir() if path.is_dir())
    for replace in (lambda: shutil.copytree(folders[1], folders[0]), folders[0].mkdir,
                    lambda: folders[0].symlink_to(folders[1]),
                    lambda: folders[0].symlink_to("nowhere"), lambda: folders[0].write_bytes(b"")):
        if folders[0].is_symlink() or folders[0].is_file():
            folders[0].unlink()
        elif folders[0].exists():
            shutil.rmtree(folders[0])
        replace()
        assert [cache.ask(which) for which in range(2)] == right
    assert not list((tmp_path / cache.folder).glob(".*"))


@pytest.mark.parametrize("trouble", ["full", "a file is in the way"])
def test_without_room_it_works_or_says_where_to_go(cache, trouble, tmp_path, monkeypatch):
    if trouble == "full":
        def full(file, content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        monkeypatch.setattr("microtron.base.atomic_files._write", full)
    else:
        (tmp_path / cache.folder).write_text("")
    if isinstance(cache, Hardware | Boards):            # which are of no use without
        with pytest.raises(MicrotronError, match=r"cannot be written: (No|Not a|File exists)"):
            cache.ask(0)
    else:
        assert cache.ask(0) == cache.ask(0)
        assert cache.made == [0, 0] or isinstance(cache, Numba)     # which goes elsewhere


RACER = """
import sys
from pathlib import Path
from microtron.base.cache import read_entry, write_entry

for number in range(100):
    write_entry(Path(sys.argv[1]), "key", bytes([number]) * 100_000)
    content = read_entry(Path(sys.argv[1]), "key")
    assert len(content) == 100_000 and len(set(content)) == 1
"""


def test_several_processes_never_see_half_an_entry(tmp_path):
    path = tmp_path / "entry"
    racers = [subprocess.Popen([sys.executable, "-c", RACER, str(path)]) for _ in range(2)]
    assert [racer.wait() for racer in racers] == [0, 0]
    assert read_entry(path, "key") == bytes([99]) * 100_000
    assert [each.name for each in tmp_path.iterdir()] == ["entry"]
