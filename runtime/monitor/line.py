"""A board's serial line, as the monitor's client wants it: patience is in cycles of its clock."""

from __future__ import annotations

from types import TracebackType

from ..board.link import LinkError
from ..board.places import LINKED, ON_LINUX, SERIAL, SPEED, Place, why_no_driver
from ..board.serial import QUIET_SECONDS, SerialLine

SECONDS = 2.0                   # after which a line that takes nothing is given up
BITS = 10                       # that a byte takes on the line


class BoardLine:
    """The line to a board's monitor, closed at the end of a `with`.

    address     /dev/ttyUSB0
    clock_hz    of the board: patience is measured by this computer's clock
    speed       bits a second; the monitor has 115200
    """

    def __init__(self, address: str, *, clock_hz: int, speed: int = SPEED,
                 quiet: float = QUIET_SECONDS):
        self.address = address
        self._clock_hz, self._speed = clock_hz, speed
        self._line = SerialLine(address, speed=speed, seconds=SECONDS, quiet=quiet)
        self._sending = 0.0             # seconds that the line needs for what was written
        try:
            self._line.settle()         # a greeting, or what an earlier program had asked for
        except BaseException:
            self.close()
            raise

    def write(self, data: bytes) -> None:
        self._sending += len(data) * BITS / self._speed
        self._line.send(data)

    def read(self, count: int, patience: int) -> bytes:
        """So many bytes, or fewer if none comes for so many cycles."""
        seconds, self._sending = patience / self._clock_hz + self._sending, 0.0
        return self._line.receive(count, seconds)

    def close(self) -> None:
        self._line.close()

    def __enter__(self) -> BoardLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def serial_of(place: Place) -> tuple[str, int]:
    """The serial line of a board's monitor, and its speed, if it can have one."""
    if place.flow in ON_LINUX:
        raise LinkError(f"{place.board}: its processor is hard, and firmware is for soft ones; run "
                        "the compiled network on its own Linux")
    if place.flow not in LINKED:
        raise LinkError(f"{place.board}: {why_no_driver(place.flow)}")
    if not place.has_processor:
        raise LinkError(f"{place.board}: its system has no processor that could run firmware; run "
                        "the compiled network on this device")
    line = SERIAL.fullmatch(place.address)
    if line is None:
        raise LinkError(f"{place.address}: firmware goes over the monitor's serial line, so the "
                        f"address must be one as /dev/ttyUSB0")
    return line[1], int(line[2] or SPEED)
