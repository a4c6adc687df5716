"""Real networks in the whole system, over the serial line: the digits, and keyword spotting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError
from microtron.boards.facts.board import Board
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.catalogue import load_boards
from microtron.boards.facts.processors import PROCESSORS, soft_processor
from microtron.boards.firmware.image import build_image
from microtron.boards.soc.file_names import PINS
from microtron.boards.soc.simulation.memory_timing_fit import Measured
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.models.model import Model
from microtron.runtime.monitor.client import Monitor
from microtron.runtime.monitor.network import BoardNetwork

from ...models import golden_path, model_path, needs_models

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
BOARD = board_of("ulx3s")
SYSTEMS = [*(replace(BOARD, cpu=processor) for processor in PROCESSORS),
           *(board for board in load_boards()
             if board.flow in PINS and board.memory.timing is not None
             and board.name != BOARD.name and soft_processor(board) is not None)]
# The ECPIX-5 with two clocks that have no relation to each other, and its memory as
# benchmarks/board_memory.py --board ecpix5 --config tiny --accelerator-mhz 75 finds it.
TWO_CLOCKS = board_of("ecpix5")
TWO_CLOCKS = replace(
    TWO_CLOCKS, clock=replace(TWO_CLOCKS.clock, accelerator_hz=75_000_000),
    memory=replace(TWO_CLOCKS.memory, timing=MemoryTiming(
        read_latency=33, write_latency=6, cycles_per_beat=2, turn=2, reads=16, writes=4,
        stalls=2)))
LIMITS = {"timeout": 20_000_000, "patience": 2_000_000_000}     # cycles


def check(network: BoardNetwork, model: Model, inputs: dict[str, np.ndarray],
          board: Board) -> None:
    """The outputs of the functional simulator, in the time that the exact one foretells."""
    found, outcome = network.run(inputs, **LIMITS)
    right = model.run(inputs, device="functional")
    for output in model.outputs:
        np.testing.assert_array_equal(found[output], right[output])
    assert board.memory.timing is not None
    measured = Measured(model.programs, outcome.accelerator_cycles)
    assert abs(measured.error(board.memory.timing)) <= 0.02


@pytest.mark.soak
@pytest.mark.parametrize("board", [*SYSTEMS, TWO_CLOCKS], ids=lambda board: (
    f"{board.name} {board.cpu}{' two clocks' if board.clock.is_crossed else ''}"))
def test_digits_are_what_the_functional_simulator_says_and_take_the_time_predicted(board):
    model = microtron.compile(DIGITS / "digits.onnx", "tiny")
    other = microtron.compile(DIGITS / "digits.onnx", "small")
    name, = model.inputs
    with np.load(DIGITS / "digits_test.npz") as data:
        images = data["images"][:3].astype(np.float32)
    monitor = Monitor(SimulatedBoard(board, model.config))
    with pytest.raises(ExecutionError, match="config_block_in is 0x4, but the network needs 0x8"):
        BoardNetwork(monitor, build_image(other, board).content).run(
            {name: images[0][None, None]}, **LIMITS)
    network = BoardNetwork(monitor, build_image(model, board).content)
    for image in images:
        check(network, model, {name: image[None, None]}, board)


@pytest.mark.soak
@needs_models
@pytest.mark.parametrize("board", [BOARD, TWO_CLOCKS], ids=lambda board: board.name)
def test_keywords_are_what_the_functional_simulator_says_and_take_the_time_predicted(board):
    model = microtron.compile(model_path("kws_ref_model.tflite"), "tiny")
    name, = model.inputs
    with np.load(golden_path("kws_ref_model.tflite")) as data:
        sound = data["in0_s0"]
    network = BoardNetwork(Monitor(SimulatedBoard(board, model.config)),
                           build_image(model, board).content)
    check(network, model, {name: sound}, board)
