"""Builds of the accelerator are made once, appear whole, and fail in one line."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from microtron.base.errors import MicrotronError
from microtron.isa.config import base, small, tiny
from microtron.runtime.devices import rtl_build, verilog
from microtron.runtime.devices.rtl_build import cached_build, library

SLOW_BUILD = """
import sys, time
from pathlib import Path
from microtron.runtime.devices.rtl_build import cached_build

def make(folder, log):
    with open(sys.argv[1], "a") as file:
        file.write("built\\n")
    (folder / "first").write_text("1")
    time.sleep(1)
    (folder / "second").write_text("2")

print(sorted(each.name for each in cached_build("slow", ("x",), make).iterdir()))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache of our own."""
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rtl"


def never(folder, log):
    raise AssertionError("this was built already")


def test_a_build_is_made_once_for_all_it_is_made_from(folder):
    made = []

    def make(inside, log):
        made.append(inside)
        (inside / "result").write_text("done")

    first = cached_build("thing", ("a", "b"), make)
    assert cached_build("thing", ("a", "b"), never) == first
    assert (first / "result").read_text() == "done"
    assert first.parent == folder
    assert made[0] != first                     # it was made elsewhere and then renamed
    for name, made_from in (("thing", ("ab",)), ("thing", ("a", "c")), ("other", ("a", "b"))):
        assert cached_build(name, made_from, make) != first
    assert len(made) == 4


def test_another_tool_means_another_build(monkeypatch):
    first = cached_build("thing", (), lambda folder, log: None)
    monkeypatch.setattr(rtl_build, "_tool_versions", lambda: ("Verilator 9.999",))
    assert cached_build("thing", (), lambda folder, log: None) != first


@pytest.mark.parametrize(("config", "waveform", "optimized"), [
    (tiny, None, "-Og"), (tiny, ".vcd", "-Og"), (small, None, "-Og"), (base, None, "OPT_FAST=-O3")])
def test_all_that_is_said_to_verilator_counts_as_what_a_build_is_made_from(
        config, waveform, optimized, monkeypatch):
    said, made_from = [], []

    def note_call(folder, log, command, *arguments):
        said.extend(arguments)
        (folder / "model").mkdir()
        (folder / "model" / rtl_build.LIBRARY).write_text("")

    def note_cached(name, parts, make):
        made_from.extend(parts)
        return cached_build(name, parts, make)

    monkeypatch.setattr(rtl_build, "call", note_call)
    monkeypatch.setattr(rtl_build, "cached_build", note_cached)
    library(config, waveform=waveform, design=lambda config: "a design")
    processes = said.index("-j")
    del said[processes:processes + 2]           # how many may work at a time changes nothing
    assert said.pop() == f"../{rtl_build.TOP}.v"
    assert "a design" in made_from
    assert optimized in " ".join(said)
    assert said.pop() == rtl_build.ALL_SOURCES
    assert not set(said) - set(made_from)


def test_verilator_s_runtime_is_compiled_once_for_models_with_the_same_options(monkeypatch):
    compiled = []

    def verilate(folder, log, command, *arguments):
        model = folder / "model"
        model.mkdir(exist_ok=True)
        if "-o verilated.o" not in arguments:
            (model / "verilated.o").write_text(f"{len(compiled)}")
            compiled.append(arguments)
        (model / rtl_build.LIBRARY).write_text((model / "verilated.o").read_text())

    def built(config, **options):
        return library(config, design=lambda config: f"a design {config}", **options).read_text()

    monkeypatch.setattr(rtl_build, "call", verilate)
    other = replace(tiny, queue_depth=2)
    assert [built(tiny), built(other), built(tiny, waveform=".vcd"), built(base)] == [*"0012"]
    assert built(other, waveform=".vcd") == "1"
    for path in rtl_build.cache_folder().glob("verilator-runtime-*/verilated.o"):
        path.write_text("damaged")
    assert built(replace(tiny, queue_depth=4)) == "3"


def test_make_takes_the_runtime_as_it_is(tmp_path):
    options = rtl_build._verilator_options(None, rtl_build.make_options(tiny))
    (tmp_path / "empty.cpp").write_text("")
    rtl_build.call(tmp_path, tmp_path / "log", "g++", "-c", "-fPIC", "empty.cpp")
    empty = (tmp_path / "empty.o").read_bytes()

    def write_objects(folder, log):
        for name in ("verilated.o", "verilated_threads.o"):
            (folder / name).write_bytes(empty)

    cached_build(rtl_build.RUNTIME, rtl_build._runtime_options(options), write_objects)
    (tmp_path / "empty.v").write_text(f"module {rtl_build.TOP}; endmodule\n")
    rtl_build.run_verilator(tmp_path, tmp_path / "log", options, "empty.cpp", "empty.v")
    for name in ("verilated.o", "verilated_threads.o"):
        assert (tmp_path / "model" / name).read_bytes() == empty
    assert (tmp_path / "model" / rtl_build.LIBRARY).exists()


def test_a_changed_file_of_the_harness_means_another_build(monkeypatch, tmp_path):
    def built():
        return library(tiny, design=lambda config: "a design")

    copy = tmp_path / "harness"
    shutil.copytree(rtl_build.HARNESS, copy)
    monkeypatch.setattr(rtl_build, "HARNESS", copy)
    monkeypatch.setattr(rtl_build, "_build", lambda folder, log, verilog, options: None)
    seen = {built()}
    for path in sorted(copy.iterdir()):
        path.write_text(path.read_text() + " ")
        assert built() not in seen
        seen.add(built())
    (copy / "memory.h").rename(copy / "memories.h")
    assert built() not in seen


def test_sources_that_give_the_same_verilog_do_not_compile_it_again(monkeypatch):
    written = []

    def write(config, log):
        written.append(config)
        return f"module of {config.block_in}"

    def built(digest, config=tiny):
        monkeypatch.setattr(rtl_build, "generator", lambda: digest)
        return library(config)

    monkeypatch.setattr(rtl_build, "write_verilog", write)
    monkeypatch.setattr(rtl_build, "_build", lambda folder, log, verilog, options: (
        folder / "text").write_text(verilog))
    first = built("one")
    assert built("one") == first
    assert len(written) == 1
    assert built("another") == first            # written again, compiled once
    assert len(written) == 2
    assert (first.parent / "text").read_text() == "module of 4"
    assert built("one", replace(tiny, block_in=8)) != first
    monkeypatch.setattr(rtl_build, "write_verilog", lambda config, log: "another module")
    assert built("a third") != first


def test_two_processes_that_want_the_same_build_make_it_once(tmp_path):
    notes = tmp_path / "notes"
    racers = [subprocess.Popen([sys.executable, "-c", SLOW_BUILD, str(notes)],
                               stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {racer.communicate()[0] for racer in racers} == {"['first', 'second']\n"}
    assert notes.read_text() == "built\n"


def test_a_build_that_is_stopped_leaves_nothing_behind_that_looks_finished(folder, tmp_path):
    notes = tmp_path / "notes"
    racer = subprocess.Popen([sys.executable, "-c", SLOW_BUILD.replace("sleep(1)", "sleep(60)"),
                              str(notes)])
    while not notes.exists():
        assert racer.poll() is None
        time.sleep(0.01)
    racer.kill()
    racer.wait()
    made = cached_build("slow", ("x",), lambda inside, log: None)     # the lock is free again
    assert [each for each in folder.iterdir() if each.is_dir()] == [made]
    assert not list(made.iterdir())


def test_a_failing_build_is_one_line_and_a_log(folder):
    with pytest.raises(MicrotronError) as caught:
        library(tiny, design=lambda config: "module microtron; this is no Verilog")
    message = str(caught.value)
    log, = folder.glob("*.log")
    assert "\n" not in message
    assert message.startswith("verilator failed: %Error: ")
    assert "syntax error" in message
    assert message.endswith(f"(all it said is in {log})")
    assert "syntax error" in log.read_text()
    assert not [each for each in folder.iterdir() if each.is_dir()]


@pytest.mark.parametrize("command", ["verilator", "g++", "make"])
def test_a_missing_tool_is_named_with_what_to_install(command, monkeypatch, tmp_path):
    for present in {"verilator", "g++", "make"} - {command}:
        (tmp_path / present).symlink_to(rtl_build.tool(present))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MicrotronError) as caught:
        library(tiny)
    assert str(caught.value) == (
        f"{command} is needed to compile the accelerator, but is not on PATH; on Debian or "
        f"Ubuntu: apt-get install {command}")


def test_missing_amaranth_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(verilog, "find_spec", lambda name: None)
    with pytest.raises(MicrotronError, match=r"pip install 'microtron\[hw\]'"):
        library(tiny)


def test_amaranth_that_fails_is_one_line_and_a_log(monkeypatch, folder):
    monkeypatch.setattr(verilog, "SCRIPT", "print('half of it'); raise OSError('no such gate')")
    with pytest.raises(MicrotronError) as caught:
        library(tiny)
    log, = folder.glob("*.log")
    assert str(caught.value) == (f"Amaranth failed: OSError: no such gate (all it said is in "
                                 f"{log})")
    assert "Traceback" in log.read_text()
    assert not [each for each in folder.iterdir() if each.is_dir()]


def test_files_named_like_python_s_own_modules_do_not_disturb_amaranth(tmp_path, monkeypatch):
    for name in ("json", "pathlib", "re", "sys"):
        (tmp_path / f"{name}.py").write_text("raise OSError('not the one that is meant')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.py").write_text(
        "def verilog(config, target): return f'module of {config.block_in}'")
    monkeypatch.setattr(verilog, "SCRIPT", verilog.SCRIPT.replace("microtron.hw.top", "ours"))
    assert verilog.write_verilog(tiny, tmp_path / "log") == "module of 4"


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "file"))
    with pytest.raises(MicrotronError, match=r"file/rtl: cannot be written: .*MICROTRON_CACHE"):
        library(tiny)


@pytest.mark.parametrize(("settings", "expected"), [
    ({"MICROTRON_CACHE": "/a/b"}, "/a/b/rtl"),
    ({"MICROTRON_CACHE": "", "XDG_CACHE_HOME": "/c"}, "/c/microtron/rtl"),
    ({"MICROTRON_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/d"}, "/d/.cache/microtron/rtl")])
def test_the_cache_is_where_the_user_wants_it(monkeypatch, settings, expected):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert str(rtl_build.cache_folder()) == expected
