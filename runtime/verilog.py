"""The accelerator's Verilog, written by Amaranth in a process of its own.

So it can be stopped with all that Amaranth starts, its memory is given back, and nothing else
needs an HDL.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from ..isa.atomic import write_atomically
from ..isa.config import Config
from ..isa.errors import MicrotronError
from .processes import run_tool
from .progress import announced

SCRIPT = """
import json, sys
from microtron.hw.top import verilog
from microtron.isa.config import Config
text = verilog(Config(**json.load(sys.stdin)))
sys.stdout.buffer.write(text.encode())
"""


def write_verilog(config: Config, log: Path) -> str:
    """Verilog of the accelerator with this configuration. If Amaranth fails, all it says is kept
    in `log`."""
    if find_spec("amaranth") is None:
        raise MicrotronError("Amaranth is needed to generate the accelerator, but is not "
                             "installed: pip install 'microtron[hw]'")
    places = os.pathsep.join(filter(None, sys.path))
    with announced("writing the accelerator as Verilog"):
        done = run_tool([sys.executable, "-c", SCRIPT], text=json.dumps(config.to_dict()),
                        environment={**os.environ, "PYTHONPATH": places}, separate=True)
    if done.returncode:
        write_atomically(log, done.stderr.encode())
        *_, reason = ["it does not say why", *filter(None, map(str.strip,
                                                               done.stderr.splitlines()))]
        raise MicrotronError(f"Amaranth failed: {reason} (all it said is in {log})")
    return done.stdout
