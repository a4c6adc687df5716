"""The host's driver before a simulated board without a processor: the bridge over its line."""

from __future__ import annotations

from ....runtime.board.link import LinkError
from ....runtime.board.places import LITEX_REGISTERS, memory_of_programs
from ....runtime.board.uart import BridgeLink
from ...facts.board import Board
from .simulated_board import SimulatedBoard

PATIENCE = 300_000              # cycles for an answer, after what was sent before
BYTE_CYCLES = 300               # that a byte takes at most


class SimulatedLink(BridgeLink):
    """A line whose other end is a simulation. Time passes while one waits for an answer."""

    def __init__(self, board: Board, line: SimulatedBoard):
        memory = memory_of_programs(board.memory.bytes, has_processor=False)
        super().__init__("simulation", LITEX_REGISTERS, memory)
        self.line = line
        self._sent = 0                      # bytes since the last answer

    def send(self, data: bytes) -> None:
        self._sent += len(data)
        self.line.write(data)

    def receive(self, size: int) -> bytes:
        data = self.line.read(size, PATIENCE + BYTE_CYCLES * (size + self._sent))
        self._sent = 0
        if len(data) != size:
            raise LinkError(f"{len(data)} of {size} bytes came")
        return data

    def forget(self) -> None:
        pass                    # nothing comes unasked

    def close(self) -> None:
        pass
