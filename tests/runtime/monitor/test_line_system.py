"""Firmware from the command line to a whole system in simulation, behind a pseudo terminal."""

import os
import select
import threading
import tty
from contextlib import contextmanager

import numpy as np
import pytest

import microtron
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.firmware.image import build_image
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.runtime.board.places import FILES

from ...boards.soc.test_simulate_soc import LEAST
from ...command import bad, good
from ..small_model import image, small_graph

BOARD = board_of("ulx3s")
STEP = 20_000                   # cycles, after which the terminal is looked at again

pytestmark = pytest.mark.soak


@contextmanager
def on_a_terminal(board):
    """The address of a terminal whose other end is the simulation's serial line."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    stopped = threading.Event()

    def serve():
        while not stopped.is_set():
            ready, _, _ = select.select([ours], [], [], 0)
            if ready:
                board.write(os.read(ours, 4096))
            os.write(ours, board.read(256, STEP))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield os.ttyname(theirs)
    finally:
        stopped.set()
        thread.join()
        os.close(ours)
        os.close(theirs)


def test_firmware_runs_behind_a_serial_line_and_a_bad_image_leaves_the_monitor_alive(tmp_path):
    model = microtron.compile(small_graph(), LEAST)
    content = build_image(model, BOARD).content
    (tmp_path / "small.bin").write_bytes(content)
    damaged = bytearray(content)
    damaged[20:24] = (0x7000_0000).to_bytes(4, "little")        # where it begins to run
    (tmp_path / "trap.bin").write_bytes(damaged)
    # Patience is in cycles of a clock that is a hundred times too fast for a simulation.
    slow = (FILES / "ulx3s.toml").read_text().replace("system_hz = 50_000_000",
                                                      "system_hz = 1_000_000")
    assert "system_hz = 1_000_000" in slow
    (tmp_path / "slow.toml").write_text(slow)
    with on_a_terminal(SimulatedBoard(BOARD, LEAST)) as address:
        device = f"board:slow.toml@{address}"
        for seed in range(2):
            np.save(tmp_path / "x.npy", image(seed))
            good("run", "small.bin", "--device", device, "-i", "x.npy", "-o", "real=y.npy",
                 "--limit", 20_000, cwd=tmp_path)
            right = model.run({"image": image(seed)}, device="functional")
            np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), right["real"])
            if seed == 0:
                assert "the processor met trap 2 at 0x70000000" in bad(
                    "run", "trap.bin", "--device", device, "-i", "x.npy", cwd=tmp_path)
