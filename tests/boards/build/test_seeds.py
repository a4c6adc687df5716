"""Builds with several seeds: which is kept, and what is said of the others."""

from __future__ import annotations

import json

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.build import seeds
from microtron.boards.build.estimate import is_route
from microtron.boards.build.plan import make_plan
from microtron.boards.build.report import table_rows
from microtron.boards.facts.catalogue import find_board
from microtron.isa.config import tiny

from ...command import bad, good

PLAN = make_plan(find_board("ulx3s"), tiny, "tiny")


def built(monkeypatch, tmp_path, outcomes):
    """The last of the builds when seeds come to these; a text is why one is not routed."""
    calls = []

    def build(plan, folder, also=None):
        route, = filter(is_route, plan.build.steps)
        *_, option, seed = ("--seed", "0", *route.work.arguments)[-2:]
        seed = int(seed) if option == "--seed" else 0
        calls.append((folder.name, seed))
        outcome = outcomes[seed]
        if isinstance(outcome, str):
            raise MicrotronError(outcome)
        return {**outcome, **(also or {})}

    monkeypatch.setattr(seeds, "build", build)
    return seeds.build_with_seeds(PLAN, tmp_path / "out", len(outcomes)), calls


def test_the_fastest_is_kept_and_the_median_told(monkeypatch, tmp_path):
    found, calls = built(monkeypatch, tmp_path, [{"mhz": 60.0}, {"mhz": 66.0}, {"mhz": 51.0}])
    assert calls == [("seed_0", 0), ("seed_1", 1), ("seed_2", 2), ("out", 1)]
    assert found["mhz"] == 66
    assert found["median_mhz"] == 60
    assert found["seeds"] == [{"seed": 0, "mhz": 60.0}, {"seed": 1, "mhz": 66.0},
                              {"seed": 2, "mhz": 51.0}]


def test_a_seed_that_meets_the_other_clocks_goes_before_a_faster_one(monkeypatch, tmp_path):
    found, _ = built(monkeypatch, tmp_path, [
        {"mhz": 60.0}, {"mhz": 66.0, "missed_clocks": {"cable": "120 of 125 MHz"}}])
    assert (found["mhz"], found["median_mhz"]) == (60, 63)


def test_a_seed_that_is_not_routed_is_told(monkeypatch, tmp_path):
    found, _ = built(monkeypatch, tmp_path, ["route failed: no", {"mhz": 40.0}, {"mhz": 42.0}])
    assert found["seeds"][0] == {"seed": 0, "error": "route failed: no"}
    assert (found["mhz"], found["median_mhz"]) == (42, 41)
    with pytest.raises(MicrotronError, match="no seed was routed: route failed: no"):
        built(monkeypatch, tmp_path, ["route failed: no", "route failed: too"])


def test_people_see_every_seed():
    found = {"part": "p", "config": "c", "processor_seconds": 1, "mhz": 66.0, "target_mhz": 50.0,
             "meets_timing": True, "peak_gops": 1.0, "used": {}, "available": {},
             "median_mhz": 60.0, "seeds": [{"seed": 0, "mhz": 66.0}, {"seed": 1, "error": "no"},
                                           {"seed": 2, "mhz": 54.0}]}
    assert ("seeds", "66.0, not routed, 54.0 MHz; the median is 60.0") in table_rows(found)


def test_one_seed_is_the_build_as_ever():
    assert seeds.with_seed(PLAN, 0) == PLAN
    others = [step for step in seeds.with_seed(PLAN, 2).build.steps if not is_route(step)]
    assert others == [step for step in PLAN.build.steps if not is_route(step)]


def test_the_command_counts_routes_and_refuses_other_numbers():
    one, three = (json.loads(good("build", "--board", "ulx3s", "--dry-run", "--json", "--seeds",
                                  number))["expected"] for number in ("1", "3"))
    assert (one["routes"], three["routes"]) == (1, 3)
    assert three["processor_seconds"] > 2 * one["processor_seconds"]
    assert "with 3 seeds of nextpnr" in good("build", "--board", "ulx3s", "--dry-run",
                                             "--seeds", "3")
    assert "--seeds is 10, but must be 1 to 9" in bad("build", "--board", "ulx3s", "--seeds", "10")
    assert "routes nothing" in bad("build", "--board", "kv260", "--seeds", "2")
