"""The accelerator's Verilog, written by Amaranth in a process of its own.

So it can be stopped with all that Amaranth starts, its memory is given back, and nothing else
needs an HDL.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from ...base.atomic_files import write_atomically
from ...base.errors import MicrotronError
from ...base.processes import run_tool
from ...base.progress import announce
from ...isa.config import Config

# Nothing becomes garbage until the end: looking for it takes a third of the time.
SCRIPT = """
import gc, json, sys
gc.disable()
sys.path[:], fields, name = json.load(sys.stdin)
from microtron.hw.targets import find_target
from microtron.hw.top import verilog
from microtron.isa.config import Config
sys.stdout.buffer.write(verilog(Config(**fields), name and find_target(name)).encode())
"""


def write_verilog(config: Config, log: Path, target: str | None = None) -> str:
    """Verilog of the accelerator with this configuration, with multipliers as a target, such as
    `xc7`, has them. If Amaranth fails, all it says is kept in `log`."""
    if find_spec("amaranth") is None:
        raise MicrotronError("Amaranth is needed to generate the accelerator, but is not "
                             "installed: pip install 'microtron[hw]'")
    given = json.dumps((sys.path, config.to_dict(), target))
    with announce("writing the accelerator as Verilog"):
        # Isolated until it has our path: Python itself must not start with files of the user's.
        done = run_tool([sys.executable, "-I", "-c", SCRIPT], text=given, separate=True)
    if done.returncode:
        write_atomically(log, done.stderr.encode())
        *_, reason = ["it does not say why", *filter(None, map(str.strip,
                                                               done.stderr.splitlines()))]
        raise MicrotronError(f"Amaranth failed: {reason} (all it said is in {log})")
    return done.stdout
