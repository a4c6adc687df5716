"""What the README and the tour of the command line show works as it is written, in a folder that
has nothing but the examples."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from microtron.cli.main import main
from microtron.isa.assembly.assembler import assemble
from microtron.isa.config import tiny
from microtron.isa.verification.verifier import inspect
from microtron.runtime.devices.rtl_build import library

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
SHOWN = list(dict.fromkeys(re.findall(r"^    \$ (.+)\n((?:    (?!\$ ).+\n)*)", README + TOUR,
                                      re.MULTILINE)))
PYTHON = re.findall(r"^```python\n(.*?)^```$", README + TOUR, re.MULTILINE | re.DOTALL)
SLOW = re.compile(r"microtron verilog")         # seconds of Amaranth, which other tests spend too


@pytest.fixture(autouse=True)
def clone(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


def environment():
    """That of an activated `.venv`."""
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def in_this_process(command, capsys):
    """What a command prints; it must succeed."""
    first, *words = shlex.split(command)
    if first == "python":
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
        return done.stdout
    assert first == "microtron"
    with pytest.raises(SystemExit) as stop:
        main(words)
    printed = capsys.readouterr()
    assert not stop.value.code, printed.err
    return printed.out


def test_every_command_runs_in_its_turn_and_prints_what_is_shown(capsys, monkeypatch):
    built = []
    monkeypatch.setattr("microtron.runtime.devices.rtl.library", lambda config, **options: (
        built.append(config) or library(config, **options)))
    for command, output in SHOWN:
        if not SLOW.search(command):
            printed = in_this_process(command, capsys)
            shown = "".join(line[4:] for line in output.splitlines(keepends=True))
            assert printed == shown or not shown, command
    assert np.array_equal(np.load("c.npy"), np.load("expected.npy"))
    assert set(built) == {tiny}, "hardware that Verilator compiles in a minute"


@pytest.mark.soak
@pytest.mark.parametrize("command", [each for each, _ in SHOWN if SLOW.search(each)])
def test_every_slow_command_runs(command):
    subprocess.run(command, shell=True, check=True, env=environment())


def test_the_command_is_where_an_activated_environment_finds_it():
    done = subprocess.run("microtron --version", shell=True, check=True, env=environment(),
                          capture_output=True, text=True)
    assert done.stdout.startswith("microtron ")


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_every_block_of_python_runs(code):
    found: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), found)


def test_the_layer_that_is_shown_is_computed_right():
    found: dict[str, object] = {}
    [code] = [each for each in PYTHON if "kernel.run" in each]
    exec(compile(code, "README.md", "exec"), found)
    functional, _ = found["kernel"].run(found["inputs"])
    assert np.array_equal(found["result"], functional)
    assert found["result"].min() == 0       # ReLU
    assert found["report"].cycles > found["report"].macs / 256


def test_the_race_that_is_shown_is_the_one_that_is_found():
    text = (ROOT / "examples" / "matmul.asm").read_text(encoding="utf-8")
    broken = text.replace("requantize wait=gemm|store params", "requantize wait=gemm params", 1)
    shown = re.search(r"^    (instruction 13 .*?)\n\n", TOUR, re.MULTILINE | re.DOTALL)[1]
    assert inspect(assemble(broken)).findings[0] == re.sub(r"\s+", " ", shown)


def test_the_readme_has_ten_figures_that_the_page_of_measurements_has_too():
    measured = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!what)[^|]+ \| (.+) \|$", README, re.MULTILINE)
    assert len(rows) == 10
    for row in rows:
        for figure in re.findall(r"\d[\d,.]*\d", row):
            assert re.search(rf"(?<![\d,.]){re.escape(figure)}(?![\d])", measured), figure
