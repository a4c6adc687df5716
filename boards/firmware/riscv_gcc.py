"""The compiler for VexRiscv: Debian's gcc for RISC-V, with our sources and flags."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...base.errors import MicrotronError
from ...base.processes import run_tool

SOURCE = Path(__file__).parent / "source"
PREFIX = "riscv64-unknown-elf-"
PACKAGE = "gcc-riscv64-unknown-elf"
LIBRARY = Path("/usr/lib/picolibc/riscv64-unknown-elf/picolibc.specs")
LIBRARY_PACKAGE = "picolibc-riscv64-unknown-elf"
CPU = "rv32im"                  # every variant of VexRiscv here, as runtime/ahead calls it
# Interrupts and caches are reached through control registers, which gcc has to be told about.
COMPILE = (f"-march={CPU}_zicsr", "-mabi=ilp32", "-Os", "-std=c11", "-Wall", "-Wextra", "-Werror",
           "-ffreestanding", "-ffunction-sections", "-fno-tree-loop-distribute-patterns", "-c")
LINK = (f"-march={CPU}", "-mabi=ilp32", "-nostartfiles", "-static", "-Wl,--gc-sections",
        "-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments")


def find_tool(name: str) -> str:
    """Where a tool is, or what to install."""
    path = shutil.which(PREFIX + name)
    if path is None:
        raise MicrotronError(f"{PREFIX}{name} is needed to build firmware, but is not on PATH; on "
                             f"Debian or Ubuntu: apt-get install {PACKAGE}")
    return path


def compile_sources(folder: Path, sources: Sequence[Path], *, data_cache: bool) -> list[str]:
    """Compile sources, with the folder's headers and ours, into it; the names of the objects."""
    flags = (*COMPILE, f"-DDATA_CACHE={int(data_cache)}")
    objects = [f"{path.stem}.o" for path in sources]
    for path, name in zip(sources, objects, strict=True):
        _run(folder, "gcc", *flags, "-I.", f"-I{SOURCE}", str(path), "-o", name)
    return objects


def link(folder: Path, output: str, script: str, objects: Sequence[str],
           symbols: Mapping[str, int], *libraries: str) -> None:
    """Link objects with one of our scripts; `symbols` are what it has to know."""
    _run(folder, "gcc", *LINK, f"-T{SOURCE / script}",
         *(f"-Wl,--defsym={name}={value:#x}" for name, value in symbols.items()), *objects,
         *libraries, "-o", output)


def extract_binary(folder: Path, elf: str, output: str) -> None:
    """A program as the bytes that memory has to hold."""
    _run(folder, "objcopy", "-O", "binary", elf, output)


def c_library_flags() -> tuple[str, ...]:
    """The C library, for what kernels compute with real numbers."""
    if not LIBRARY.exists():
        raise MicrotronError(f"picolibc is needed to build firmware for a network, but is not "
                             f"there; on Debian or Ubuntu: apt-get install {LIBRARY_PACKAGE}")
    return ("-specs=picolibc.specs", "-lm", "-lc", "-lgcc")


def _run(folder: Path, name: str, *arguments: str) -> None:
    done = run_tool([find_tool(name), *arguments], folder=folder)
    if done.returncode:
        reasons = [line.strip() for line in done.stdout.splitlines() if "ld returned" not in line]
        raise MicrotronError(f"{PREFIX}{name} failed: {' '.join(reasons)[-500:]}")
