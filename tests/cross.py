"""Programs for other processors: built with their own compilers, run by an emulator."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

SECONDS = 120                       # after which a program hangs
# Where qemu's `virt` machine has memory: half for code and data, half to work in.
MEMORY = 0x8000_0000
HALF = 0x400_0000


@dataclass(frozen=True)
class Processor:
    """How programs are built for a processor and run."""

    compiler: tuple[str, ...]
    emulator: tuple[str, ...]       # what comes before the program; nothing, if it runs by itself

    def check(self) -> None:
        """Skip a test if a tool is missing; `make test` installs all of them."""
        for tool in (self.compiler[0], *self.emulator[:1]):
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")

    def build(self, folder: Path, sources: Iterable[Path | str]) -> Path:
        program = folder / "program"
        done = subprocess.run([*self.compiler, *map(str, sources), "-o", str(program), "-lm"],
                              capture_output=True, text=True, cwd=folder, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return program

    def run(self, program: Path) -> str:
        """What a program prints; it must end well."""
        done = subprocess.run([*self.emulator, str(program)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              cwd=program.parent, timeout=SECONDS)
        assert done.returncode == 0, f"{done.returncode}: {done.stdout}"
        return done.stdout


def _bare_riscv(architecture: str) -> Processor:
    """Without an operating system: picolibc prints through the emulator."""
    places = {"__flash": MEMORY, "__flash_size": HALF, "__ram": MEMORY + HALF, "__ram_size": HALF}
    return Processor(
        ("riscv64-unknown-elf-gcc", f"-march={architecture}", "-mabi=ilp32", "-O2",
         "--specs=picolibc.specs", "--crt0=hosted", "--oslib=semihost",
         *(f"-Wl,--defsym={name}={value:#x}" for name, value in places.items())),
        ("qemu-system-riscv32", "-M", "virt", "-m", "256M", "-bios", "none", "-nographic",
         "-semihosting-config", "enable=on", "-kernel"))


def _linux(name: str, machine: str, *options: str) -> Processor:
    """With Linux: this machine itself, or its compiler for another and an emulator of that one."""
    if platform.machine() == machine:
        return Processor(("gcc", "-O2", *options), ())
    return Processor((f"{name}-gcc", "-O2", *options), (f"qemu-{machine}", "-L", f"/usr/{name}"))


PROCESSORS = {
    "rv32imac": _bare_riscv("rv32imac"),
    "rv32im": _bare_riscv("rv32im"),
    "armv7-neon": _linux("arm-linux-gnueabihf", "arm", "-march=armv7-a", "-mfpu=neon"),
    "aarch64": _linux("aarch64-linux-gnu", "aarch64"),
    "x86-64": _linux("x86_64-linux-gnu", "x86_64"),
}
