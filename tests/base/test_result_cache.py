"""Results are kept whole or not at all, are never out of date, and never take too much room."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import microtron
from microtron.base import result_cache
from microtron.base.errors import MicrotronError
from microtron.base.result_cache import BLOCK, CHECKED_AFTER, LEFT, Store, _source, name_of, sources
from microtron.compiler.operators import program_cache
from microtron.isa.verification import token_cache
from microtron.sim import simulated_cost

ROOT = Path(microtron.__file__).parent


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(result_cache.ANEW, raising=False)
    return tmp_path / "cache" / result_cache.FOLDER


def test_what_was_put_is_found_by_others(folder):
    Store().put("a", b"result")
    assert Store().get("a") == b"result"
    assert Store().get("b") is None
    assert [each.name for each in folder.iterdir()] == ["a"]


@pytest.mark.parametrize("damage", [
    lambda content: content[:-1], lambda content: b"", lambda content: content[1:],
    lambda content: content[:-1] + b"X", lambda content: content + b"X"])
def test_a_damaged_result_is_none(folder, damage):
    Store().put("a", b"result")
    (folder / "a").write_bytes(damage((folder / "a").read_bytes()))
    assert Store().get("a") is None


def test_with_anew_nothing_is_kept_or_found(folder, monkeypatch):
    Store().put("a", b"result")
    monkeypatch.setenv(result_cache.ANEW, "1")
    Store().put("b", b"result")
    assert Store().get("a") is None
    monkeypatch.setenv(result_cache.ANEW, "0")
    assert Store().get("a") == b"result"
    assert Store().get("b") is None


def test_anew_is_refused_if_it_says_something_else(folder, monkeypatch):
    monkeypatch.setenv(result_cache.ANEW, "yes")
    with pytest.raises(MicrotronError, match=r"MICROTRON_ANEW is 'yes', but must be 1, .* or 0"):
        Store().get("a")


@pytest.mark.parametrize("trouble", ["file", "full", "homeless"])
def test_a_store_that_cannot_be_used_is_no_reason_to_stop(folder, monkeypatch, trouble):
    if trouble == "file":
        folder.parent.write_text("a file is in the way")
    elif trouble == "full":
        def full(file, content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        monkeypatch.setattr("microtron.base.atomic_files._write", full)
    else:
        def homeless():
            raise RuntimeError("Could not determine home directory.")
        monkeypatch.delenv("MICROTRON_CACHE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr("pathlib.Path.home", homeless)
    Store().put("a", b"result")
    assert Store().get("a") is None


def test_the_oldest_results_go_when_there_are_too_many(folder):
    most = 20
    small = Store(most * BLOCK)
    for number in range(most + 1):
        small.put(f"{number:04}", b"result")
        os.utime(folder / f"{number:04}", ns=(number, number))
    for number in range(most + 1, CHECKED_AFTER + 1):       # the last one makes room first
        small.put(f"{number:04}", b"result")
    left = sorted(each.name for each in folder.iterdir())
    assert len(left) == int(LEFT * most) + 1
    assert left[-1] == f"{CHECKED_AFTER:04}"
    assert not {f"{number:04}" for number in range(most + 1)} & set(left)


def test_names_tell_parts_apart():
    names = [name_of("kind", *parts) for parts in ((b"ab",), (b"a", b"b"), (b"", b"ab"),
                                                   (b"ab", b""), (b"b", b"a"))]
    names.append(name_of("other", b"ab"))
    assert len(set(names)) == len(names)
    assert name_of("kind", b"ab") == names[0]


def test_sources_that_changed_under_a_process_share_no_results(tmp_path):
    """What it runs is not what it would take the digest of."""
    path = tmp_path / "a" / "one.py"
    path.parent.mkdir()
    path.write_text("text")

    def digest(written):
        os.utime(path, ns=(written, written))
        _source.cache_clear()
        return sources.__wrapped__(("a",), tmp_path)

    before = digest(result_cache.STARTED - 1)
    later = digest(result_cache.STARTED + 1)
    assert digest(result_cache.STARTED) == before
    assert len({before, later, digest(result_cache.STARTED + 1)}) == 3


def test_any_change_of_a_source_is_another_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(result_cache, "STARTED", 1 << 62)
    files = [tmp_path / name for name in ("a/one.py", "a/b/two.py", "c/three.py")]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)

    def digest():
        _source.cache_clear()
        return sources.__wrapped__(("a", "c"), tmp_path)

    before, seen = digest(), set()
    for path in files:
        path.write_text("changed")
        seen.add(digest())
        path.write_text(path.name)
    files[0].rename(files[0].with_name("four.py"))
    seen.add(digest())
    files[0].with_name("four.py").rename(tmp_path / "c" / "one.py")
    seen.add(digest())
    (tmp_path / "c" / "one.py").rename(files[0])
    (tmp_path / "a" / "b" / "added.py").touch()
    seen.add(digest())
    assert len(seen - {before}) == 6
    (tmp_path / "a" / "b" / "added.py").unlink()
    assert digest() == before


@pytest.mark.parametrize(("module", "folders"), [
    ("compiler.operators.catalogue", program_cache.FOLDERS),
    ("compiler.accelerator.lower_schedule", program_cache.FOLDERS),
    ("sim.simulate", simulated_cost.FOLDERS),
    ("isa.verification.order.walk", token_cache.FOLDERS)])
def test_everything_that_computes_a_result_is_among_its_sources(module, folders):
    script = (f"import sys, microtron.{module}\n"
              "print(*(each.__file__ for name, each in sys.modules.items()"
              " if name.startswith('microtron.')), sep='\\n')")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=True)
    used = [Path(each).resolve().relative_to(ROOT.resolve()) for each in done.stdout.split()]
    assert len(used) > 10
    outside = {str(path) for path in used
               if not any(path.is_relative_to(folder) for folder in folders)}
    assert outside <= {"compiler/__init__.py", "compiler/errors.py"}        # they compute nothing
