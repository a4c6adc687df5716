"""The whole system in simulation: processor, bus, memory controller and chip, accelerator.

    gateware(board, config, simulated) ──▶ Verilog ──verilator──▶ libsoc.so, kept by content
    monitor ──▶ soc_rom.init, read when a simulation begins

Only the pins differ from the board: a model of the memory chip with the same latencies, and a
serial line that carries bytes instead of bits. The network is left out, but for CabledBoard
(cable.py).
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path

from ....base.progress import announce
from ....isa.config import Config
from ....runtime.devices.rtl_build import (
    COMPILER_OPTIONS,
    LINKER_OPTIONS,
    MODEL,
    VERILATOR_OPTIONS,
    cached_build,
    make_options,
    run_verilator,
)
from ...facts.board import Board
from ..file_names import TOP
from ..system_steps import gateware_steps, memory_files, verilog_files

HARNESS = Path(__file__).parent / "harness"
LIBRARY = "libsoc.so"
SLICE = 200_000                 # cycles until the keyboard may interrupt
HALF_SECOND = 5 * 10**14        # femtoseconds: what the periods of both clocks are measured in
OPTIONS = (*VERILATOR_OPTIONS, "--top-module", TOP, "--Mdir", MODEL, "-o", LIBRARY,
           "-LDFLAGS", " ".join(LINKER_OPTIONS))


def build_model(board: Board, config: Config) -> tuple[Path, dict[str, str]]:
    """The library of a system's model, and the files that it reads when it begins."""
    with tempfile.TemporaryDirectory(prefix="microtron-soc-") as name:
        work = Path(name)
        steps = gateware_steps(board, config, simulated=True)
        for number, step in enumerate(steps, 1):
            step.run(work, number, len(steps))
        texts = {each: (work / each).read_text() for each in verilog_files(board, simulated=True)}
        memories = {each: (work / each).read_text() for each in memory_files(board)}
    options = {"-DETHERNET": board.ethernet is not None, "-DCROSSED": board.clock.is_crossed}
    library = compile_model(f"{board.name}-{config.digest}", texts, make_options(config),
                            tuple(option for option, is_set in options.items() if is_set))
    return library, memories


def compile_model(name: str, verilog: dict[str, str], make: str, options: tuple[str, ...]) -> Path:
    """The library of a design whose top has a system's ports, kept under a name."""
    texts = verilog | {path.name: path.read_text() for path in sorted(HARNESS.iterdir())}
    flags = " ".join((*COMPILER_OPTIONS, *options))
    arguments = (*OPTIONS, "-CFLAGS", flags, "-MAKEFLAGS", make)
    folder = cached_build(f"soc-{name}", (*arguments, *texts.values()),
                          lambda folder, log: _build(folder, log, arguments, texts))
    return folder / LIBRARY


def _build(folder: Path, log: Path, options: tuple[str, ...], texts: dict[str, str]) -> None:
    work = folder / "build"
    work.mkdir()
    for name, text in texts.items():
        (work / name).write_text(text, encoding="utf-8")
    with announce("compiling the model of the system, once for each configuration: a minute"):
        run_verilator(work, log, options, *texts)
    (work / MODEL / LIBRARY).rename(folder / LIBRARY)
    shutil.rmtree(work)


class SimulatedBoard:
    """A board that runs in simulation, from power-on; a line for `runtime.monitor.client`."""

    def __init__(self, board: Board, config: Config):
        library, memories = self._model(board, config)
        self._library = ctypes.CDLL(str(library))
        self._library.soc_new.restype = ctypes.c_void_p
        for name in ("soc_run", "soc_cycles"):
            getattr(self._library, name).restype = ctypes.c_uint64
        with tempfile.TemporaryDirectory(prefix="microtron-soc-") as name:
            for file, text in memories.items():
                (Path(name) / file).write_text(text)
            halves = (ctypes.c_uint64(HALF_SECOND // hz)
                      for hz in (board.clock.system_hz, board.clock.compute_hz))
            self._system = ctypes.c_void_p(self._library.soc_new(name.encode(), *halves))
        weakref.finalize(self, self._library.soc_free, self._system)

    @staticmethod
    def _model(board: Board, config: Config) -> tuple[Path, dict[str, str]]:
        return build_model(replace(board, ethernet=None), config)

    @property
    def cycles(self) -> int:
        """Since power-on."""
        return int(self._library.soc_cycles(self._system))

    def write(self, data: bytes) -> None:
        self._library.soc_send(self._system, data, ctypes.c_uint64(len(data)))

    def read(self, count: int, patience: int) -> bytes:
        """So many bytes from the board, or fewer if they do not come in so many cycles."""
        there = 0
        while there < count and patience > 0:
            step = min(SLICE, patience)
            there = self._library.soc_run(self._system, ctypes.c_uint64(count),
                                          ctypes.c_uint64(step))
            patience -= step
        data = ctypes.create_string_buffer(min(there, count) or 1)
        self._library.soc_take(self._system, data, ctypes.c_uint64(min(there, count)))
        return data.raw[:min(there, count)]
