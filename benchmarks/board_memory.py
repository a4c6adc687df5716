"""Measures a board's memory: networks run in the simulation of the whole system, and the exact
simulator's memory is fitted to the cycles that they took.

    python benchmarks/board_memory.py --board ulx3s --config tiny
    python benchmarks/board_memory.py --board ecpix5 --config tiny --accelerator-mhz 75 --runs 1

Prints `[memory.timing]` for the board's file. With --accelerator-mhz, the accelerator has a clock
of its own, and cycles are of that clock. A minute or two to compile the system, once, and some
minutes for keyword spotting, if `$MICROTRON_MODELS` has it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from networks import real_models

import microtron
from microtron.base.arrays import Array
from microtron.boards.facts.board import Board
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.clocks import check_clock
from microtron.boards.facts.processors import soft_processor
from microtron.boards.firmware.image import build_image
from microtron.boards.soc.simulation.memory_timing_fit import (
    Measured,
    fit_timing,
    format_settings,
)
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.boards.soc.simulation.simulated_link import SimulatedLink
from microtron.boards.soc.system_steps import is_small
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.config_files import load_config
from microtron.isa.instructions import Rounding
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.models.model import Model
from microtron.runtime.monitor.client import Monitor
from microtron.runtime.monitor.network import BoardNetwork

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits" / "digits.onnx"
KEYWORDS = "kws_ref_model.tflite"       # of MLPerf Tiny, if it is there
RUNS = 4                        # of each network: refreshes do not come at the same instruction
TIMEOUT, PATIENCE = 100_000_000, 1_000_000_000      # cycles
# Where the search may begin. Rows that must be opened are like bursts that wait for each other.
STARTS = tuple(
    MemoryTiming(read_latency=latency, write_latency=4, cycles_per_beat=cycles, turn=turn,
                 reads=reads, writes=4, stalls=stalls)
    for latency in (16, 24) for cycles in (1, 2, 3, 4) for turn in (0, 2) for reads in (2, 16)
    for stalls in (0, 60, 110))
# A controller that serves a burst after the other.
SINGLE_STARTS = tuple(
    MemoryTiming(read_latency=latency, write_latency=write, cycles_per_beat=cycles, reads=1,
                 writes=1, stalls=stalls)
    for latency in (6, 9) for write in (1, 4) for cycles in (2, 4) for stalls in (0, 20))


def dense() -> Graph:
    """One small layer, which mostly waits for memory."""
    rng = np.random.default_rng(0)
    builder = Builder("dense")
    builder.input("x", TensorType((1, 64), "int8", Quantization((0.5,))))
    weights = builder.constant("weights", rng.integers(-9, 9, (64, 32)).astype(np.int8),
                               Quantization((0.1,)))
    builder.add("y", MatMul(left="x", right=weights, scales=(0.05,), rounding=Rounding.TWICE),
                dtype="int8", quantization=Quantization((0.5,)))
    return builder.graph(("y",))


def measure(model: Model, board: Board, line: SimulatedBoard, runs: int) -> Measured:
    """The cycles of a network in the system, on average."""
    if soft_processor(board) is None:
        cycles = run_by_host(model, board, line, runs)
    else:
        network = BoardNetwork(Monitor(line), build_image(model, board).content)
        inputs: dict[str, Array] = {name: np.zeros(type_.shape, type_.dtype)
                                    for name, type_ in model.inputs.items()}
        cycles = [network.run(inputs, timeout=TIMEOUT, patience=PATIENCE)[1].accelerator_cycles
                  for _ in range(runs)]
    print(f"{model.name}: {', '.join(map(str, cycles))} cycles", flush=True)
    return Measured(model.programs, round(sum(cycles) / runs))


def run_by_host(model: Model, board: Board, line: SimulatedBoard, runs: int) -> list[int]:
    """The programs of a network alone: the time that they take does not depend on their inputs."""
    device = BoardDevice(model.config, place=f"board:{board.name}@/dev/simulated",
                         link=SimulatedLink(board, line))
    cycles = [0] * runs
    for program in model.programs:
        device.load(program)
        for number in range(runs):
            taken = device.run().cycles
            assert taken is not None            # this device counts them
            cycles[number] += taken
    return cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--board", default="ulx3s")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--accelerator-mhz", type=float, metavar="MHZ",
                        help="the accelerator's own clock (default: as the board's file says)")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N",
                        help=f"of each network (default: {RUNS})")
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error(f"--runs is {arguments.runs}, but must be 1 or more")
    board, config = board_of(arguments.board), load_config(arguments.config)
    if arguments.accelerator_mhz is not None:
        board = replace(board, clock=replace(
            board.clock, accelerator_hz=round(1e6 * arguments.accelerator_mhz)))
        check_clock(board, board.name)
    line = SimulatedBoard(board, config)
    files = [DIGITS, *(path for path in real_models() if path.name == KEYWORDS)]
    models = [microtron.compile(dense(), config),
              *(microtron.compile(path, config) for path in files)]
    runs = [measure(model, board, line, arguments.runs) for model in models]
    starts = SINGLE_STARTS if is_small(board) else STARTS
    timing = fit_timing(runs, *starts)
    for model, run in zip(models, runs, strict=True):
        print(f"{model.name}: {run.cycles} cycles, the simulator is {run.error(timing):+.2%} off")
    print(f"\n[memory.timing]\n{format_settings(timing)}")


if __name__ == "__main__":
    main()
