"""A real network in the whole system: the digits, over the serial line, beside one for another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtron
from microtron.boards.catalogue import board as board_of
from microtron.boards.firmware.image import build_image
from microtron.boards.soc.fitting import Measured
from microtron.boards.soc.simulate import SimulatedBoard
from microtron.isa.errors import ExecutionError
from microtron.runtime.monitor.client import Monitor
from microtron.runtime.monitor.network import BoardNetwork

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
BOARD = board_of("ulx3s")
LIMITS = {"timeout": 20_000_000, "patience": 200_000_000}       # cycles


@pytest.mark.soak
def test_digits_are_what_the_functional_simulator_says_and_take_the_time_predicted():
    model = microtron.compile(DIGITS / "digits.onnx", "tiny")
    other = microtron.compile(DIGITS / "digits.onnx", "small")
    name, = model.inputs
    with np.load(DIGITS / "digits_test.npz") as data:
        images = data["images"][:3].astype(np.float32)
    monitor = Monitor(SimulatedBoard(BOARD, model.config))
    with pytest.raises(ExecutionError, match="config_block_in is 0x4, but the network needs 0x8"):
        BoardNetwork(monitor, build_image(other, BOARD).content).run(
            {name: images[0][None, None]}, **LIMITS)
    network = BoardNetwork(monitor, build_image(model, BOARD).content)
    for image in images:
        inputs = {name: image[None, None]}
        found, outcome = network.run(inputs, **LIMITS)
        right = model.run(inputs, device="functional")
        for output in model.outputs:
            np.testing.assert_array_equal(found[output], right[output])
        assert BOARD.memory.timing is not None
        measured = Measured(model.programs, outcome.accelerator_cycles)
        assert abs(measured.error(BOARD.memory.timing)) <= 0.02
