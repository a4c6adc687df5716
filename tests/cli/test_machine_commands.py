"""`microtron doctor` and `microtron completion`: what this machine has, and its shell."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from microtron.cli.machine import checks
from microtron.cli.machine.completion import words_of_commands
from microtron.cli.main import parser

from ..command import bad, command, good

ROOT = Path(__file__).resolve().parents[2]


def found():
    return {each["name"]: each for each in json.loads(good("doctor", "--json"))}


def test_the_doctor_finds_what_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path))
    machine = found()
    for name in ("python", "cache", "numpy"):
        assert machine[name]["ok"]
        assert machine[name]["required"]
        assert not machine[name]["fix"]
    assert machine["cache"]["found"].startswith(str(tmp_path))
    text = good("doctor")
    assert len(text.splitlines()) == len(machine)
    assert text.startswith("ok      python")


def test_the_doctor_looks_for_every_extra_that_commands_need():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert {extra for _, _, extra in checks.PACKAGES if extra} == {*extras} - {
        "dev", "docs", "train"}                 # what the project itself needs
    for name, _, extra in checks.PACKAGES:
        assert not extra or any(re.match(rf"{name}\b", each) for each in extras[extra])


def test_the_doctor_says_how_to_get_what_is_absent(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(checks, "LINKS", (str(tmp_path / "tty*"),))
    monkeypatch.setattr(checks, "PACKAGES", (("no-such-package", "nothing", "hw"),))
    machine = found()                       # what only some commands need is no error
    assert machine["verilator"]["fix"] == "apt-get install verilator"
    assert machine["no-such-package"]["fix"] == "pip install 'microtron[hw]'"
    assert not machine["boards"]["ok"]
    assert "absent  verilator" in good("doctor")
    (tmp_path / "ttyUSB0").touch()
    tool = tmp_path / "verilator"
    tool.write_text("#!/bin/sh\necho Verilator 7\n")
    tool.chmod(0o755)
    machine = found()
    assert machine["verilator"]["found"] == "Verilator 7"
    assert machine[str(tmp_path / "ttyUSB0")]["ok"]
    assert "boards" not in machine
    tool.write_text("#!/bin/sh\nexit 3\n")
    assert found()["verilator"]["found"] == str(tool)


def test_a_cache_that_cannot_be_written_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "file" / "cache"))
    ended = command("doctor")
    assert ended.code == 1
    assert "MISSING cache" in ended.out
    assert "MICROTRON_CACHE" in ended.out


def complete(folder, *words):
    """What bash offers after some words."""
    script = good("completion", "bash")
    (folder / "script").write_text(script)
    line = " ".join(map(shlex.quote, words))
    done = subprocess.run(
        ["bash", "-c", f"source ./script; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
                       f'_microtron; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, check=True, cwd=folder)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_files(tmp_path):
    (tmp_path / "model.onnx").touch()
    assert complete(tmp_path, "microtron", "rep") == ["report"]
    assert complete(tmp_path, "microtron", "compile", "--rep") == ["--report"]
    assert complete(tmp_path, "microtron", "compile", "mod") == ["model.onnx"]
    assert "conv2d" in complete(tmp_path, "microtron", "kernel", "co")
    assert complete(tmp_path, "microtron", "kernel", "conv2d", "--height") == ["--height"]
    assert complete(tmp_path, "microtron", "run", "--no-c") == ["--no-check"]


def test_every_shell_knows_every_option():
    words = words_of_commands(parser(with_operators=True))
    assert {"report", "kernel conv2d", "doctor"} <= set(words)
    for shell in ("bash", "zsh", "fish"):
        script = good("completion", shell)
        for name, options in words.items():
            assert name.split()[-1:] == [] or name.split()[-1] in script
            for option in options:
                assert option.removeprefix("--") in script
    assert "only for bash, zsh, fish" in bad("completion", "csh")
