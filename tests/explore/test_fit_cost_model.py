"""Cost models: judged on what they have not seen, and the same after a file."""

import json
import re

import numpy as np
import pytest

from microtron import Conv2d, MicrotronError
from microtron.explore.calibration_files import check_calibration, write_calibration
from microtron.explore.data_files import read_column
from microtron.explore.dataset import Design
from microtron.explore.features import features_of
from microtron.explore.fit import MODEL, PIPELINE, fit, load_data
from microtron.explore.layer_sources import sample_layers
from microtron.explore.points import canonical
from microtron.explore.predictor import load_cost_model, schema_path
from microtron.explore.sampling import sample_configs
from microtron.explore.validation import HeldOut, calibration, errors_of, folds, spearman
from microtron.isa.config import Config
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.reports.table_files import write_rows
from tests.command import bad

CONFIGURATIONS = [f"c{number % 7}" for number in range(60)]
LAYERS = [f"l{number // 4 % 11}" for number in range(60)]


def test_spearman_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.integers(1, 12, 40).astype(float), rng.normal(size=40)
        assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert spearman(one, one ** 3) == pytest.approx(1)


def test_errors_are_relative():
    found = errors_of(np.array([90.0, 100.0, 130.0]), np.array([100.0, 100.0, 100.0]))
    assert (found.rows, found.median) == (3, pytest.approx(0.1))
    assert 0.1 < found.percentile_90 < found.percentile_99 < 0.3


@pytest.mark.parametrize("held_out", HeldOut)
def test_training_rows_share_nothing_that_is_held_out_with_judged_rows(held_out):
    judged = []
    for train, test in folds(held_out, CONFIGURATIONS, LAYERS, 4, 0):
        assert len(train)
        for names, kind in ((CONFIGURATIONS, HeldOut.CONFIGURATIONS), (LAYERS, HeldOut.LAYERS)):
            if held_out in (kind, HeldOut.BOTH):
                assert not {names[row] for row in train} & {names[row] for row in test}
        judged += test.tolist()
    assert sorted(judged) == list(range(60))


def test_folds_need_enough_to_hold_out():
    with pytest.raises(MicrotronError, match="folds is 8, but the data have 7 configurations"):
        list(folds(HeldOut.BOTH, CONFIGURATIONS, LAYERS, 8, 0))


def test_calibration_is_one_where_predictions_are_right():
    exact = np.geomspace(100, 1e6, 500)
    for bins, ratio in ((calibration(exact, exact), 1.0), (calibration(exact / 2, exact), 2.0)):
        assert len(bins) == 20
        assert sum(each["rows"] for each in bins) == 500
        assert all(each["ratio_50"] == pytest.approx(ratio) for each in bins)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """points whose cycles follow from the simulation of steps by a rule that can be learned."""
    design = Design(configs=sample_configs(12, 0), layers=sample_layers(15, 0),
                    memories=[MemoryTiming()], schedules=2)
    rows = []
    for group in design.groups(160):
        for point in group:
            factor = 1.1 + 0.2 * point.config.out_readers + 0.1 * point.config.acc_banks
            rows.append({"asked": canonical(point.to_json()),
                         "cycles": factor * 2 ** features_of(point)["pipeline"]})
    path = tmp_path_factory.mktemp("data") / "data.jsonl"
    write_rows(path, rows)
    return path


@pytest.fixture(scope="module")
def fitted(table):
    pytest.importorskip("xgboost")
    return fit(load_data([table]), count=3, rounds=240)


def test_the_model_learns_what_the_simulation_of_steps_leaves(fitted):
    for held_out in HeldOut:
        model, steps = (fitted.errors[held_out][name] for name in (MODEL, PIPELINE))
        assert model.rows == steps.rows > 0
        assert model.median < steps.median / 3
    judged = fitted.errors[HeldOut.BOTH][MODEL].rows
    assert sum(each["rows"] for each in fitted.calibration) == judged
    assert sum(each.rows for each in fitted.operators.values()) == judged


def test_a_model_predicts_the_same_after_a_file(fitted, tmp_path):
    fitted.predictor.save(tmp_path / "m.json")
    again = load_cost_model(tmp_path / "m.json")
    layer = Conv2d(height=9, width=7, channels_in=20, channels_out=30, pad=(1, 1, 1, 1))
    for config in ("base", Config(acc_banks=1)):
        assert again.predict(config, layer) == fitted.predictor.predict(config, layer) > 100
    assert again.predict("base", layer, MemoryTiming(cycles_per_beat=8)) > (
        again.predict("base", layer))
    assert again.is_current
    assert again.facts["errors"] == fitted.to_dict()
    schema = json.loads(schema_path(tmp_path / "m.json").read_text())
    assert schema["features"] == list(fitted.predictor.features)


@pytest.mark.parametrize(("name", "change", "message"), [
    ("m.json", lambda text: text.replace("1", "2", 1), "not the file that m.schema.json belongs"),
    ("m.schema.json", lambda text: "[" * 5000, "not the schema of a cost model: it is not JSON"),
    ("m.schema.json", lambda text: "{}", "not the schema of a cost model: it must have"),
    ("m.schema.json", lambda text: text.replace('"version": 2', '"version": 3'),
     "version 3 that predicts"),
    ("m.schema.json", lambda text: text.replace('"features": [', '"features": ["more",'),
     "but its schema has"),
])
def test_a_damaged_model_is_refused_in_one_line(fitted, tmp_path, name, change, message):
    fitted.predictor.save(tmp_path / "m.json")
    (tmp_path / name).write_text(change((tmp_path / name).read_text()))
    with pytest.raises(MicrotronError, match=message):
        load_cost_model(tmp_path / "m.json")
    with pytest.raises(MicrotronError, match=r"none\.schema\.json: cannot be read"):
        load_cost_model(tmp_path / "none.json")


@pytest.mark.parametrize(("column", "value", "message"), [
    ("asked", "{", "row 2: asked is not JSON"), ("asked", "3", "row 2: kind is None"),
    ("cycles", -5, "row 2: cycles is -5, but must be a positive number"),
    ("cycles", "many", "row 2: cycles is 'many'"), ("cycles", None, "row 2: cycles is None")])
def test_a_row_that_cannot_be_is_named(table, tmp_path, column, value, message):
    rows = [{"asked": asked, "cycles": cycles} for asked, cycles in zip(
        read_column(table, "asked"), read_column(table, "cycles"), strict=True)]
    rows[1][column] = value
    write_rows(tmp_path / "d.jsonl", rows)
    with pytest.raises(MicrotronError, match=message):
        load_data([tmp_path / "d.jsonl"])


def test_calibrations_are_tables_or_plots(tmp_path):
    bins = calibration(np.geomspace(1, 10, 50), np.geomspace(1, 11, 50))
    write_calibration(tmp_path / "c.csv", bins)
    assert len(read_column(tmp_path / "c.csv", "ratio_50")) == 20
    check_calibration(tmp_path / "c.svg")
    write_calibration(tmp_path / "c.svg", bins)
    assert "exact / predicted" in (tmp_path / "c.svg").read_text(encoding="utf-8")
    with pytest.raises(MicrotronError, match=r"c\.jpg must end with"):
        check_calibration(tmp_path / "c.jpg")


def test_a_report_has_the_errors_and_the_calibration(fitted, tmp_path):
    from microtron.cli.explore.cost import write_fit_report

    write_fit_report(tmp_path / "fit.html", tmp_path / "m.json", fitted, silent=True)
    text = (tmp_path / "fit.html").read_text(encoding="utf-8")
    shown = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    errors = [each for kinds in fitted.errors.values() for each in kinds.values()]
    assert [row[3:5] for row in shown["tables"][0]["rows"]] == [
        [f"{each.spearman:.4f}", f"{100 * each.median:.1f} %"] for each in errors]
    band, line = shown["plots"][0]["series"]
    assert [(each["x"], each["y"]) for each in line["points"]] == [
        (each["predicted"], each["ratio_50"]) for each in fitted.calibration]
    assert [each["top"] for each in band["points"]] == [
        each["ratio_90"] for each in fitted.calibration]


def test_the_command_refuses_bad_input_in_one_line(tmp_path):
    assert "must be a .json file" in bad("fit", "d.csv", "-o", "m.txt", cwd=tmp_path)
    assert "there is no folder" in bad("fit", "d.csv", "-o", "none/m.json", cwd=tmp_path)
    pytest.importorskip("xgboost")
    for name in ("d.csv", "d.parquet"):
        assert f"microtron: {name}: cannot be read" in bad("fit", name, cwd=tmp_path)
    write_rows(tmp_path / "d.csv", [{"a": 1}])
    assert "no column 'asked'" in bad("fit", "d.csv", cwd=tmp_path)
