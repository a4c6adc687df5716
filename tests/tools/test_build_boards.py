"""The table of what was built is made from the results that are kept beside it."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.facts.catalogue import find_board as known
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync, SyncAction
from microtron.isa.program import Program, Segment
from microtron.isa.stream import encode

ROOT = Path(__file__).parents[2]


@pytest.fixture
def boards(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    yield importlib.import_module("build_boards")
    sys.modules.pop("build_boards")


RESULT = {"board": "mine", "config": "tiny", "mhz": 61.25, "target_mhz": 50.0,
          "used": {"lut": 12345, "register": 678, "dsp": 9, "bram": 10.5},
          "processor_seconds": 1234.5, "peak_gops": 1.6, "milliseconds": {"KWS": 12.345}}


def test_a_result_becomes_a_row(boards):
    *_, row = boards.table({"mine": RESULT}).splitlines()
    assert row == ("| mine | `tiny` | 12,345 | 678 | 9 | 10.5 | 61.2 (runs at 50) | 1,234 | 1.6 "
                   "| – | – | – | 12.35 | – |")
    *_, row = boards.table({"mine": {**RESULT, "seeds": 3, "median_mhz": 58.04}}).splitlines()
    assert "| 61.2 (runs at 50); median of 3 seeds 58.0 |" in row


def test_the_table_is_put_in_its_place(boards):
    page = f"before\n{boards.BEGIN}old\n{boards.END}\nafter\n"
    once = boards.with_table(page, {"mine": RESULT})
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    assert boards.with_table(once, {"mine": RESULT}) == once
    with pytest.raises(MicrotronError, match="no place for the table"):
        boards.with_table("a page", {})


def test_the_page_shows_the_results_that_are_kept(boards):
    page = boards.PAGE.read_text()
    results = json.loads(boards.RESULTS.read_text()) if boards.RESULTS.exists() else {}
    assert not results or boards.with_table(page, results) == page


def test_a_build_that_was_made_is_read_and_not_made_again(boards, tmp_path, monkeypatch):
    monkeypatch.setattr(boards, "latencies", lambda board, config: {"KWS": 1.0})
    report = {**RESULT, "board": "ulx3s", "steps": {}}
    del report["milliseconds"]
    (tmp_path / "report.json").write_text(json.dumps(report))
    row = boards.row(boards.report_of(str(tmp_path)))
    assert row == {**RESULT, "board": "ulx3s", "milliseconds": {"KWS": 1.0}}
    several = {"seeds": [{"seed": 0, "mhz": 61.25}, {"seed": 1, "mhz": 59.0}], "median_mhz": 60.12}
    row = boards.row({**report, **several})
    assert (row["seeds"], row["median_mhz"]) == (2, 60.12)


def test_a_network_has_a_latency_where_memory_holds_it(boards, monkeypatch):
    program = Program(tiny, encode([Sync(action=SyncAction.END)]), (Segment("arena", 1 << 20),))
    monkeypatch.setattr(boards, "network_files", lambda folder: {"KWS": folder / "kws.tflite"})
    monkeypatch.setattr(boards, "compile_model", lambda path, config, options, version:
                        SimpleNamespace(programs=(program,)))
    board = known("tang_nano_20k")
    assert set(boards.latencies(board, tiny)) == {"KWS"}
    less = replace(board, memory=replace(board.memory, bytes=1 << 20))      # the code is more
    assert boards.latencies(less, tiny) == {}


def test_a_dry_run_says_what_all_builds_will_take(boards, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["build_boards.py", "--dry-run"])
    monkeypatch.setattr(boards, "build_with_seeds", None)
    assert boards.main() == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == list(boards.BOARDS)
    minutes = sum(int(line.split("about ")[1].split(" ")[0].replace(",", "")) for line in lines)
    assert abs(int(last.split("about ")[1].split(" ")[0].replace(",", "")) - minutes) <= len(lines)
