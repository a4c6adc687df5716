"""A serial line of this computer, as Linux has it: bytes both ways, and how long nothing came."""

from __future__ import annotations

import os
import select
import termios
import time
import tty

from .link import LinkError

SPEEDS = {int(name[1:]): getattr(termios, name) for name in dir(termios)
          if name.startswith("B") and name[1:].isdigit() and name != "B0"}
QUIET_SECONDS = 0.2             # then nothing is on its way; bridges give up a command after 0.1


class SerialLine:
    """An open line.

    speed       bits a second
    seconds     after which a line that takes nothing, or never falls silent, is given up
    """

    def __init__(self, address: str, *, speed: int, seconds: float, quiet: float = QUIET_SECONDS):
        if speed not in SPEEDS:
            raise LinkError(f"{address}: speed is {speed}, but must be one of "
                            f"{', '.join(map(str, sorted(SPEEDS)))}")
        self.address, self.seconds, self.quiet = address, seconds, quiet
        try:
            self._file = os.open(address, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise LinkError(f"{address}: cannot be opened: {error.strerror}; is the board "
                            "connected and switched on?") from None
        except ValueError as error:             # a zero byte in its name
            raise LinkError(f"{address}: cannot be opened: {error}") from None
        try:
            tty.setraw(self._file)
            settings = termios.tcgetattr(self._file)
            settings[4] = settings[5] = SPEEDS[speed]
            termios.tcsetattr(self._file, termios.TCSANOW, settings)
            termios.tcflush(self._file, termios.TCIOFLUSH)
        except termios.error as error:
            os.close(self._file)
            raise LinkError(f"{address}: not a serial line: {error.args[-1]}") from None

    def send(self, data: bytes) -> None:
        while data:
            _, ready, _ = select.select([], [self._file], [], self.seconds)
            if not ready:
                raise LinkError(f"{self.address}: the line takes nothing for {self.seconds:g} s")
            try:
                data = data[os.write(self._file, data):]
            except OSError as error:
                raise self._lost_error(error.strerror) from None

    def receive(self, size: int, seconds: float) -> bytes:
        """So many bytes, or those that came before nothing did for so long."""
        data = b""
        while len(data) < size:
            came = self._some(size - len(data), seconds)
            if not came:
                break
            data += came
        return data

    def forget(self) -> None:
        """What has come, and nobody asked for."""
        try:
            termios.tcflush(self._file, termios.TCIFLUSH)
        except termios.error as error:
            raise self._lost_error(error.args[-1]) from None

    def settle(self) -> None:
        """Forget all that comes until nothing does."""
        end = time.monotonic() + self.seconds + self.quiet
        while self._some(4096, self.quiet):
            if time.monotonic() > end:
                raise LinkError(f"{self.address}: the board speaks without being asked, for "
                                f"{self.seconds:g} s; is another program or bitstream running?")

    def close(self) -> None:
        """Twice is as good as once: the number of the file may be another's by then."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _some(self, most: int, seconds: float) -> bytes:
        """What has come, or comes first; nothing if nothing does for so long."""
        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return b""
        try:
            came = os.read(self._file, most)
        except OSError as error:
            raise self._lost_error(error.strerror) from None
        if not came:
            raise self._lost_error("the line was closed")
        return came

    def _lost_error(self, reason: object) -> LinkError:
        return LinkError(f"{self.address}: the link is gone: {reason}")
