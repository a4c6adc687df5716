"""Random one-token faults in the compiler, the verifier and the simulators: do the tests notice?

    python tools/mutations.py --count 40 --seed 3 compiler/operators

A fault is put into a copy of the checkout, and the tests of its file run there, the nearest first.
A fault that changes nothing anybody could see is no fault: list it in ALIKE with the reason. The
exit code is 1 if one survives that is not listed.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("compiler", "isa", "sim")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache",
                                  ".hypothesis")
OPERATORS = {"+": "-", "-": "+", "*": "+", "//": "*", "%": "//", "<": "<=", "<=": "<", ">": ">=",
             ">=": ">", "==": "!=", "!=": "==", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
WORDS = {"and": "or", "or": "and", "True": "False", "False": "True", "min": "max", "max": "min",
         "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum", "not": ""}
SECONDS = 900               # that tests may take: a fault that makes them hang has been noticed

# File, the line without its indentation, and what it became: why nobody can see the difference.
ALIKE: dict[tuple[str, str], str] = {}


@dataclass(frozen=True)
class Fault:
    """One token of a file replaced by another."""

    file: str
    row: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.row}: {self.old!r} → {self.new!r}"

    def line(self, text: str) -> str:
        """The line with the fault, without its indentation."""
        line = text.splitlines()[self.row - 1]
        return (line[:self.column] + self.new + line[self.column + len(self.old):]).strip()

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.row - 1]
        lines[self.row - 1] = (line[:self.column] + self.new
                               + line[self.column + len(self.old):])
        return "".join(lines)


def faults_in(file: str, text: str) -> Iterator[Fault]:
    """Every fault that can be put into a file; a few of them may be no Python. Imports and
    signatures are left alone, from their first line to their last: linters notice those."""
    before, first = "", ""              # the token before, and the first one of the statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            first = ""
            continue
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        first = first or token.string
        if first in ("import", "from", "@", "def", "class", "raise"):
            before = token.string
            continue
        new = None
        if token.type == tokenize.OP and before not in ("(", ",", "=", "[", ":", ""):
            new = OPERATORS.get(token.string)       # not a sign, nor a star before arguments
        elif token.type == tokenize.NAME:
            new = WORDS.get(token.string)
        elif token.type == tokenize.NUMBER and token.string.isdecimal():
            new = str(int(token.string) + 1)
        if new is not None:
            yield Fault(file, token.start[0], token.start[1], token.string, new)
        before = token.string


def _parses(fault: Fault) -> bool:
    try:
        compile(fault.apply((ROOT / fault.file).read_text(encoding="utf-8")), "fault", "exec")
    except SyntaxError:
        return False
    return True


def select_faults(places: list[str], count: int, seed: int) -> list[Fault]:
    """Some faults, spread over all files of some folders."""
    generator = random.Random(seed)
    by_file = []
    for place in places:
        paths = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        for path in paths:
            found = list(faults_in(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
            if found:
                by_file.append(found)
    if not by_file:
        raise SystemExit(f"there is nothing to change in {', '.join(places)}")
    picks = (generator.choice(generator.choice(by_file)) for _ in itertools.count())
    return list(itertools.islice(filter(_parses, picks), count))


def tests_of(file: str) -> list[str]:
    """The tests of a file, those of its folder, and those of its part, as far as they exist."""
    path = Path(file)
    near = [Path("tests") / path.parent / f"test_{path.stem}.py", Path("tests") / path.parent]
    return [str(each) for each in (*near, Path("tests") / path.parts[0])
            if (ROOT / each).exists()]


def is_noticed(fault: Fault) -> bool:
    """Whether some test fails with the fault in place."""
    with tempfile.TemporaryDirectory(prefix="mutation") as folder:
        copy = Path(folder) / "microtron"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        path = copy / fault.file
        path.write_text(fault.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
        for tests in tests_of(fault.file):
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests],
                    cwd=copy, capture_output=True, check=False, timeout=SECONDS,
                    env={**os.environ, "PYTHONPATH": folder})
            except subprocess.TimeoutExpired:
                return True
            if done.returncode:
                return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("places", nargs="*", default=list(PLACES), help="folders or files")
    parser.add_argument("--count", type=int, default=20, help="faults to try (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    options = parser.parse_args()
    survivors = 0
    for fault in select_faults(options.places, options.count, options.seed):
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        reason = ALIKE.get((fault.file, fault.line(text)))
        if reason is not None:
            print(f"alike      {fault}: {reason}", flush=True)
        elif is_noticed(fault):
            print(f"noticed    {fault}", flush=True)
        else:
            survivors += 1
            print(f"SURVIVED   {fault}: {fault.line(text)}", flush=True)
    print(f"{survivors} of {options.count} faults survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
