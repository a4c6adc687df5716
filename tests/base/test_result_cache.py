"""Results are kept whole or not at all, are never out of date, and never take too much room."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from microtron.base.cache import ANEW, BLOCK, CHECKED_AFTER, LEFT, RESULTS, Cache, cache_key
from microtron.base.errors import MicrotronError
from microtron.base.source_digest import source_files


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(ANEW, raising=False)
    return tmp_path / "cache" / RESULTS.part


def test_what_was_put_is_found_by_others(folder):
    RESULTS.put("a", b"result")
    assert RESULTS.get("a") == b"result"
    assert RESULTS.get("b") is None
    assert [each.name for each in folder.iterdir()] == ["a"]


@pytest.mark.parametrize("damage", [
    lambda content: content[:-1], lambda content: b"", lambda content: content[1:],
    lambda content: content[:-1] + b"X", lambda content: content + b"X"])
def test_a_damaged_result_is_none(folder, damage):
    RESULTS.put("a", b"result")
    (folder / "a").write_bytes(damage((folder / "a").read_bytes()))
    assert RESULTS.get("a") is None


def test_with_anew_nothing_is_kept_or_found(folder, monkeypatch):
    RESULTS.put("a", b"result")
    monkeypatch.setenv(ANEW, "1")
    RESULTS.put("b", b"result")
    assert RESULTS.get("a") is None
    monkeypatch.setenv(ANEW, "0")
    assert RESULTS.get("a") == b"result"
    assert RESULTS.get("b") is None


def test_anew_is_refused_if_it_says_something_else(folder, monkeypatch):
    monkeypatch.setenv(ANEW, "yes")
    with pytest.raises(MicrotronError, match=r"MICROTRON_ANEW is 'yes', but must be 1, .* or 0"):
        RESULTS.get("a")


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
    RESULTS.put("a", b"result")
    assert RESULTS.get("a") is None


def test_the_oldest_results_go_when_there_are_too_many(folder):
    most = 20
    small = Cache(RESULTS.part, most * BLOCK)
    for number in range(most + 1):
        small.put(f"{number:04}", b"result")
        os.utime(folder / f"{number:04}", ns=(number, number))
    for number in range(most + 1, CHECKED_AFTER + 1):       # the last one makes room first
        small.put(f"{number:04}", b"result")
    left = sorted(each.name for each in folder.iterdir())
    assert len(left) == int(LEFT * most) + 1
    assert left[-1] == f"{CHECKED_AFTER:04}"
    assert not {f"{number:04}" for number in range(most + 1)} & set(left)


def test_what_is_used_stays_when_there_are_too_many(folder):
    most = 20
    for number in range(most):
        Cache(RESULTS.part, 1 << 30).put(f"{number:04}", b"result")
        os.utime(folder / f"{number:04}", ns=(number, number))
    assert RESULTS.get("0003") == b"result"
    Cache(RESULTS.part, most * BLOCK // 2).put("last", b"result")
    left = sorted(each.name for each in folder.iterdir())
    assert len(left) == int(LEFT * most / 2) + 1
    assert left[0] == "0003"


def test_names_tell_parts_apart():
    names = [cache_key("kind", *parts) for parts in ((b"ab",), (b"a", b"b"), (b"", b"ab"),
                                                   (b"ab", b""), (b"b", b"a"))]
    names += [cache_key("other", b"ab"), cache_key("kin", b"dab")]
    assert len(set(names)) == len(names)
    assert cache_key("kind", b"ab") == cache_key("kind", "ab") == names[0]


@pytest.mark.parametrize(("root", "late"), [
    ("compiler.operators.kernel", ("compiler.accelerator.emission.emit",
                                   "compiler.accelerator.lower_schedule")),
    ("compiler.network.linking.link", ()),
    ("sim.simulated_cost", ("sim.simulate", "sim.cycle.run", "sim.cycle.loop")),
    ("isa.verification.token_cache", ("isa.verification.order.walk",)),
    ("hw.top", ())])
def test_everything_that_is_imported_is_among_the_sources_of_a_key(root, late):
    """`late` is what it imports when it is called."""
    script = (f"import sys, microtron.{', microtron.'.join((root, *late))}\n"
              "print(*(each.__file__ for name, each in sys.modules.items()"
              " if name.startswith('microtron.')), sep='\\n')")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=True)
    used = {Path(each).resolve() for each in done.stdout.split()}
    assert len(used) > 10
    assert used <= set(source_files(f"microtron.{root}"))
