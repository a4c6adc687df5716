"""The command line in this process: as fast as a call, with an exit code and both streams."""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from microtron.cli.main import main

# What takes long on a slow machine: nobody knows when it comes.
FIRST_USE = re.compile(r"microtron: (?:compiling the .*, once: .*|.* \(\d+ s\))\n")


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    error: str


def command(*arguments, cwd=None, columns=120, encoding="utf-8"):
    """Run a command to its end."""
    out, error = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    with (contextlib.redirect_stdout(out), contextlib.redirect_stderr(error),
          contextlib.chdir(cwd or Path.cwd()),
          mock.patch.dict(os.environ, {"COLUMNS": str(columns)})):
        try:
            main([str(each) for each in arguments])
        except SystemExit as stop:
            code = stop.code or 0
    texts = []
    for stream in (out, error):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode(encoding))
    return Ended(code, texts[0], FIRST_USE.sub("", texts[1]))


def good(*arguments, **options):
    """What a command prints, if all goes well."""
    ended = command(*arguments, **options)
    assert ended.code == 0, ended.error
    assert "\x1b[" not in ended.out, "colours belong on terminals only"
    return ended.out


def bad(*arguments, **options):
    """The one line with which a command refuses its input."""
    ended = command(*arguments, **options)
    assert ended.code == 2, ended
    assert not ended.out
    assert ended.error.startswith("microtron: ")
    assert ended.error.count("\n") == 1
    assert ended.error.endswith("\n")
    return ended.error
