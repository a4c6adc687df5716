"""Programs made to exhaust the verifier get their answer within limits of time and memory.

They run in a process whose limits the system keeps: what would hang or grow is killed.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from .hostile_programs import PROGRAMS

PROCESSOR_SECONDS = 90          # all of them, and compiling if nothing is in the cache
BYTES = 4 << 30                 # of address space, of which libraries take a part

RACES = {
    "a race in a gemm of 10^12":
        "instruction 2 (gemm) reads inp[0..2037], which instruction 1 (load.inp) writes",
    "a race in a requantize of 2.8 * 10^14":
        "instruction 1 (store.acc) reads acc[1..1], which instruction 0 (alui.add) writes",
    "a race between 60 million rows":
        "instruction 1 (load.inp) reads memory[0x2dc6c00..0x2dc6c0f], which instruction 0 "
        "(store.out) writes",
}
REFUSALS = {
    "a load with too many rows":
        "instruction 0 (load.inp): sram reaches tile 4194431, but inp has 2048 (0 to 2047)",
    "too many long boxes": "more than 67108864 steps, which is the limit",
}


@pytest.fixture(scope="module")
def outcomes():
    """By name: what was found, and what the derivation of tokens complained about."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    script = Path(__file__).with_name("hostile_programs.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                          preexec_fn=limit, env=os.environ)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(PROGRAMS), f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return {name: (findings, complaint) for name, findings, complaint in lines}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verifier_answers_within_limits(outcomes, name):
    findings, complaint = outcomes[name]
    if name in REFUSALS:
        assert len(findings) == 1
        assert REFUSALS[name] in findings[0]
        assert complaint == findings[0]
    else:
        assert complaint == "", "tokens can be derived"
        assert len(findings) == (name in RACES), "a race is reported once"
        assert RACES.get(name, "") in "".join(findings)
