"""The long comparison is ended by a signal with one line, and leaves no process behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "soak.py"
HANGS = 300                 # seconds; what has not ended by then never does
# The tool, with one small accelerator and its progress elsewhere. Workers keep what is their own.
COMMAND = """
import runpy, signal, sys
from pathlib import Path
import microtron.testing.soak as soak

signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
soak.SHARES = {"tiny": 1}
_, place, tool = sys.argv
soak.progress_file = lambda: Path(place)
sys.argv = [tool, "--programs", "100000", "--processes", "2"]
runpy.run_path(tool, run_name="__main__")
"""


@pytest.mark.parametrize(("number", "code", "moment"), [
    (signal.SIGINT, 130, "compiling tiny"),         # processes are being started
    (signal.SIGTERM, 143, "20 programs equal"),
    pytest.param(signal.SIGINT, 130, "20 programs equal", marks=pytest.mark.soak),
    pytest.param(signal.SIGHUP, 129, "20 programs equal", marks=pytest.mark.soak)])
def test_a_signal_ends_it_and_its_processes_in_one_line(tmp_path, number, code, moment):
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path / "progress.json"), str(TOOL)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        assert any(line == f"{moment}\n" for line in process.stdout)
        if number == signal.SIGTERM:
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)          # as a terminal does: to all of them
        out, error = process.communicate(timeout=HANGS)     # workers have the pipes open, too
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    # The first of all to need the models says that they are being compiled.
    assert all(line.startswith("microtron: ") for line in error.splitlines()), error
    last = out.splitlines()[-1]
    assert last.startswith("interrupted; rtl and cycle are equal in ")
    assert process.returncode == code
