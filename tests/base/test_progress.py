"""What takes long is said on standard error, and nothing of it stays on a terminal."""

import io
import re
import sys
from pathlib import Path

import pytest

from microtron.base import progress
from microtron.base.progress import ERASE, announce, report_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def test_elsewhere_it_is_one_plain_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with announce("counting sheep"):
        assert sys.stderr.getvalue() == "microtron: counting sheep\n"
    assert sys.stderr.getvalue() == "microtron: counting sheep\n"


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ValueError])
def test_on_a_terminal_it_is_a_live_line_that_goes_away(monkeypatch, error):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "REFRESH", 0.001)
    try:
        with announce("counting sheep"):
            while sys.stderr.getvalue().count("counting sheep (0 s)") < 3:
                pass
            if error:
                raise error
    except (KeyboardInterrupt, ValueError):
        assert error
    assert "\n" not in sys.stderr.getvalue()
    assert sys.stderr.getvalue().endswith(ERASE)


@pytest.mark.parametrize("stream", [None, Full()])
def test_whoever_cannot_be_told_is_not_told(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with announce("counting sheep"):
        pass


def test_what_is_quick_is_not_said(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with report_progress("counting sheep") as say:
        say("counting goats")
    assert sys.stderr.getvalue() == ""


def test_what_takes_long_is_said_on_a_terminal_with_what_comes_next(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "REFRESH", 0.001)
    monkeypatch.setattr(progress, "PATIENCE", 0.001)
    with report_progress("counting sheep") as say:
        while "counting sheep (0 s)" not in sys.stderr.getvalue():
            pass
        say("counting goats")
        while "counting goats (0 s)" not in sys.stderr.getvalue():
            pass
    assert sys.stderr.getvalue().endswith(ERASE)


def test_elsewhere_what_takes_long_is_said_in_lines(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    monkeypatch.setattr(progress, "PATIENCE", 0.001)
    with report_progress("counting sheep") as say:
        while sys.stderr.getvalue().count("microtron: counting sheep (0 s)\n") < 2:
            pass
        say("counting \x1b[31mgoats\r\n")
        while "microtron: counting \\x1b[31mgoats\\r\\n (0 s)\n" not in sys.stderr.getvalue():
            pass
    assert not {"\r", "\x1b"} & set(sys.stderr.getvalue())


def test_what_is_quick_is_not_said_elsewhere_either(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with report_progress("counting sheep") as say:
        say("counting goats")
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_of_two_that_watch_only_the_outer_one_tells(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    for name in ("REFRESH", "PATIENCE", "INTERVAL"):
        monkeypatch.setattr(progress, name, 0.001)

    def wait_for(text):
        before = sys.stderr.getvalue().count(text)
        while sys.stderr.getvalue().count(text) < before + 2:
            pass

    with report_progress("the whole"):
        wait_for("the whole (0 s)")
        with report_progress("a part") as say:
            wait_for("a part (0 s)")
            say("another")
            wait_for("another (0 s)")
            with announce("the first use"):
                wait_for("the first use (0 s)")
            wait_for("another (0 s)")
        wait_for("the whole (0 s)")
    assert not progress._reported


@pytest.mark.parametrize("stream", [None, Full()])
def test_whoever_cannot_be_told_what_takes_long_is_not_told(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with report_progress("counting sheep") as say:
        say("counting goats")


def test_nothing_else_goes_back_to_the_beginning_of_a_line():
    """So the log of a continuous integration has lines."""
    root = Path(progress.__file__).parents[1]
    folders = ("base", "cli", "explore", "quantization", "boards", "runtime", "report", "testing")
    writers = {path.relative_to(root).as_posix() for folder in folders
               for path in (root / folder).rglob("*.py")
               if re.search(r"\\r(?!\\n)(?!\?\\n)", path.read_text(encoding="utf-8"))}
    assert writers == {"base/progress.py"}
