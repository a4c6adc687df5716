"""Tables in files: every format has the same cells."""

from __future__ import annotations

import csv
import json

import pytest

from microtron.runtime.reports.table_files import ENDINGS, flatten, write_rows

ROWS = [{"name": "a,b\n", "cycles": 3, "time": None, "mixed": 1},
        {"name": "ä", "cycles": None, "time": 0.5, "mixed": "x", "more": True}]


def read(path):
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)) if path.suffix == ".csv" else [
            json.loads(line) for line in file]


@pytest.mark.parametrize("ending", ENDINGS)
def test_cells_are_the_same_in_every_format(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    write_rows(tmp_path / f"table{ending}", ROWS)
    found = read(tmp_path / f"table{ending}")
    names = {name for row in ROWS for name in row}

    def text(row):
        return {name: "" if row.get(name) is None else str(row[name]) for name in names}
    assert [text(row) for row in found] == [text(row) for row in ROWS]


def test_rows_are_flattened():
    assert flatten({"a": {"b": {"c": 1}, "d": 2}, "e": [1, {"f": 2}], "g": "text", "h": None}) == {
        "a_b_c": 1, "a_d": 2, "e": '[1, {"f": 2}]', "g": "text", "h": None}
