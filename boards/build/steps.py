"""The steps of a build: each makes files from files, once for the same content.

A step runs in an empty folder that holds its inputs and nothing else, so what it does not declare
it cannot read. It is kept under a digest of its work, the versions of what does it and the content
of its inputs: a build that was stopped goes on where it was, and a change redoes what depends on
it. Commands name files relative to that folder: tools in WebAssembly see no other path.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from ...base.cached_folder import cached_folder, folder_for
from ...base.checked_values import PlainData
from ...base.errors import MicrotronError
from ...base.processes import run_tool
from ...base.progress import print_note
from ...base.source_digest import external_packages, source_digest
from .debian_root import PART
from .tool_progress import follow_log
from .tools import Need, find_tool

SPENT = "spent.json"            # beside what a step made: the time that it took
CALL = """
import importlib, json, sys
sys.path[:], function, arguments = json.load(sys.stdin)
module, _, name = function.partition(":")
from microtron.base.errors import MicrotronError
try:
    getattr(importlib.import_module(module), name)(**arguments)
except MicrotronError as error:
    sys.exit(f"error: {error}")
"""


@dataclass(frozen=True)
class Command:
    """Run a tool; where it fails by a fault of its own that we know, once more, another way."""

    need: Need
    arguments: tuple[str, ...]
    known_fault: str = ""                   # what it says then
    instead: tuple[str, ...] = ()           # other arguments

    def identity(self) -> tuple[str, ...]:
        return (find_tool(self.need).version, *self.arguments, self.known_fault, *self.instead)

    def run(self, folder: Path, log: Path) -> tuple[int, str]:
        command = find_tool(self.need).command
        with follow_log(log, self.need.name):
            done = run_tool([*command, *self.arguments], folder=folder, log=log)
        if not done.returncode or not self.instead or self.known_fault not in done.stdout:
            return done.returncode, done.stdout
        print_note(f"{self.need.name} fails by a fault of its own; it is run again with "
                   f"{' '.join(self.instead)}")
        again = run_tool([*command, *self.instead], folder=folder, log=log)
        return again.returncode, done.stdout + again.stdout

    def __str__(self) -> str:
        text = " ".join((self.need.name, *self.arguments))
        return f"{text}, or if it fails {' '.join(self.instead)}" if self.instead else text


@dataclass(frozen=True)
class Call:
    """Call a Python function in a process of its own, which gives memory back and can be stopped.

    It finds the inputs in the present folder and writes the outputs there. Its sources, and the
    packages of others that it uses, follow from what its module imports.
    """

    function: str                           # microtron.boards.soc.generate:write
    arguments: PlainData            # as JSON has them
    packages: tuple[str, ...] = ()          # that it uses without importing them

    def identity(self) -> tuple[str, ...]:
        module = self.function.partition(":")[0]
        return (self.function, json.dumps(dict(self.arguments), sort_keys=True),
                *module_identity(module), *map(_version, self.packages))

    def run(self, folder: Path, log: Path) -> tuple[int, str]:
        text = json.dumps((sys.path, self.function, dict(self.arguments)))
        # Isolated until it has our path: Python itself must not start with files of the user's.
        done = run_tool([sys.executable, "-I", "-c", CALL], folder=folder, text=text, log=log)
        return done.returncode, done.stdout

    def __str__(self) -> str:
        return self.function


@dataclass(frozen=True)
class Write:
    """Write texts that are known in advance, such as constraints."""

    texts: Mapping[str, str]

    def identity(self) -> tuple[str, ...]:
        return (json.dumps(dict(self.texts), sort_keys=True),)

    def run(self, folder: Path, log: Path) -> tuple[int, str]:
        for name, text in self.texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        log.write_text("")
        return 0, ""

    def __str__(self) -> str:
        return f"write {', '.join(self.texts)}"


@dataclass(frozen=True, kw_only=True)
class Step:
    name: str                               # one word: its log is NAME.log
    doing: str                              # for people, while it runs: "synthesizing: minutes"
    work: Command | Call | Write
    inputs: tuple[str, ...] = ()            # files that earlier steps made
    outputs: tuple[str, ...]

    def cached_folder(self, folder: Path) -> Path:
        """Where the outputs of this step are kept, once it has been run with inputs like these."""
        return folder_for(PART, f"step-{self.name}", self._cache_key(folder))

    def run(self, folder: Path, number: int, of: int) -> dict[str, float]:
        """Make the outputs in a folder that holds the inputs; gives the time that it took once."""
        made = cached_folder(PART, f"step-{self.name}", self._cache_key(folder),
                             lambda work: self._make(work, folder),
                             work=f"step {number} of {of}: {self.doing}")
        for name in (*self.outputs, self.log):
            shutil.copyfile(made / name, folder / f".{name}.new")
            (folder / f".{name}.new").rename(folder / name)
        spent: dict[str, float] = json.loads((made / SPENT).read_text())
        return spent

    @property
    def log(self) -> str:
        return f"{self.name}.log"

    def _cache_key(self, folder: Path) -> tuple[str, ...]:
        contents = (hashlib.sha256((folder / name).read_bytes()).hexdigest()
                    for name in self.inputs)
        return (type(self.work).__name__, *self.work.identity(), *self.inputs, *contents,
                *self.outputs)

    def _make(self, work: Path, folder: Path) -> None:
        for name in self.inputs:
            shutil.copyfile(folder / name, work / name)
        wall, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        log = folder / self.log             # there, it can be read while the step runs
        code, said = self.work.run(work, log)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code:
            raise MicrotronError(f"{self.name} failed: {_reason(said)} (all it said is in {log})")
        for name in self.outputs:
            if not (work / name).is_file():
                raise MicrotronError(f"{self.name} has not written {name} (all it said is in "
                                     f"{log})")
        for path in work.iterdir():
            if path.name not in self.outputs:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (work / self.log).write_text(said, encoding="utf-8")
        spent = {"seconds": round(time.monotonic() - wall, 1), "processor_seconds": round(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)}
        if after.ru_maxrss > before.ru_maxrss:      # of the largest child so far
            spent["memory_mib"] = round(after.ru_maxrss / 1024)
        (work / SPENT).write_text(json.dumps(spent))


def _reason(said: str) -> str:
    """The line of what a tool said that is most likely to say why it failed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it does not say why"])[-1][:300]


def module_identity(module: str) -> tuple[str, ...]:
    """What decides the outcome of calling into a module: our sources, and packages of others."""
    owners = _distributions()
    packages = {owner for name in external_packages(module) for owner in owners.get(name, [name])}
    return (source_digest(module), *map(_version, sorted(packages)))


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    """The installed packages that bring each module."""
    return packages_distributions()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"          # reported by whoever needs it
