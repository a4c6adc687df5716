"""Data sets: legal samples, a design that repeats, and rows that are what the simulator says."""

import csv
import json
import math
from collections import Counter

import pytest

from microtron import Conv2d, Dense, MicrotronError, compile_op, load_config, simulate
from microtron.explore.data_files import read_column
from microtron.explore.dataset import Design, collect, parse_budget, rows_of
from microtron.explore.features import features_of
from microtron.explore.layer_sources import read_layers, sample_layers
from microtron.explore.measure import measure_all
from microtron.explore.points import parse_point
from microtron.explore.records import Records
from microtron.explore.sampling import sample_configs, sample_memories
from microtron.isa.config import Config
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.reports.table_files import write_rows
from tests.command import bad, good

SMALL = (Dense(rows=1, inputs=24, outputs=20), Dense(rows=3, inputs=16, outputs=8),
         Conv2d(height=4, width=4, channels_in=8, channels_out=8))
LIST = [{"operator": "dense", "rows": 1, "inputs": 24, "outputs": 20},
        {"operator": "conv2d", "height": 4, "width": 4, "channels_in": 8, "channels_out": 8}]


def small_design(**changes):
    return Design(**{"configs": [load_config("tiny"), load_config("micro")], "layers": SMALL,
                     "memories": [MemoryTiming(), MemoryTiming(read_latency=9)], "schedules": 3,
                     **changes})


@pytest.mark.parametrize("design", ["sobol", "lhs"])
def test_every_sample_is_a_legal_configuration_and_no_two_are_equal(design):
    found = sample_configs(200, 1, design)
    assert len(set(found)) == 200
    assert found == sample_configs(200, 1, design)
    assert found != sample_configs(200, 2, design)
    for name in ("block_in", "block_out", "batch", "bus_bits", "acc_banks", "vector_cycles",
                 "out_readers", "window_taps", "tables"):
        assert len({getattr(each, name) for each in found}) > 1, name


def test_a_longer_sobol_list_begins_with_the_shorter_one():
    assert sample_configs(100, 3)[:10] == sample_configs(10, 3)
    assert sample_memories(9, 3)[:4] == sample_memories(4, 3)
    assert sample_memories(9, 3)[0] == MemoryTiming()
    assert len(set(sample_memories(9, 3))) > 5


def test_sampled_layers_are_of_many_kinds_and_differ():
    found = sample_layers(150, 0)
    assert len(set(found)) == 150
    counts = Counter(each.operator for each in found)
    assert counts.keys() == {"conv2d", "depthwise", "dense", "pool", "elementwise"}
    assert counts["conv2d"] > counts["pool"] > 0


def test_pairs_are_even_at_every_length():
    for configs, layers in ((3, 5), (5, 3), (4, 4), (1, 3)):
        design = Design(configs=sample_configs(configs, 0), layers=sample_layers(layers, 0),
                        memories=[MemoryTiming()])
        pairs = list(design.pairs)
        assert len(pairs) == len(set(pairs)) == configs * layers
        half = Counter(config for config, _ in pairs[:len(pairs) // 2])
        assert max(half.values()) - min(half.values(), default=0) <= 1


def test_rows_are_what_the_simulator_says(tmp_path):
    design = small_design()
    done = collect(design, tmp_path / "r")
    rows = list(rows_of(design, tmp_path / "r"))
    assert done.measured == len(rows) == 2 * 3 * 3 * 2
    for row in rows[::7]:
        point = parse_point(json.loads(row["asked"]))
        kernel = compile_op(point.layer, point.config, form=point.form,
                            knobs=point.schedule.knobs)
        report = simulate(kernel.program, memory=point.memory)
        assert row["cycles"] == report.cycles
        assert row["gemm_busy"] == report.counters["gemm_busy"]
        assert row["bound"] <= row["cycles"]
        assert row["feature_estimate"] == pytest.approx(math.log2(row["estimate"]))


def test_nothing_is_measured_twice_and_a_larger_budget_goes_on(tmp_path):
    design = small_design()
    assert collect(design, tmp_path / "r", points=7).measured == 7
    again = collect(design, tmp_path / "r", points=11)
    assert (again.done, again.measured) == (11, 4)
    with Records(tmp_path / "r") as records:
        assert len(records) == 11
    assert [row["key"] for row in rows_of(design, tmp_path / "r", 7)] == [
        row["key"] for row in rows_of(design, tmp_path / "r")][:7]


def test_time_ends_a_run(tmp_path):
    done = measure_all(tmp_path / "r", small_design().groups(), seconds=0)
    assert 0 < done.done < 36


def test_features_have_the_same_names_for_every_layer_and_are_numbers():
    config = Config()
    names = None
    for layer in sample_layers(25, 5):
        design = Design(configs=[config], layers=[layer], memories=[MemoryTiming()], schedules=2)
        for point in next(design.groups(), []):
            found = features_of(point)
            names = names or list(found)
            assert list(found) == names
            assert not [name for name, value in found.items() if math.isinf(value)]
            assert found["estimate_reuse"] > -1.0       # no less is moved than has to be, roughly


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_tables_are_read_as_they_were_written(tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"table.{ending}"
    write_rows(path, [{"asked": '{"a":1}', "x": 1.5, "y": math.nan}, {"asked": "b", "z": 2}])
    assert read_column(path, "asked") == ['{"a":1}', "b"]
    with pytest.raises(MicrotronError, match=r"table\.\w+: .*(no column|not a table)"):
        read_column(path, "missing")
    path.write_bytes(b"\x00\xffgarbage")
    with pytest.raises(MicrotronError, match=r"table\.\w+: (not a table|has no column)"):
        read_column(path, "asked")


@pytest.mark.parametrize(("text", "found"), [
    ("5000", (5000, None)), ("30min", (None, 1800.0)), ("5,2min", (5, 120.0))])
def test_a_budget_is_points_minutes_or_both(text, found):
    assert parse_budget(text) == found


@pytest.mark.parametrize("text", ["x", "5 min", "-3", "0", "1e3", "5min3", "²", "9" * 400,
                                  "", ",", "5,", "5,6", "5min,6min"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(MicrotronError, match=r"budget is .*, but must be points"):
        parse_budget(text)


def test_the_command_writes_a_table_and_goes_on_from_its_records(tmp_path):
    (tmp_path / "layers.json").write_text(json.dumps(LIST))
    arguments = ("dataset", "d.csv", "--layers", "layers.json", "--config", "tiny", "--schedules",
                 3)
    found = json.loads(good(*arguments, "--budget", "4", "--json", cwd=tmp_path))
    assert (found["rows"], found["measured"], found["configurations"]) == (4, 4, 1)
    said = good(*arguments, cwd=tmp_path)
    assert said.startswith("d.csv: 6 rows of 1 configurations and 2 layers; 2 measured now in ")
    with (tmp_path / "d.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["configuration"] for row in rows] == ["tiny"] * 6
    assert good("records", "d.records", "--export", "d.jsonl", cwd=tmp_path) == (
        "d.records: 6 records: 6 valid\n")
    assert good("records", "other", "--import", "d.jsonl", cwd=tmp_path) == (
        "other: 6 records: 6 valid; 6 of them new\n")


@pytest.mark.parametrize(("arguments", "message"), [
    (["dataset", "d.txt"], "d.txt must end with .parquet, .csv or .jsonl"),
    (["dataset", "d.csv", "--budget", "many"], "budget is 'many'"),
    (["dataset", "d.csv", "--design", "soboll", "--budget", "1"], "did you mean sobol"),
    (["dataset", "d.csv", "--layers", "none.json"], "none.json: cannot be read"),
    (["dataset", "d.csv", "--layers", "bad.json"], "bad.json: layer 1: dense: rows is 0"),
    (["dataset", "d.csv", "--config", "bases"], "bases"),
    (["dataset", "no/d.csv", "--records", "d.records"], "no/d.csv: cannot be written: there is no"),
    (["dataset", "d.csv", "--seed", "-1"], "--seed': Input should be greater than or equal to 0"),
    (["dataset", "d.csv", "--area", "ecp5", "--schedules", "7", "--seed", "3"],
     "--area synthesizes configurations: leave out --schedules, --seed"),
    (["dataset", "d.csv", "--clock", "ecp5", "--layers", "l.json", "--workers", "2"],
     "--clock routes configurations: leave out --layers, --workers"),
    (["records", "none"], "none: cannot be read: no such file"),
    (["records", "bad.json"], "bad.json: not a store of records"),
])
def test_commands_refuse_bad_input_in_one_line(tmp_path, arguments, message):
    (tmp_path / "bad.json").write_text(json.dumps([LIST[0], {**LIST[0], "rows": 0}]) + " " * 2000)
    assert message in bad(*arguments, cwd=tmp_path)


def test_a_list_that_is_none_is_refused(tmp_path):
    transposed = {"operator": "transposed", "height": 4, "width": 4, "channels_in": 4,
                  "channels_out": 4, "stride": 2}
    for text in ("{}", "[]", "[", "[3]", "[" * 100_000, json.dumps([transposed])):
        (tmp_path / "l.json").write_text(text)
        with pytest.raises(MicrotronError, match=r"l\.json: "):
            read_layers(tmp_path / "l.json")
