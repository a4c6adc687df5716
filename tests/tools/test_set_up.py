"""Set-up acts on differences only, and says in words what it cannot do."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "set_up.py"
PYPROJECT = """
[tool.microtron.goals]
demo = { extras = [], debian = {} }
test = { extras = ["dev"], debian = {} }
rtl = { extras = [], debian = { hdl-tool = "hdl-tool-that-is-not-there" } }
headers = { extras = [], debian = { "{python}-dev" = "{include}/Python.h" } }
"""


class Machine:
    """Stands in for the machine: records the commands and answers each with a status."""

    def __init__(self):
        self.commands: list[str] = []
        self.failures: dict[str, list[int]] = {}    # part of a command → statuses, in order

    def run(self, command, **options):
        text = " ".join(command)
        self.commands.append(text)
        if "-m venv --clear" in text:
            shutil.rmtree(command[-1], ignore_errors=True)
            (Path(command[-1]) / "bin").mkdir(parents=True)
            (Path(command[-1]) / "bin" / "python").touch()
        for part, statuses in self.failures.items():
            if part in text and statuses:
                return subprocess.CompletedProcess(command, statuses.pop(0), f"{part} said no")
        return subprocess.CompletedProcess(command, 0, "")

    def ran(self, part):
        return [command for command in self.commands if part in command]


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(subprocess, "run", machine.run)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return machine


@pytest.fixture
def tool(tmp_path, machine, monkeypatch):
    """tools/set_up.py, working on an empty checkout on a machine that has apt-get and sudo."""
    spec = importlib.util.spec_from_file_location("set_up", SCRIPT)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(tool, "RECORD", tmp_path / ".venv" / "set_up.json")
    monkeypatch.setattr(tool.shutil, "which",
                        lambda name: name if name in ("apt-get", "sudo") else None)
    return tool


def test_a_second_run_starts_no_program(tool, machine):
    tool.set_up("test")
    assert machine.ran("pip install")[0].endswith("--editable .[dev]")
    machine.commands.clear()
    tool.set_up("test")
    tool.set_up("demo")
    assert machine.commands == []


def test_a_changed_pyproject_installs_again_into_the_same_environment(tool, machine, tmp_path):
    tool.set_up("test")
    machine.commands.clear()
    (tmp_path / "pyproject.toml").write_text(PYPROJECT + "# changed\n")
    tool.set_up("demo")
    assert len(machine.commands) == 1
    assert machine.commands[0].endswith("--editable .[dev]")    # what test installed stays


def test_a_stopped_install_is_done_again(tool, machine):
    machine.failures["pip install"] = [1]
    with pytest.raises(tool.SetUpError, match=r"failed with status 1: .*pip install"):
        tool.set_up("demo")
    tool.set_up("demo")
    assert len(machine.ran("-m venv")) == 1
    assert len(machine.ran("pip install")) == 2


def test_a_checkout_copied_with_its_environment_gets_a_new_one(tool, machine, tmp_path):
    tool.set_up("demo")
    record = tmp_path / ".venv" / "set_up.json"
    record.write_text(record.read_text().replace(str(tmp_path), "/another/place"))
    tool.set_up("demo")
    assert len(machine.ran("-m venv")) == 2


def test_package_lists_are_updated_only_when_an_install_failed(tool, machine):
    tool.set_up("rtl")
    assert len(machine.ran("install --yes")) == 1
    assert machine.ran("apt-get -qq update") == []
    machine.failures["install --yes"] = [100]
    tool.set_up("rtl")
    assert len(machine.ran("install --yes")) == 3
    assert len(machine.ran("apt-get -qq update")) == 1


def test_a_system_package_that_cannot_be_installed_is_named(tool, machine, capsys):
    machine.failures["install --yes"] = [100, 100]
    with pytest.raises(tool.SetUpError, match=r"status 100: .*hdl-tool"):
        tool.set_up("rtl")
    assert "install --yes said no" in capsys.readouterr().err


def test_without_root_or_sudo_it_says_what_to_install(tool, machine, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    machine.failures["sudo -n true"] = [1]
    with pytest.raises(tool.SetUpError, match=r"sudo apt-get install hdl-tool\n.* make rtl"):
        tool.set_up("rtl")
    assert machine.ran("apt-get") == []


def test_sudo_that_asks_nothing_is_used(tool, machine, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    tool.set_up("rtl")
    assert machine.ran("apt-get")[0].startswith("sudo -n env DEBIAN_FRONTEND=noninteractive")


def test_a_python_without_pip_gets_its_venv_package(tool, machine, monkeypatch):
    monkeypatch.setattr(tool.importlib.util, "find_spec", lambda name: None)
    tool.set_up("demo")
    assert machine.ran("apt-get")[0].endswith(f"python{tool.PYTHON}-venv")


def test_a_package_may_be_known_by_a_file_of_this_python(tool, machine, monkeypatch, tmp_path):
    monkeypatch.setattr(tool.sysconfig, "get_path", lambda name: str(tmp_path / name))
    tool.set_up("headers")
    assert machine.ran("apt-get")[0].endswith(f" python{tool.PYTHON}-dev")
    machine.commands.clear()
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "Python.h").touch()
    tool.set_up("headers")
    assert machine.commands == []


def test_an_unknown_goal_and_an_old_python_are_refused(tool, monkeypatch):
    with pytest.raises(tool.SetUpError, match="goal is 'dance', but must be one of demo, test"):
        tool.set_up("dance")
    monkeypatch.setattr(tool.sys, "version_info", (3, 10))
    with pytest.raises(tool.SetUpError, match=r"3\.11 or newer is needed; .* make demo PYTHON="):
        tool.set_up("demo")
