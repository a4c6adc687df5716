"""Clocks: configurations are placed and routed once, and what a model of them is worth is said."""

import gzip
import json
import os
import random
import re
import sys
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from microtron import MicrotronError
from microtron.base.processes import OverTimeError, run_tool_for
from microtron.boards.build.tools import Tool
from microtron.boards.ecp5.netlist_passes import run_passes_on_file
from microtron.boards.timing import unit_synthesis
from microtron.explore.area.area_model import shipped_area_model
from microtron.explore.clock import routed_clock
from microtron.explore.clock.clock_dataset import (
    MOST_LUTS,
    ClockDesign,
    clock_rows,
    clock_samples,
    collect_clocks,
)
from microtron.explore.clock.clock_model import (
    CONSTANT,
    LUTS_ALONE,
    MODEL,
    OTHER_SEEDS,
    ClockRow,
    clock_counts,
    fit_clock,
    load_clock_model,
    read_clocks,
)
from microtron.explore.records import Records, State
from microtron.isa.config import PRESETS
from microtron.runtime.reports.table_files import write_rows
from tests.command import bad, good

TINY = PRESETS["tiny"]
# A router that takes no time: 100 MHz and the seed, unless the netlist says that it never ends.
ROUTER = """
import json, sys
options = dict(zip(sys.argv, sys.argv[1:]))
if "endless" in open(options["--json"]).read():
    while True: pass
mhz = 100 + int(options["--seed"])
open(options["--log"], "w").write(f"Info: Max frequency for clock 'clk': 1.0 MHz\\n"
                                  f"Info: Max frequency for clock 'clk': {mhz}.25 MHz\\n")
open(options["--sdf"], "w").write("(DELAYFILE)")
open(options["--report"], "w").write(json.dumps({
    "fmax": {"clk": {"achieved": mhz, "constraint": 150}},
    "utilization": {kind: {"used": number, "available": 10 ** 5} for kind, number in {
        "TRELLIS_COMB": 17000, "TRELLIS_FF": 14000, "MULT18X18D": 32, "DP16KD": 28}.items()}}))
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Elaboration, synthesis and routing that take no time, and what was done."""
    done = []

    def elaborate(config, family):
        done.append(config)
        return "endless" if config.queue_depth == 4 else f"design {config.digest}"

    def run_yosys(folder, text, passes):
        (folder / "cells.json").write_text(json.dumps({"creator": text, "modules": {}}))
    (tmp_path / "router.py").write_text(ROUTER)
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(routed_clock, "elaborate", elaborate)
    monkeypatch.setattr(unit_synthesis, "run_yosys", run_yosys)
    for module in (routed_clock, unit_synthesis):
        monkeypatch.setattr(module, "yosys_version", lambda: "1.0")
    monkeypatch.setattr("microtron.boards.timing.place_and_route.run_passes_on_file",
                        copy_netlist)
    monkeypatch.setattr(routed_clock, "_nextpnr", lambda family: Tool(
        (sys.executable, str(tmp_path / "router.py")), "nextpnr-ecp5 0"))
    routed_clock.tools_digest.cache_clear()
    yield done
    routed_clock.tools_digest.cache_clear()


def copy_netlist(source, target, die):
    Path(target).write_text(Path(source).read_text())


copy_netlist.__module__ = run_passes_on_file.__module__     # whose sources are part of the key


def test_a_configuration_is_routed_once_and_its_clock_is_recorded(tmp_path, tools):
    configs = [TINY, replace(TINY, queue_depth=8)]
    design = ClockDesign(configs, "ecp5", seeds=2)
    assert collect_clocks(tmp_path / "r", design, points=1) == 1
    assert collect_clocks(tmp_path / "r", design) == 3
    assert collect_clocks(tmp_path / "r", design) == 0
    assert tools == [configs[0], configs[1], *configs]
    rows, failed = clock_rows(tmp_path / "r", design, names={TINY: "tiny"})
    assert not failed
    assert [(row["configuration"], row["seed"], row["mhz"], row["lut"], row["bram"])
            for row in rows] == [(name, seed, 100.25 + seed, 17000, 28) for seed in (1, 2)
                                 for name in ("tiny", configs[1].digest)]
    assert all(0 < row["seconds"] < 5 for row in rows)
    with Records(tmp_path / "r") as records:
        assert {each.state for each in records} == {State.VALID}
    write_rows(tmp_path / "clocks.csv", rows)
    assert [(row.config, row.mhz) for row in read_clocks([tmp_path / "clocks.csv"])] == [
        (row, 100.25 + seed) for seed in (1, 2) for row in configs]


def test_another_store_finds_what_is_placed_in_the_cache(tmp_path, tools, monkeypatch):
    design = ClockDesign([TINY], "ecp5")
    collect_clocks(tmp_path / "r", design)
    (tmp_path / "router.py").write_text("raise SystemExit('nobody is to run this')")
    collect_clocks(tmp_path / "again", design)
    first, again = (clock_rows(tmp_path / name, design) for name in ("r", "again"))
    assert first == again
    [delays] = (tmp_path / "cache").rglob("delays.sdf.gz")
    assert gzip.decompress(delays.read_bytes()) == b"(DELAYFILE)"


def test_what_takes_too_long_to_route_is_recorded_and_no_row(tmp_path, tools, monkeypatch):
    monkeypatch.setattr(routed_clock, "ROUTER_SECONDS", 1)
    design = ClockDesign([replace(TINY, queue_depth=4), TINY], "ecp5")
    assert collect_clocks(tmp_path / "r", design) == 2
    assert collect_clocks(tmp_path / "r", design) == 0
    [row], failed = clock_rows(tmp_path / "r", design)
    assert row["mhz"] == 101.25
    assert failed == ["placing and routing for LFE5U-85F-6 with seed 1 takes more than 1 s of "
                      "processor time"]


def test_a_tool_that_fails_by_itself_did_not_take_too_long(tmp_path):
    done, spent = run_tool_for(5, ["sh", "-c", "echo said; exit 3"], folder=tmp_path, doing="it")
    assert (done.returncode, done.stdout) == (3, "said\n")
    assert spent < 5
    with pytest.raises(OverTimeError, match="it takes more than 1 s of processor time"):
        run_tool_for(1, ["sh", "-c", "while :; do :; done"], folder=tmp_path, doing="it")


def test_samples_are_small_and_a_longer_list_begins_with_a_shorter_one():
    pytest.importorskip("scipy")
    found = clock_samples(30, 0, "sobol", "ecp5")
    assert found[0] == TINY
    assert len(set(found)) == 30
    assert clock_samples(12, 0, "sobol", "ecp5") == found[:12]
    assert clock_samples(12, 1, "sobol", "ecp5") != found[:12]
    for config in found:
        assert shipped_area_model().predict(config, "ecp5")["lut"] <= MOST_LUTS
        assert max(config.block_in, config.block_out) <= 8
    for field in ("batch", "block_in", "block_out", "vector_cycles", "acc_banks", "bus_bits",
                  "out_readers", "window_taps", "tables", "queue_depth"):
        assert len({getattr(config, field) for config in found}) > 1


def synthetic(noise, count=40, seeds=1):
    """Clocks that fall with banks and lanes by a rule, and move by chance."""
    rng = random.Random(1)
    rows = []
    for config in clock_samples(count, 0, "sobol", "ecp5"):
        counts = clock_counts(config, "ecp5")
        period = exp(2 + 0.08 * counts["banks"] + 0.05 * counts["lanes"])
        rows += [ClockRow(config, "ecp5", 1000 / period * exp(rng.gauss(0, noise)))
                 for _ in range(seeds)]
    return rows


def test_a_model_finds_what_periods_grow_with(tmp_path):
    pytest.importorskip("scipy")
    *rows, unseen = synthetic(0.0)
    model = fit_clock(rows)
    assert model.errors["ecp5"][MODEL]["spearman"] > 0.95
    assert model.errors["ecp5"][MODEL]["median"] < 0.01 < model.errors["ecp5"][CONSTANT]["median"]
    assert model.errors["ecp5"][CONSTANT]["spearman"] is None
    assert not model.doubts()
    assert model.predict(unseen.config, "ecp5") == pytest.approx(unseen.mhz, rel=0.02)
    model.save(tmp_path / "model.json")
    loaded = load_clock_model(tmp_path / "model.json")
    assert loaded.predict(unseen.config, "ecp5") == model.predict(unseen.config, "ecp5")
    with pytest.raises(MicrotronError, match="family is 'xc7', but must be one of ecp5"):
        model.predict(TINY, "xc7")


def test_a_model_of_chance_is_doubted_and_other_seeds_say_how_large_chance_is():
    pytest.importorskip("scipy")
    rows = [replace(row, mhz=100 * exp(random.Random(number).gauss(0, 0.05)))
            for number, row in enumerate(synthetic(0.0, count=16, seeds=2))]
    model = fit_clock(rows)
    errors = model.errors["ecp5"]
    assert errors[MODEL]["median"] < 2 * errors[CONSTANT]["median"]      # it says nearly the mean
    assert errors[OTHER_SEEDS]["rows"] == 32
    assert 0.01 < errors[OTHER_SEEDS]["median"] < 0.12
    [doubt] = model.doubts()
    assert re.fullmatch(r"ecp5: do not rank configurations by this model: its rank correlation is "
                        r"-?0\.\d\d, that of LUTs alone -?0\.\d\d", doubt)
    assert OTHER_SEEDS not in fit_clock(rows[::2]).errors["ecp5"]
    assert errors[LUTS_ALONE]["rows"] == len(rows)


def table(path, rows):
    """Rows as `microtron dataset --clock` writes them."""
    write_rows(path, [{"asked": json.dumps(
        {"kind": "clock", "family": row.family, "config": row.config.explicit_fields()},
        separators=(",", ":"), sort_keys=True), "mhz": row.mhz} for row in rows])
    return path


def test_the_command_fits_a_model_and_says_what_it_is_worth(tmp_path):
    pytest.importorskip("scipy")
    output = tmp_path / "model.json"
    path = table(tmp_path / "clocks.csv", synthetic(0.01))
    assert "do not rank" not in good("fit", path, "-o", output)
    found = json.loads(good("fit", path, "-o", output, "--folds", 5, "--json"))
    assert found["rows"] == 40
    assert set(found["errors"]["ecp5"]) == {MODEL, LUTS_ALONE, CONSTANT}
    assert 50 < load_clock_model(output).predict(TINY, "ecp5") < 150
    few = table(tmp_path / "few.csv", synthetic(0.01, count=4))
    assert "4 rows of 4 configurations, but a clock model needs 10" in bad("fit", few, "-o",
                                                                           output)
    assert "leave them out for tables of clocks" in bad("fit", few, "-o", output, "--report",
                                                        tmp_path / "r.html")


@pytest.mark.parametrize(("text", "message"), [
    ("{}", "not a clock model of version 1"), ("nothing", "not a clock model: it is not JSON"),
    (json.dumps({"format": "microtron clock model", "version": 1, "weights": {"ecp5": {}}}),
     "not a clock model"),
    (json.dumps({"format": "microtron clock model", "version": 1, "weights": {"ecp5": {
        "once": float("nan")}}}), "not a clock model"),
    (json.dumps({"format": "microtron area model", "version": 1}), "not a clock model"),
])
def test_a_file_that_is_no_model_is_refused(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(MicrotronError, match=message):
        load_clock_model(path)


@pytest.mark.parametrize(("column", "value", "message"), [
    ("asked", "{}", "row 1: not a row of microtron dataset --clock"),
    ("asked", '{"kind":"clock","family":"xc7","config":{}}', "row 1: family is 'xc7' and the"),
    ("mhz", -3, "row 1: family is 'ecp5' and the clock"),
    ("mhz", "fast", "row 1: not a row"),
])
def test_a_row_that_cannot_be_is_named(tmp_path, column, value, message):
    row = {"asked": '{"kind":"clock","family":"ecp5","config":{}}', "mhz": 100}
    write_rows(tmp_path / "c.csv", [{**row, column: value}])
    with pytest.raises(MicrotronError, match=message):
        read_clocks([tmp_path / "c.csv"])


@pytest.mark.parametrize(("arguments", "message"), [
    (("--clock", "xc7"), "--clock is 'xc7', but must be ecp5"),
    (("--clock", "ecp5", "--area", "ecp5"), "--area and --clock are two tables"),
    (("--clock", "ecp5", "--random-layers", "4"), "--clock routes configurations: leave out"),
    (("--seeds", "2"), "--seeds is of --clock"),
])
def test_the_command_refuses_bad_input_in_one_line(tmp_path, arguments, message):
    assert message in bad("dataset", str(tmp_path / "c.csv"), *arguments)


def test_the_command_writes_a_table_of_what_was_routed(tmp_path, tools):
    said = good("dataset", tmp_path / "c.csv", "--clock", "ecp5", "--config", "tiny", "--config",
                "micro", "--seeds", 2, "--budget", "3")
    assert "3 clocks of 2 configurations; 3 placed and routed now" in " ".join(said.split())
    found = json.loads(good("dataset", tmp_path / "c.csv", "--clock", "ecp5", "--config", "tiny",
                            "--json"))
    assert (found["rows"], found["measured"], found["failed"]) == (1, 0, [])
    assert os.path.exists(tmp_path / "c.records")


def test_the_table_that_comes_along_is_judged_as_the_page_says():
    pytest.importorskip("scipy")
    rows = read_clocks([Path(routed_clock.__file__).with_name("clocks.csv")])
    assert len({row.config for row in rows}) == len(rows) == 11
    judged = fit_clock(rows).errors["ecp5"]
    assert judged[MODEL]["spearman"] == pytest.approx(0.54, abs=0.01)
    assert judged[MODEL]["median"] == pytest.approx(0.038, abs=0.001)
