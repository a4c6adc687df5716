"""Set-up for one make goal: system packages, `.venv`, and this package installed in it.

Runs before anything is installed, so it uses the standard library alone. It compares what is
there with what `[tool.microtron.goals]` in pyproject.toml asks for and acts on the difference:
when nothing changed, neither apt nor pip is started.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
RECORD = VENV / "set_up.json"       # what was installed here last
OLDEST_PYTHON = (3, 11)
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
APT_INSTALL = ("install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120")
Record: TypeAlias = dict[str, Any]      # what JSON knows


class SetUpError(Exception):
    """What is missing and what to do about it."""


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: set_up.py GOAL", file=sys.stderr)
        return 2
    try:
        set_up(sys.argv[1])
    except SetUpError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


def set_up(goal: str) -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise SetUpError(f"{sys.executable} is Python {PYTHON}, but 3.11 or newer is needed; "
                         f"name one with: make {goal} PYTHON=python3.11")
    extras, debian = needs_of(goal)
    provide([package for package, sign in debian.items() if not is_there(sign)], goal)
    record = read_record()
    if record.get("python") != PYTHON or record.get("venv") != str(VENV):
        create_venv(goal)
        record = {"python": PYTHON, "venv": str(VENV), "extras": [], "pyproject": ""}
        write_record(record)
    pyproject = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    wanted = sorted({*record["extras"], *extras})       # what another goal installed stays
    if record["extras"] != wanted or record["pyproject"] != pyproject:
        install(wanted)
        write_record({**record, "extras": wanted, "pyproject": pyproject})


def needs_of(goal: str) -> tuple[list[str], dict[str, str]]:
    """The extras of a goal, and its Debian packages, each with a sign that it is there."""
    import tomllib  # not at the top: older Pythons lack it, and are told so in words

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    goals = project["tool"]["microtron"]["goals"]
    if goal not in goals:
        raise SetUpError(f"goal is {goal!r}, but must be one of {', '.join(goals)}")
    names = {"python": f"python{PYTHON}", "include": sysconfig.get_path("include"),
             **other_processor()}
    return goals[goal]["extras"], {package.format(**names): sign.format(**names)
                                   for package, sign in goals[goal]["debian"].items()}


def other_processor() -> dict[str, str]:
    """The one of two 64-bit processors that this machine does not have: what Debian calls its
    compiler, that compiler, and its libraries."""
    if platform.machine() == "x86_64":
        return {"other": "aarch64", "other_tool": "aarch64", "other_libraries": "arm64"}
    return {"other": "x86-64", "other_tool": "x86_64", "other_libraries": "amd64"}


def is_there(sign: str) -> bool:
    """Whether a command is found or, if the sign is a path, a file exists."""
    return Path(sign).exists() if "/" in sign else shutil.which(sign) is not None


def read_record() -> Record:
    """What an earlier run left, or nothing when there is no working environment."""
    try:
        record: Record = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return {}
    return record if (VENV / "bin" / "python").exists() else {}


def write_record(record: Record) -> None:
    temporary = RECORD.with_suffix(".new")
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    temporary.replace(RECORD)


def create_venv(goal: str) -> None:
    if not importlib.util.find_spec("ensurepip"):   # Debian packs it, and so pip, apart
        provide([f"python{PYTHON}-venv"], goal)
    say(f"creating .venv with Python {PYTHON}")
    interpreter = getattr(sys, "_base_executable", sys.executable)  # we may run inside .venv
    run(interpreter, "-m", "venv", "--clear", str(VENV))
    # The root is the package whatever its folder is called; mypy wants it under its own name.
    (VENV / "src").mkdir()
    (VENV / "src" / "microtron").symlink_to(ROOT)


def install(extras: list[str]) -> None:
    target = f".[{','.join(extras)}]" if extras else "."
    say(f"installing microtron{target[1:]} into .venv (a minute or two)")
    run(str(VENV / "bin" / "python"), "-m", "pip", "install", "--no-input",
        "--disable-pip-version-check", "--editable", target)


def provide(packages: list[str], goal: str) -> None:
    """Install Debian packages, or say how."""
    if not packages:
        return
    apt = apt_command()
    if not apt:
        raise SetUpError(f"system packages are missing; install them with\n"
                         f"    sudo apt-get install {' '.join(packages)}\n"
                         f"and then run make {goal} again")
    say(f"installing {' '.join(packages)} with apt-get")
    if not succeeds(*apt, *APT_INSTALL, *packages):     # the package lists may be absent or old
        succeeds(*apt, "update")    # one dead source must not stop us: the next line decides
        run(*apt, *APT_INSTALL, *packages)


def apt_command() -> tuple[str, ...]:
    """How this user runs apt-get without being asked anything; empty where that is impossible."""
    command = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq")
    if not shutil.which("apt-get"):
        return ()
    if os.geteuid() == 0:
        return command
    if shutil.which("sudo") and succeeds("sudo", "-n", "true"):
        return ("sudo", "-n", *command)
    return ()


def run(*command: str) -> None:
    """Run quietly; the output is shown only when the command fails."""
    done = outcome(*command)
    if done.returncode:
        print(done.stdout.rstrip(), file=sys.stderr)
        raise SetUpError(f"failed with status {done.returncode}: {' '.join(command)}")


def succeeds(*command: str) -> bool:
    return outcome(*command).returncode == 0


def outcome(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")


def say(what: str) -> None:
    print(f"set-up: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
