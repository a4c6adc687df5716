"""Finds place and route: on the path, from PyPI, or in a private Debian that is set up for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from microtron.isa.errors import MicrotronError

from .cached import cached, kept
from .families import Family

SUITE = "testing"               # stable has none of these tools
MIRROR = "http://deb.debian.org/debian"
# In a namespace of its own, where mounts vanish with the process: the tools want /proc, and find
# the design in /mnt.
ENTER = ('mount -t proc proc "$0/proc" && mount --bind . "$0/mnt" && '
         'exec chroot "$0" sh -c \'cd /mnt && exec "$@"\' sh "$@"')


@dataclass(frozen=True)
class Tool:
    """A program, and what comes in front of its arguments."""

    command: tuple[str, ...]
    version: str


def find(family: Family) -> Tool:
    """The family's nextpnr: one that is installed, or the one in the private Debian."""
    here = Path(sys.executable).parent
    for name in (family.tool, f"yowasp-{family.tool}"):
        found = shutil.which(name) or shutil.which(name, path=str(here))
        if found:
            return _tool((found,))
    if family.debian is None:
        raise MicrotronError(f"{family.tool} is missing; install it with: pip install {family.pip}")
    root = _debian(family.debian)
    return _tool(("unshare", "--mount", "sh", "-c", ENTER, str(root), family.tool))


def _tool(command: tuple[str, ...]) -> Tool:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False,
                          cwd=kept())
    said = done.stdout + done.stderr
    number = re.search(r"Version ([^\s)]+)", said)
    if done.returncode or number is None:
        raise MicrotronError(f"{command[0]} cannot run: {' '.join(said.split())[-200:]}")
    return Tool(command, f"{command[-1].rpartition('/')[2]} {number[1]}")


def _debian(package: str) -> Path:
    """A Debian of its own with the package, made once: 700 MB, some minutes."""
    def make(folder: Path) -> None:
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            raise MicrotronError(
                f"{package} is missing. Debian {SUITE} has it: install it there, or run this as "
                "root with the package debootstrap, which sets up a private Debian in the cache")
        _run("debootstrap", "--variant=minbase", SUITE, str(folder), MIRROR)
        _run("unshare", "--mount", "sh", "-c", ENTER, str(folder), "apt-get", "install", "--yes",
             "--no-install-recommends", package, f"{package}-chipdb")

    return cached(f"debian-{package}", (SUITE,), make,
                  f"setting up a private Debian with {package}, once: some minutes")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          cwd=kept())
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-300:]
        raise MicrotronError(f"{' '.join(command[:2])} failed: {said}")
