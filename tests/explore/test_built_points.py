"""Points of a front that are built: the knee first, and what became of each."""

import csv
import json
from pathlib import Path

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.build import flow, plan
from microtron.explore.codesign.built_points import choose_routed
from microtron.explore.codesign.front import Point, knee_of
from microtron.explore.sampling import sample_configs
from tests.command import bad, command

pytest.importorskip("optuna")
pytest.importorskip("scipy")
DIGITS = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
USED = {"lut": 20_000, "register": 15_000, "dsp": 30, "bram": 40}


def test_the_knee_is_routed_first():
    values = [(1000, 900), (2000, 300), (4000, 250), (9000, 200)]
    front = [Point(config, cycles, {"lut": lut, "dsp": 1.0}) for config, (cycles, lut) in zip(
        sample_configs(len(values), 0), values, strict=True)]
    assert choose_routed(front, 0) == []
    assert choose_routed(front, 1) == [knee_of(front)] == [front[1]]
    assert choose_routed(front, 3) == [front[1], front[0], front[3]]
    assert choose_routed(front, 9) == [front[1], front[0], *front[2:]]
    assert choose_routed(front[:2], 1) == front[:1]             # without a knee


@pytest.fixture
def builds(monkeypatch):
    """What is built, each with another end."""
    asked = []
    ends = [{"mhz": 61.5, "target_mhz": 50.0, "meets_timing": True, "used": USED},
            MicrotronError("nextpnr failed: no way"),
            {"mhz": 41.5, "target_mhz": 50.0, "meets_timing": False, "used": USED}]

    def build(planned, folder):
        asked.append((planned.config, folder))
        end = ends[len(asked) - 1]
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr(plan, "build", build)
    monkeypatch.setattr(flow, "why_unavailable", lambda board: None)
    return asked


@pytest.fixture(scope="module")
def explore(tmp_path_factory):
    """The same search each time: only the first simulates."""
    records = tmp_path_factory.mktemp("routing") / "front.records"
    return lambda run, folder, *options: run(
        "explore", DIGITS, "--board", "ulx3s", "--budget", "32", "--finalists", "6",
        "--records", records, "-o", folder, *options)


def test_what_was_routed_is_in_the_files(builds, explore, tmp_path):
    ended = explore(command, tmp_path / "front", "--route", "3", "--json")
    assert ended.code == 0, ended.error
    found = json.loads(ended.out)
    with (tmp_path / "front/front.csv").open() as file:
        rows = list(csv.DictReader(file))
    summary = json.loads((tmp_path / "front/exploration.json").read_text())
    assert len(builds) == len(summary["routed"]) == 3
    by_config = {config.digest[:12]: folder for config, folder in builds}
    good, failed, slow = (next(row for row in rows if row["routed_folder"] == f"builds/{digest}")
                          for digest in by_config)
    assert good["file"] == found["knee"]
    assert float(good["routed_milliseconds"]) == round(int(good["cycles"]) / 50_000, 4)
    assert (good["routed_mhz"], good["runs_mhz"], good["routed_lut"]) == ("61.5", "50.0", "20000")
    assert failed["routed_error"] == "nextpnr failed: no way"
    assert (failed["routed_mhz"], failed["routed_milliseconds"], failed["routed_lut"]) == ("",) * 3
    assert (slow["routed_mhz"], slow["runs_mhz"], slow["routed_milliseconds"]) == ("41.5", "", "")
    assert all(row["routed_folder"] == "" for row in rows if row not in (good, failed, slow))
    assert [each["routed"]["mhz"] for each in found["front"] if each["cycles"] == int(
        good["cycles"])] == [61.5]


def test_people_see_what_became_of_each(builds, explore, tmp_path):
    ended = explore(command, tmp_path / "front", "--route", "3")
    assert ended.code == 0, ended.error
    said = " ".join(ended.out.split())
    assert "was routed for 61.5 MHz and runs at 50:" in said
    assert "was not routed: nextpnr failed: no way" in said
    assert "was routed for 41.5 MHz, which is less than its board needs" in said


def test_a_board_that_cannot_be_built_is_refused_before_the_search(monkeypatch, explore,
                                                                  tmp_path):
    monkeypatch.setattr(flow, "why_unavailable", lambda board: "yosys is missing")
    said = explore(bad, tmp_path / "front", "--route", "1")
    assert said.startswith("microtron: --route: nothing can be built for ulx3s: yosys is")
    assert not (tmp_path / "front").exists()
