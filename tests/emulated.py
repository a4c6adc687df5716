"""Machine code for a processor of either family, whichever this machine has, by an emulator.

One program runs in the emulator and loads what it is asked to: to build and start one for each
kernel would take most of the time. MICROTRON_COMPILED_OPERATORS names a processor of `EMULATED`
whose code tests of operators run, besides 1 for this one (`make soak`).
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microtron.base.machine_code import object_file
from microtron.base.processor import TARGETS, Target
from microtron.compiler.cpu.cpu_part import RUN, Part

CHOICE = os.environ.get("MICROTRON_COMPILED_OPERATORS", "")
SECONDS = 120                       # after which a call hangs
SOURCE = Path(__file__).with_suffix(".c")
MATH = Path(__file__).parents[1] / "runtime" / "aot" / "microtron_math.c"
UNKNOWN, GIVEN, SCRATCH = range(3)  # kinds of buffers, as in the program
AVX512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Emulated:
    """A processor: what code is made for, and what runs it."""

    target: Target
    emulator: str                   # its own name for the processor; "": this machine is one

    @property
    def family(self) -> str:
        return f"{self.target.triple.partition('-')[0]}-linux-gnu"

    def check(self) -> None:
        """Skip a test if this machine lacks what it takes; `make soak` installs all tools."""
        for tool in (f"{self.family}-gcc", f"{self.family}-ld"):
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")
        if not self.emulator and not set(Path("/proc/cpuinfo").read_text().split()) >= AVX512:
            pytest.skip("this processor has no AVX-512, and no emulator here has")

    @property
    def command(self) -> list[str]:
        if not self.emulator:
            return []
        root = Path("/usr") / self.family
        return [f"qemu-{self.target.triple.partition('-')[0]}", "-cpu", self.emulator,
                "-L", str(root if (root / "lib" / "libc.so.6").exists() else "/")]


def _x86(cpu: str, emulator: str, features: str = "", vector_bytes: int = 16) -> Emulated:
    return Emulated(replace(TARGETS["x86-64"], name=cpu, cpu=cpu, features=features,
                            vector_bytes=vector_bytes), emulator)


EMULATED = {
    "x86-64-v1": _x86("x86-64", "qemu64"),                          # SSE2
    "x86-64-v2": _x86("x86-64-v2", "Nehalem"),                      # SSE4.2
    "x86-64-avx": _x86("sandybridge", "SandyBridge"),               # AVX, but no F16C and FMA
    "x86-64-v3": Emulated(TARGETS["x86-64"], "Haswell-noTSX"),      # AVX2
    "x86-64-v4": _x86("x86-64-v4", "", "+fma,+f16c", 64),           # AVX-512
    "aarch64": Emulated(TARGETS["aarch64"], "cortex-a53"),
    "aarch64-dot": Emulated(replace(TARGETS["aarch64"], name="neoverse-n1", cpu="neoverse-n1",
                                    features="+dotprod,+fullfp16"), "neoverse-n1"),
}


def chosen() -> Emulated | None:
    """The processor that tests of operators are asked to run on; None: this one, or none."""
    assert CHOICE in ("", "1", *EMULATED), f"{CHOICE} is not one of {', '.join(EMULATED)}"
    return EMULATED.get(CHOICE)


@dataclass(frozen=True)
class Buffer:
    """A place of a kernel's table: content, or the size of what it writes, or a place in scratch
    memory."""

    kind: int
    element: int
    size: int
    content: bytes = b""


class Worker:
    """The program in the emulator, which answers one request after the other."""

    def __init__(self, processor: Emulated) -> None:
        processor.check()
        self.processor, self.folder = processor, tempfile.TemporaryDirectory()
        program = Path(self.folder.name) / "worker"
        subprocess.run([f"{processor.family}-gcc", "-O2", "-rdynamic", "-o", program, SOURCE, MATH,
                        "-Wl,--no-as-needed", "-lm", "-ldl"], check=True, timeout=SECONDS)
        self.process = subprocess.Popen([*processor.command, str(program)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.count = 0
        weakref.finalize(self, _end, self.process, self.folder)

    def call(self, text: str, name: str, buffers: Sequence[Buffer], scratch: int,
             calls: Sequence[tuple[int, int]]) -> tuple[int, list[bytes]]:
        """What a function of a module returns, and what it leaves in the buffers that it was not
        given."""
        path = self._library(text)
        request = [len(str(path)), len(name), str(path).encode(), name.encode(), scratch,
                   len(buffers)]
        for each in buffers:
            request += [each.kind, each.element, each.size, each.content]
        request.append(len(calls))
        request += [number for pair in calls for number in pair]
        guard = threading.Timer(SECONDS, self.process.kill)
        guard.start()
        try:
            return self._answer(b"".join(
                part if isinstance(part, bytes) else struct.pack("<q", part)
                for part in request), buffers)
        finally:
            guard.cancel()
            path.unlink()

    def _library(self, text: str) -> Path:
        """The module as a shared object under a new name: one that was seen is not loaded again."""
        self.count += 1
        path = Path(self.folder.name) / f"module{self.count}.so"
        code = path.with_suffix(".o")
        code.write_bytes(object_file(text, self.processor.target))
        subprocess.run([f"{self.processor.family}-ld", "-shared", "-o", path, code], check=True,
                       timeout=SECONDS)
        code.unlink()
        return path

    def _answer(self, request: bytes, buffers: Sequence[Buffer]) -> tuple[int, list[bytes]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
            head = self.process.stdout.read(8)
            assert len(head) == 8
            status, damaged = struct.unpack("<ii", head)
            found = [self.process.stdout.read(each.size) for each in buffers
                     if each.kind == UNKNOWN]
        except (OSError, AssertionError):
            worker.cache_clear()            # the next test gets another
            raise AssertionError(f"the emulated program ended with {self.process.wait()}") from None
        assert damaged == -1, f"something was written around buffer {damaged}"
        return status, found


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    with process, suppress(OSError):        # waits, and closes both pipes
        process.kill()
    folder.cleanup()


@cache
def worker(processor: Emulated) -> Worker:
    return Worker(processor)


def run_part(part: Part, inputs: Mapping[str, Array], processor: Emulated) -> dict[str, Array]:
    """The outputs of a part of a graph. An index outside its axis is an error."""
    buffers: dict[int, Buffer] = {}
    for name, place in part.inputs.items():
        buffers[place] = given(np.ascontiguousarray(inputs[name]))
    for name, place in part.outputs.items():
        buffers[place] = unknown(part.types[name].dtype, part.types[name].shape)
    buffers |= {place: given(array) for place, array in part.constants.items()}
    buffers |= {place: Buffer(SCRATCH, 1, offset) for place, offset in part.scratch.items()}
    status, found = worker(processor).call(part.text, RUN, [buffers[place] for place in range(
        part.places)], part.scratch_bytes, [(0, len(part.kernels))])
    assert status == 0, f"{part.kernels[status - 1].node}: an index from data is outside its axis"
    contents = dict(zip((place for place in range(part.places)
                         if buffers[place].kind == UNKNOWN), found, strict=True))
    return {name: np.frombuffer(contents[place], part.types[name].dtype).reshape(
        part.types[name].shape) for name, place in part.outputs.items()}


def given(array: Array) -> Buffer:
    return Buffer(GIVEN, array.itemsize, array.nbytes, array.tobytes())


def unknown(dtype: str, shape: Sequence[int]) -> Buffer:
    size = np.dtype(dtype).itemsize
    return Buffer(UNKNOWN, size, size * int(np.prod(shape)))
