"""The example that collects data for a cost model, and its page: both say what is there."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "cost_models.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "cost_data.py"), "data.csv",
                           "--schedules=1", "--budget=12"], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("data.csv: 12 rows of 3 configurations and 3 layers; ")
    with (folder / "data.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_row_has_exact_cycles_that_are_never_below_the_bound(rows):
    for row in rows:
        bound = max(float(row[f"bound_{name}"]) for name in ("macs", "memory", "alu"))
        assert 0 < bound == float(row["bound"]) <= int(row["cycles"])
        assert int(row["work_macs"]) <= int(row["macs"])
    assert len({row["key"] for row in rows}) == len(rows)


def test_every_kind_of_column_that_the_page_names_is_there_and_no_other(rows):
    section = PAGE.partition("## Columns")[2].partition("The features are")[0]
    names = re.findall(r"`([a-z_]+)(…?)`", section)
    assert len(names) > 20
    for name, more in names:
        assert any(each == name or (more and each.startswith(name)) for each in rows[0]), name
    counters = ("fetch_", "load_", "gemm_", "alu_", "store_")
    for column in rows[0]:
        assert column.startswith(counters) or any(
            column == name or (more and column.startswith(name)) for name, more in names), column


def test_the_example_refuses_what_the_command_refuses(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "cost_data.py"), "data.xls"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "data.xls must end with .parquet, .csv or .jsonl" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_python_of_the_page_runs_from_top_to_bottom():
    found: dict[str, object] = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "cost_models.md", "exec"), found)
    cycles = [row["cycles"] for row in found["rows"]]
    assert cycles == sorted(set(cycles))
    assert len(cycles) == 4
