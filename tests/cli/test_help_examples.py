"""Every command's help has an example, and what it says works."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from rich.table import Table

import microtron
from microtron.cli.main import parser

from ..command import good

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
# What takes minutes, in an order in which each finds what it needs: `make soak` runs these. Tests
# of their own run the commands on less.
SLOW = ("compare", "verilog", "firmware", "dataset", "records", "fit", "tune", "explore")
HOURS = ["microtron build --board ulx3s"]


def examples():
    """Command → its examples, as their help shows them."""
    found = {}

    def visit(name, command):
        below = getattr(command, "commands", None)
        if below is None:
            text = " ".join((command.help or "").split())
            found[name] = re.findall(r"Example: (microtron .*?)(?= Example:|$)", text)
        for each, child in (below or {}).items():
            visit(f"{name} {each}".strip(), child)
    visit("", parser(with_operators=True))
    return found


@pytest.fixture(autouse=True)
def _with_the_cache(monkeypatch):
    """The same network is compiled again and again, and its compiler has tests of its own."""
    monkeypatch.delenv("MICROTRON_ANEW", raising=False)


def options_of(name):
    return {option for each in parser(with_operators=False).commands[name].params
            for option in each.opts}


EXAMPLES = examples()
SUMMARY = {"gemm"}          # of an argument with which `isa` explains one, and lists nothing
# Commands whose output is text, a line or a file of another kind. All others have a table.
NO_TABLE = {"asm", "disasm", "verify", "compile", "report", "compare", "firmware", "dataset",
            "records", "completion", "kernel", "verilog"}
RUN = [each for name, lines in EXAMPLES.items() for each in lines
       if name not in SLOW and each not in HOURS and not name.startswith("kernel")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_has_an_example_of_options_that_it_has(name):
    assert EXAMPLES[name], f"microtron {name} --help has no example"
    known = good(*name.split(), "--help")
    for line in EXAMPLES[name]:
        words = shlex.split(line)
        assert words[:1 + len(name.split())] == ["microtron", *name.split()]
        for word in words:
            if word.startswith("-"):
                assert re.search(rf"(^|[ ,/]){re.escape(word)}\b", known), (line, word)


def test_every_command_with_a_table_writes_it_to_a_file_by_the_same_option():
    commands = parser(with_operators=False).commands
    assert {name for name in commands if "--table" in options_of(name)} == {*commands} - NO_TABLE
    shown = {name for name in commands if "--csv" in options_of(name)}
    assert not shown


def copy_inputs(folder, *, is_float=False):
    shutil.copy(DIGITS / ("digits_float.onnx" if is_float else "digits.onnx"),
                folder / "model.onnx")
    shutil.copy(DIGITS / "digits_samples.npz", folder / "samples.npz")
    for name in ("matmul.asm", "vta_config.json"):
        shutil.copy(ROOT / "examples" / name, folder)


@pytest.mark.soak
def test_examples_that_take_minutes_run_as_they_are_written(tmp_path):
    copy_inputs(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    good("asm", "matmul.asm", "-o", "matmul.mt", cwd=tmp_path)
    good("compile", "model.onnx", "--config", "tiny", "-o", "model.mt", cwd=tmp_path)
    for name in SLOW:
        for line in EXAMPLES[name]:
            words = shlex.split(line)[1:]
            wanted = ["--table", f"{name}.csv"] if "--table" in options_of(name) else []
            good(*words, *wanted, cwd=tmp_path)
            for file in [*wanted[1:], *(word for before, word in pairwise(words)
                                        if before in ("-o", "--export"))]:
                assert (tmp_path / file).stat().st_size > 0, (line, file)


@pytest.mark.parametrize("line", RUN)
def test_the_example_of_a_command_runs_as_it_is_written(line, tmp_path):
    words = shlex.split(line)[1:]
    copy_inputs(tmp_path, is_float=words[0] == "quantize")
    with np.load(DIGITS / "digits_test.npz") as data:
        np.save(tmp_path / "image.npy", data["images"][0].astype(np.float32)[None, None])
    if "matmul.mt" in words and words[0] != "asm":
        good("asm", "matmul.asm", "-o", "matmul.mt", cwd=tmp_path)
        program = microtron.load_program(tmp_path / "matmul.mt")
        for tensor in program.tensors:
            np.save(tmp_path / f"{tensor.name}.npy", np.zeros(tensor.shape, tensor.dtype))
    has_table = "--table" in options_of(words[0]) and "--dry-run" not in words
    with mock.patch.object(Table, "__init__", autospec=True, side_effect=Table.__init__) as drawn:
        printed = good(*words, *(["--table", "table.csv"] if has_table and not SUMMARY & {*words}
                                 else []), cwd=tmp_path)
    assert has_table or not drawn.called, "what is a table on the screen can be written to a file"
    if (tmp_path / "table.csv").exists():
        with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows
        assert None not in {name for row in rows for name in row}      # no cell too many
    else:
        assert not has_table or SUMMARY & {*words}
    outputs = [Path(word.partition("=")[2] or word) for before, word in pairwise(words)
               if before == "-o"]
    assert printed or outputs
    for each in outputs:
        assert (tmp_path / each).stat().st_size > 0
