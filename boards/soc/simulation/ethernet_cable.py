"""A simulated board on the network: frames of Ethernet to it and from it."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

from ....isa.config import Config
from ...facts.board import Board
from ...facts.ethernet import PHYS, Ethernet
from .simulated_board import SLICE, SimulatedBoard, build_model


class CabledBoard(SimulatedBoard):
    """A board with the bridge over Ethernet, wherever its file says that it answers, or at the
    usual place. Frames are whole: from the preamble to the checksum."""

    def __init__(self, board: Board, config: Config):
        super().__init__(board, config)
        self._library.soc_run_cable.restype = ctypes.c_uint64

    @staticmethod
    def _model(board: Board, config: Config) -> tuple[Path, dict[str, str]]:
        return build_model(replace(board, ethernet=board.ethernet or Ethernet(phy=PHYS[0])), config)

    def send_frame(self, frame: bytes) -> None:
        self._library.soc_send_frame(self._system, frame, ctypes.c_uint64(len(frame)))

    def receive_frame(self, patience: int) -> bytes:
        """The next frame from the board; nothing if none comes in so many cycles."""
        size = 0
        while not size and patience > 0:
            step = min(SLICE, patience)
            size = self._library.soc_run_cable(self._system, ctypes.c_uint64(step))
            patience -= step
        if not size:
            return b""
        data = ctypes.create_string_buffer(size)
        self._library.soc_take_frame(self._system, data)
        return data.raw
