"""The whole system with the accelerator on a clock of its own, at ratios of all kinds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError
from microtron.boards.facts.catalogue import find_board
from microtron.boards.firmware.image import build_image
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.isa.instructions import Engines, Load
from microtron.runtime.monitor.client import Monitor
from microtron.runtime.monitor.network import BoardNetwork

from ...runtime.small_model import image as pixels
from ...runtime.small_model import small_graph
from .test_simulate_soc import LEAST, PATIENCE, TIMEOUT, Running, changed, placed, symbols_of

BOARD = find_board("ulx3s")


@pytest.mark.soak
@pytest.mark.parametrize("hz", [31_000_000, 49_999_991, 50_000_000, 80_000_000, 137_000_000])
def test_a_network_runs_and_a_hung_accelerator_is_reset_at_any_ratio_of_clocks(hz, tmp_path):
    board = replace(BOARD, clock=replace(BOARD.clock, accelerator_hz=hz))
    model = microtron.compile(small_graph(), LEAST)
    image = build_image(model, board)
    line = SimulatedBoard(board, LEAST)
    monitor = Monitor(line)
    network = BoardNetwork(monitor, image.content)
    running = Running(line, monitor, network, symbols_of(image, tmp_path))
    right = model.run({"image": pixels(0)}, device="functional")

    def check():
        found, _ = running.run(0)
        for name in model.outputs:
            np.testing.assert_array_equal(found[name], right[name])

    check()
    instructions = monitor.read32(placed(running, 9))
    with changed(running, instructions, Load(wait=Engines.STORE).encode()), pytest.raises(
            ExecutionError, match="did not end in time, and was reset"):
        network.run({"image": pixels(0)}, timeout=TIMEOUT, patience=PATIENCE)
    check()
