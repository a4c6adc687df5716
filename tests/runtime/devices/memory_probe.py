"""The harness' memory on its own, compiled without an accelerator and driven from Python."""

import ctypes
import subprocess
import weakref
from pathlib import Path

from microtron.runtime.devices.rtl_build import HARNESS, tool
from microtron.runtime.devices.rtl_header import TimingStruct, declarations, timing_struct

LANES = 32
ADDRESS = ("valid", "addr", "id", "len", "size", "burst")


class Driven(ctypes.Structure):
    """What a master drives in one cycle."""

    _fields_ = [*((f"{channel}{name}", ctypes.c_int64) for channel in ("ar", "aw")
                  for name in ADDRESS),
                *((name, ctypes.c_int64)
                  for name in ("wvalid", "wlast", "wstrb", "rready", "bready")),
                ("wdata", ctypes.c_uint8 * LANES)]


class Shown(ctypes.Structure):
    """What memory shows in one cycle."""

    _fields_ = [*((name, ctypes.c_int64) for name in
                  ("arready", "awready", "wready", "rvalid", "rid", "rresp", "rlast", "bvalid",
                   "bid", "bresp")),
                ("rdata", ctypes.c_uint8 * LANES)]


def compile_probe(folder: Path):
    """The library with the functions of memory_probe.cpp."""
    (folder / "declarations.h").write_text(declarations())
    sources = [Path(__file__).with_name("memory_probe.cpp"), HARNESS / "memory.cpp",
               HARNESS / "protocol.cpp"]
    subprocess.run([tool("g++"), "-shared", "-fPIC", "-std=c++17", "-O1", "-Wall", "-Wextra",
                    "-Werror", f"-I{HARNESS}", f"-I{folder}", "-o", folder / "probe.so", *sources],
                   check=True)
    functions = ctypes.CDLL(str(folder / "probe.so"))
    handle, number = ctypes.c_void_p, ctypes.c_uint64
    for name, result, *arguments in (
            ("create", handle, ctypes.POINTER(TimingStruct), ctypes.c_uint),
            ("destroy", None, handle),
            ("begin", None, handle),
            ("window", None, handle, number, number, ctypes.c_void_p, ctypes.c_bool),
            ("fail", None, handle, number, number),
            ("stalled", ctypes.c_bool, ctypes.POINTER(TimingStruct), number, ctypes.c_uint),
            ("decide", None, handle, ctypes.c_bool, ctypes.POINTER(Shown)),
            ("clock", None, handle, ctypes.POINTER(Driven)),
            ("strays", number, handle),
            ("complaint", ctypes.c_char_p, handle)):
        function = getattr(functions, f"probe_{name}")
        function.restype, function.argtypes = result, arguments
    return functions


class Probe:
    """One memory. `cycle` is a whole cycle: what is driven goes in, what is shown comes out."""

    def __init__(self, functions, timing, bus_bytes=8):
        self.functions = functions
        self.bus_bytes = bus_bytes
        self.handle = functions.probe_create(timing_struct(timing), bus_bytes)
        weakref.finalize(self, functions.probe_destroy, self.handle)
        self.arrays = []
        functions.probe_begin(self.handle)

    def window(self, base, data, writable=True):
        self.arrays.append(data)
        self.functions.probe_window(self.handle, base, len(data), data.ctypes.data, writable)

    def fail(self, addresses):
        self.functions.probe_fail(self.handle, addresses.start, addresses.stop)

    def begin(self):
        self.functions.probe_begin(self.handle)

    def cycle(self, wdata=b"", **driven):
        """Shows are a dictionary; `rdata` is as wide as the bus."""
        size = self.bus_bytes.bit_length() - 1
        signals = Driven(**{"arsize": size, "arburst": 1, "awsize": size, "awburst": 1,
                            "wdata": (ctypes.c_uint8 * LANES)(*wdata), **driven})
        shown = Shown()
        self.functions.probe_decide(self.handle, bool(driven.get("wvalid")), shown)
        self.functions.probe_clock(self.handle, signals)
        result = {name: getattr(shown, name) for name, _ in Shown._fields_}
        return {**result, "rdata": bytes(shown.rdata)[:self.bus_bytes]}

    @property
    def strays(self):
        return self.functions.probe_strays(self.handle)

    @property
    def complaint(self):
        return self.functions.probe_complaint(self.handle).decode()
