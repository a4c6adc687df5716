"""The example that gathers data for a cost model, and its page: both say what is there."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "cost_models.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example():
    specification = importlib.util.spec_from_file_location(
        "cost_data", ROOT / "examples" / "cost_data.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(example):
    return example.gather(1, 1)


def test_a_row_has_exact_cycles_that_are_never_below_the_bound(rows):
    for row in rows:
        bound = max(row["bound_macs"], row["bound_memory"], row["bound_alu"])
        assert 0 < bound <= row["cycles"]
        assert row["work_macs"] <= row["macs"]
    assert len({(row["layer"], row["configuration"], row["memory_read_latency"])
                for row in rows}) == len(rows)


def test_csv_and_json_say_the_same(example, rows):
    table = list(csv.DictReader(example.as_text(rows, ".csv").splitlines()))
    again = json.loads(example.as_text(rows, ".json"))
    assert [{key: str(row.get(key, "")) for key in table[0]} for row in again] == table


def test_the_page_says_how_many_points_there_are(example, rows):
    assert len(rows) == len(example.LAYERS) * len(example.CONFIGS) * len(example.MEMORIES)
    assert f"{example.CANDIDATES * len(rows)} points" in PAGE


def test_every_kind_of_column_that_the_page_names_is_there(rows):
    section = PAGE.partition("flat dictionary")[2].partition("What else")[0]
    names = re.findall(r"`([a-z_]+)…?`", section)
    assert len(names) > 12
    for name in names:
        assert any(each == name or each.startswith(name) for each in rows[0]), name


@pytest.mark.parametrize(("file", "written"), [("data.json", True), ("data.xls", False)])
def test_only_files_of_two_kinds_are_written(example, rows, tmp_path, monkeypatch, capsys, file,
                                             written):
    monkeypatch.setattr(example, "gather", lambda most, processes: rows)
    monkeypatch.setattr(sys, "argv", ["cost_data.py", str(tmp_path / file)])
    if written:
        example.main()
        assert f"{len(rows)} rows" in capsys.readouterr().out
    else:
        with pytest.raises(SystemExit, match="2"):
            example.main()
        assert "must end with .csv or .json" in capsys.readouterr().err
    assert (tmp_path / file).exists() == written


def test_the_python_of_the_page_runs_from_top_to_bottom():
    found: dict[str, object] = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "cost_models.md", "exec"), found)
    cycles = [row["cycles"] for row in found["rows"]]
    assert cycles == sorted(set(cycles))
    assert len(cycles) == 4
