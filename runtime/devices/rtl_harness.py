"""The compiled accelerator with its memory and driver, as an object: registers, windows, time."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.classes.dataclass import dataclass
from ...base.errors import ExecutionError
from ...isa.instructions import Engine
from ...isa.memory_timing import MemoryTiming
from ...isa.registers import offset_of
from .rtl_header import TimingStruct, timing_struct

Cycles = npt.NDArray[np.int64]
CHUNK = 1 << 9          # cycles in one call, after which Ctrl-C is noticed: about 0.1 s at most


@dataclass(frozen=True)
class Window:
    """Memory that exists, from a base address. Everything else answers with an error."""

    base: int
    data: npt.NDArray[np.uint8]
    writable: bool


class Progress(ctypes.Structure):
    """How far an engine came: how many instructions started and ended, and the last of each."""

    _fields_ = [(name, ctypes.c_int64) for name in
                ("started", "start_position", "ended", "end_position")]

    started: int
    start_position: int
    ended: int
    end_position: int


class Harness:
    """One accelerator under Verilator. Cycles are counted from the first one of a run."""

    def __init__(self, library: Path, timing: MemoryTiming):
        self._functions = _functions(library)
        self._handle = self._functions.microtron_create(timing_struct(timing))
        self._windows: tuple[Window, ...] = ()
        self._trace: tuple[Cycles, Cycles] | None = None
        weakref.finalize(self, self._functions.microtron_destroy, self._handle)

    def reset(self) -> None:
        """Reset everything, as switching a board on does. Memory keeps its content. Nothing is
        noted any more: what is reset may seem to start in the first cycle of that."""
        self._functions.microtron_trace(self._handle, None, None, 0)
        self._functions.microtron_reset(self._handle)

    def place(self, windows: Sequence[Window]) -> None:
        """Make these the windows into memory. Their arrays are used in place."""
        self._windows = tuple(windows)          # the harness has only pointers: keep the arrays
        self._functions.microtron_clear_windows(self._handle)
        for window in self._windows:
            assert window.data.flags.c_contiguous
            self._functions.microtron_add_window(
                self._handle, window.base, len(window.data), window.data.ctypes.data,
                window.writable)

    def fail(self, addresses: range) -> None:
        """Let accesses to these addresses be answered with an error; to none if it is empty."""
        self._functions.microtron_fail(self._handle, addresses.start, addresses.stop)

    def write(self, register: str, value: int) -> None:
        if not self._functions.microtron_write(self._handle, offset_of(register), value):
            raise ExecutionError(f"the accelerator did not accept {value:#x} for its register "
                                 f"{register}")

    def read(self, register: str) -> int:
        value = ctypes.c_uint32()
        if not self._functions.microtron_read(self._handle, offset_of(register),
                                              ctypes.byref(value)):
            raise ExecutionError(f"the accelerator did not answer when its register {register} "
                                 f"was read")
        return value.value

    def trace(self, start: Cycles, end: Cycles) -> None:
        """From now on, note the cycle in which each instruction starts and ends."""
        self._trace = start, end
        self._functions.microtron_trace(self._handle, start.ctypes.data, end.ctypes.data,
                                        len(start))

    def run(self, limit: int) -> bool:
        """Let time pass until the accelerator interrupts. False if the cycles do not suffice."""
        while limit > 0:
            if self._functions.microtron_run(self._handle, min(limit, CHUNK)):
                return True
            limit -= CHUNK
        return False

    def progress(self) -> dict[Engine, Progress]:
        engines = (Progress * len(Engine))()
        self._functions.microtron_progress(self._handle, engines)
        return dict(zip(Engine, engines, strict=True))

    def complaint(self) -> str:
        """What the accelerator did on the bus that it must not do, and forget it; else nothing."""
        address, write = ctypes.c_uint64(), ctypes.c_bool()
        strays = self._functions.microtron_strays(self._handle, ctypes.byref(address),
                                                  ctypes.byref(write))
        broken = self._functions.microtron_complaint(self._handle).decode()
        self._functions.microtron_forgive(self._handle)
        if broken:
            return f"it broke a rule of the bus: {broken}"
        if strays:
            return (f"it {'wrote to' if write.value else 'read'} {address.value:#x}, where it has "
                    f"no window; {strays} such beats in all")
        return ""

    def open_waveform(self, path: Path) -> None:
        if not self._functions.microtron_open_waveform(self._handle, str(path).encode()):
            raise ExecutionError(f"{path}: cannot be written")

    def close_waveform(self) -> None:
        self._functions.microtron_close_waveform(self._handle)


def _functions(library: Path) -> Any:
    """The functions of a library with their types; without them, ctypes would cut pointers."""
    functions: Any = ctypes.CDLL(str(library))
    handle, address = ctypes.c_void_p, ctypes.c_uint64
    for name, result, *arguments in (
            ("create", handle, ctypes.POINTER(TimingStruct)),
            ("destroy", None, handle),
            ("reset", None, handle),
            ("clear_windows", None, handle),
            ("add_window", None, handle, address, address, ctypes.c_void_p, ctypes.c_bool),
            ("fail", None, handle, address, address),
            ("write", ctypes.c_bool, handle, ctypes.c_uint32, ctypes.c_uint32),
            ("read", ctypes.c_bool, handle, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)),
            ("trace", None, handle, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64),
            ("run", ctypes.c_bool, handle, ctypes.c_uint64),
            ("open_waveform", ctypes.c_bool, handle, ctypes.c_char_p),
            ("close_waveform", None, handle),
            ("progress", None, handle, ctypes.POINTER(Progress)),
            ("strays", ctypes.c_uint64, handle, ctypes.POINTER(address),
             ctypes.POINTER(ctypes.c_bool)),
            ("complaint", ctypes.c_char_p, handle),
            ("forgive", None, handle)):
        function = getattr(functions, f"microtron_{name}")
        function.restype, function.argtypes = result, arguments
    return functions
