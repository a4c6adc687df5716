"""Headless Chromium, driven over a pipe in its DevTools protocol: pages are opened, asked, clicked
and photographed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..base.checked_values import PlainData
from ..base.errors import MicrotronError

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120.0            # seconds for any answer
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
         "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage",
         "--mute-audio", "--remote-debugging-pipe")


def find_chromium() -> str | None:
    """The browser's path, if there is one on this machine."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One page of a browser."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self.received = b""
        self.number = 0
        self.session: str | None = None
        self.errors: list[str] = []         # what the page logged as an error, or threw
        self.requests: list[str] = []       # what it asked the network for

    def call(self, method: str, **parameters: object) -> PlainData:
        """A command of the protocol, and its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writer, data):]
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise MicrotronError(f"chromium: {method}: {answer['error']['message']}")
                found: PlainData = answer["result"]
                return found
            self._note(answer)

    def _receive(self) -> PlainData:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.reader], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self.reader, 1 << 20) if ready else b""
            if not piece:
                raise MicrotronError("chromium: no answer" if not ready else "chromium: has ended")
            self.received += piece
        text, _, self.received = self.received.partition(b"\0")
        found: PlainData = json.loads(text)
        return found

    def _note(self, event: PlainData) -> None:
        details = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(details["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if details["type"] in ("error", "warning"):
                self.errors.append(json.dumps(details["args"]))
            case "Log.entryAdded" if details["entry"]["level"] in ("error", "warning"):
                self.errors.append(json.dumps(details["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(details["request"]["url"])

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show a file, and wait until it has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=path.absolute().as_uri())

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise, what it becomes."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            said = details.get("exception", {}).get("description") or details["text"]
            raise MicrotronError(f"chromium: {expression[:80]}: {said}")
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression holds."""
        until = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            if time.monotonic() > until:
                raise MicrotronError(f"chromium: {expression} never held; {self.errors[:1]}")
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      **(text if kind == "keyDown" else {}))

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        """An event of the mouse: mousePressed, mouseReleased, mouseMoved or mouseWheel."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float, times: int = 1) -> None:
        for number in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=number)

    def photograph(self, *, x: float = 0, y: float = 0, width: float = 1280,
                   height: float = 900) -> bytes:
        """A part of the page, also of what is below the screen, as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": x, "y": y, "width": width, "height": height, "scale": 1})
        return base64.b64decode(answer["data"])


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    program = find_chromium()
    if program is None:
        raise MicrotronError("there is no Chromium; apt-get install chromium")
    to_browser, from_browser = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="microtron-browser-",
                                     ignore_cleanup_errors=True) as folder:
        # The browser reads from descriptor 3 and writes to 4.
        silent = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        process = os.posix_spawn(
            program, [program, *FLAGS, f"--user-data-dir={folder}"], os.environ, setsid=True,
            file_actions=[silent, (os.POSIX_SPAWN_DUP2, 1, 2),
                          (os.POSIX_SPAWN_DUP2, to_browser[0], 63),     # out of each other's way
                          (os.POSIX_SPAWN_DUP2, from_browser[1], 4),
                          (os.POSIX_SPAWN_DUP2, 63, 3), (os.POSIX_SPAWN_CLOSE, 63)])
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            yield Browser(from_browser[0], to_browser[1])
        finally:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(to_browser[1])
            os.close(from_browser[0])
