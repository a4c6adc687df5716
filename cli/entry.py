"""How a command ends: an exit code and, if something went wrong, one line on standard error."""

from __future__ import annotations

import codecs
import gc
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer

from ..base.checked_values import printable
from ..base.errors import MicrotronError
from ..base.processes import Signalled
from ..base.progress import print_note
from ..compiler.errors import PassWarning
from ..compiler.garbage import collect_rarely
from ..runtime.stopping import stopping_in_time

BAD_INPUT = 2
INTERRUPTED = 130           # what shells say of a process that was ended by Ctrl-C,
READER_GONE = 141           # or because nobody reads its output any more
LONGEST = 2000              # characters of a complaint; input is quoted in it, and may be anything
TAIL = 300                  # of these, how many are its end, which says what would be right

# How we write characters of ours that a terminal's encoding lacks.
SPELLED = {"×": "x", "…": "...", "→": "->", "▶": ">", "─": "-", "│": "|", "−": "-", "–": "-",
           "·": ".", "≤": "<=", "≥": ">=", "µ": "u", "²": "2", "³": "3"}


def run_command(parser: Callable[[], Any], arguments: list[str]) -> int:
    """Run the command that the arguments name. Returns the exit code."""
    _prepare_streams()
    with collect_rarely():
        code = _run(parser, arguments)
    gc.freeze()                     # the process ends: nobody needs a last search for garbage
    return code


def _run(parser: Callable[[], Any], arguments: list[str]) -> int:
    try:
        with stopping_in_time(), warnings.catch_warnings():
            warnings.simplefilter("always", PassWarning)
            warnings.showwarning = _show_warning
            command = parser()
            with command.make_context("microtron", list(arguments)) as context:
                command.invoke(context)
            sys.stdout.flush()
        return 0
    except typer.Exit as stop:
        return _flush(stop.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except Signalled as stop:
        return _complain("interrupted", int(stop.code or 0))
    except SystemExit:                          # so rich's tables end if nobody reads them
        return READER_GONE
    except MicrotronError as error:
        return _complain(str(error))
    except MemoryError:
        return _complain("this needs more memory than the machine gives")
    except BrokenPipeError:
        _give_up_output()
        return READER_GONE
    except OSError as error:
        return _complain(_reason(error))
    except Exception as error:
        if not hasattr(error, "format_message"):    # the parser's own complaints have it
            raise
        return _complain(error.format_message())


def one_line(text: str) -> str:
    """A complaint fit for a terminal: without line ends, control characters and long middles."""
    words = " ".join(text.split())
    if len(words) > LONGEST:
        words = f"{words[:LONGEST - TAIL]} … {words[-TAIL:]}"
    return printable(words)


def _complain(message: str, code: int = BAD_INPUT) -> int:
    with suppress(OSError):             # nobody can be told
        print(f"microtron: {one_line(message)}", file=sys.stderr, flush=True)
    return code


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print_note(one_line(str(message)))


def _reason(error: OSError) -> str:
    """What the system refused. Whoever writes files of the user names them; standard output names
    itself."""
    _give_up_output()
    return f"{error.filename or 'a file of the cache'}: {error.strerror or error}"


def _flush(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        return READER_GONE
    except OSError as error:
        return _complain(_reason(error))
    return code


def _give_up_output() -> None:
    """Send what waits to be written nowhere: Python tries once more when it ends."""
    with open(os.devnull, "wb") as nowhere, suppress(OSError):
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


class StandardOutput(io.FileIO):
    """Says in errors what could not be written."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = "standard output: cannot be written"
            raise


def _prepare_streams() -> None:
    """Let both streams take any character, spelled out where their encoding lacks it."""
    codecs.register_error("microtron.spelled", _explain)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:              # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))   # noqa: SIM115 (for the process's life)
        getattr(sys, name).reconfigure(errors="microtron.spelled")
    real = sys.__stdout__
    if real is not None and sys.stdout is real:
        real.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(StandardOutput(real.fileno(), "wb", closefd=False)),
            encoding=real.encoding, errors="microtron.spelled",
            line_buffering=real.line_buffering)


def _explain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start:error.end]
    return "".join(SPELLED.get(each) or ascii(each)[1:-1] for each in text), error.end
