"""Configurations for a network on a board: what is on the front is exact, fits and is built."""

import csv
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from microtron import compile_op, simulate
from microtron.base.errors import MicrotronError
from microtron.base.notebooks import figure
from microtron.base.notebooks.figure import has_matplotlib
from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.fit import check_fits
from microtron.cli.explore.codesign import describe_gains
from microtron.compiler.operators.dense.dense import Dense
from microtron.explore.area.area_counts import KINDS, area_features
from microtron.explore.area.area_model import AreaRow, fit_area
from microtron.explore.codesign.board_budget import Budget, UnfitError
from microtron.explore.codesign.codesign_search import (
    Exploration,
    choose_finalists,
    search,
    spread,
)
from microtron.explore.codesign.front import Point, dominates, knee_of, pareto_front
from microtron.explore.codesign.layer_streams import StreamLayer
from microtron.explore.codesign.question import Question
from microtron.explore.codesign.workload import Task, exact_cycles, read_tasks
from microtron.explore.records import Records
from microtron.explore.sampling import choose_config, locate_config, sample_configs
from microtron.isa.config import PRESETS
from microtron.isa.config_files import load_config
from microtron.isa.memory_timing import MemoryTiming
from tests.command import bad, command

pytest.importorskip("optuna")
pytest.importorskip("scipy")
DIGITS = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"


@pytest.fixture(scope="module")
def areas():
    """A model of areas that are about right."""
    rows = []
    for config in sample_configs(60, 0):
        counts = area_features(config, "ecp5")
        logic = 9000 + 900 * config.alu_lanes + 100 * config.batch * config.block_out
        area = {"lut": logic, "register": logic,
                **{kind: sum(counts[kind].values()) for kind in KINDS[2:]}}
        rows.append(AreaRow(config, "ecp5", area))
    return fit_area(rows)


def points(*values):
    return [Point(config, cycles, {"lut": lut, "dsp": 1.0}) for config, (cycles, lut) in zip(
        sample_configs(len(values), 0), values, strict=True)]


@pytest.mark.parametrize(("others", "said"), [
    ([(90, 95), (80, 100), (100, 70)], ["at no more LUTs: 80 cycles, 20.0 % less",
                                        "at no more cycles: 70 LUTs, 30.0 % less"]),
    ([(90, 110), (110, 90)], ["nothing on the front beats it"]),
    ([], ["nothing on the front beats it"])])
def test_a_gain_is_what_is_better_than_the_baseline(others, said):
    before, *front = points((100, 100), *others)
    lines = describe_gains(SimpleNamespace(front=[before, *front]), before)
    assert lines == ["baseline: 100 cycles, 100 LUTs, 1 multipliers", *said]


def test_a_front_has_what_nothing_beats():
    some = points((10, 50), (20, 40), (15, 60), (20, 40), (30, 10), (31, 11))
    front = pareto_front(some, ("latency", "lut"))
    assert [(each.cycles, each.area["lut"]) for each in front] == [(10, 50), (20, 40), (30, 10)]
    assert dominates(some[0], some[2], ("latency", "lut"))
    assert not dominates(some[1], some[0], ("latency", "lut"))


def test_the_knee_is_where_a_front_bends():
    some = points((1000, 160), (1200, 40), (4000, 30), (9000, 28), (9500, 29))
    assert knee_of(some) is some[1]
    assert knee_of(some[:2]) is None


def test_notebooks_show_a_front_as_a_table_and_a_picture():
    front = pareto_front(points((1000, 50), (2000, 40), (3000, 60)), ("latency", "lut"))
    text = front._repr_html_()
    assert re.findall(r"<td>([\d,]+)</td><td>(\d+)</td><td>1</td></tr>", text) == [
        ("1,000", "50"), ("2,000", "40")]
    assert "<title>2,000 cycles, 40 LUTs</title>" in text
    picture = ET.fromstring(text[text.index("<svg"):])
    assert len(picture.findall(".//{*}title")) == 2
    assert "<svg" not in pareto_front([], ("latency",))._repr_html_()


def test_a_front_is_plotted_where_matplotlib_is(monkeypatch):
    front = pareto_front(points((1000, 50), (2000, 40)), ("latency", "lut"))
    if has_matplotlib():
        line, dots = front.plot().get_lines()
        assert [*map(tuple, dots.get_xydata())] == [(50, 1000), (40, 2000)]
        assert [*map(tuple, line.get_xydata())] == [(40, 2000), (50, 1000)]
    monkeypatch.setattr(figure, "has_matplotlib", lambda: False)
    with pytest.raises(MicrotronError, match="need matplotlib, which is not installed"):
        front.plot()


def test_finalists_are_the_front_and_then_what_is_behind_it():
    some = [Point(replace(PRESETS["tiny"], queue_depth=2 << number), cycles, {"lut": lut})
            for number, (cycles, lut) in enumerate(
                ((30, 10.0), (20, 20.0), (10, 30.0), (21, 21.0), (11, 31.0)))]
    objectives = ("latency", "lut")
    assert [each.cycles for each in choose_finalists(some, objectives, 2)] == [10, 30]
    assert [each.cycles for each in choose_finalists(some, objectives, 4)] == [10, 20, 30, 11]
    assert len(choose_finalists(some, objectives, 9)) == 5


def test_finalists_are_spread_and_have_both_ends():
    some = points(*((number, 100 - number) for number in range(20)))
    assert spread(some, 30) == some
    assert [each.cycles for each in spread(some, 4)] == [0, 6, 13, 19]


def test_what_a_part_has_no_room_for_is_named(areas):
    budget = Budget(find_board("ulx3s"), areas)
    assert budget.check(PRESETS["tiny"])["dsp"] == pytest.approx(36, rel=0.02)  # four in the shell
    with pytest.raises(UnfitError, match="multipliers, but LFE5U-85F has 156") as error:
        budget.check(PRESETS["base"])
    assert error.value.short == "dsp"


def test_a_list_of_layers_takes_what_its_layers_take(tmp_path):
    layers = [{"operator": "dense", "rows": 1, "inputs": 24, "outputs": width}
              for width in (8, 40, 8)]
    path = tmp_path / "layers.json"
    path.write_text(json.dumps(layers))
    config, memory = PRESETS["tiny"], MemoryTiming()
    [task] = read_tasks([path], [], config, memory)
    assert len(task.streams) == 3               # one of them twice
    alone = [simulate(compile_op(layer.spec, config).program).cycles
             for layer, in task.streams]
    with Records(tmp_path / "r") as records:
        assert exact_cycles([task], config, memory, records) == sum(alone)
        path.write_text(json.dumps(layers[:1]))
        with pytest.raises(MicrotronError, match=r"layers.json on .* is another file than"):
            exact_cycles([task], PRESETS["small"], memory, records)
        assert exact_cycles([task], config, memory, records) == sum(alone)      # it is known


def test_searchers_share_a_study(areas, tmp_path):
    layers = [StreamLayer(Dense(rows=4, inputs=64, outputs=width)) for width in (16, 64)]
    task = Task(tmp_path, 1.0, "", (tuple(layers),))
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    found = []
    for seed, trials in ((1, 12), (2, 24)):
        question = Question(tasks=[task], memory=MemoryTiming(), seed=seed,
                            budget=Budget(find_board("ulx3s"), areas))
        found.append(Exploration(question))
        search(found[-1], trials=trials, storage=storage)
    first, second = found
    assert (first.trials, second.trials) == (12, 12)
    assert first.predicted.items() <= second.predicted.items()
    assert len(second.predicted) > len(first.predicted)
    other = Exploration(replace(question, objectives=("latency", "lut")))
    search(other, trials=4, storage=storage)            # a study of its own
    assert other.trials == 4


def test_presets_are_the_first_trials(areas, tmp_path):
    task = Task(tmp_path, 1.0, "", ((StreamLayer(Dense(rows=4, inputs=64, outputs=16)),),))
    found = Exploration(Question(tasks=[task], memory=MemoryTiming(),
                                 budget=Budget(find_board("ulx3s"), areas)))
    search(found, trials=len(PRESETS))
    located = {config for config in PRESETS.values() if locate_config(config) is not None}
    assert PRESETS["small"] in located
    assert PRESETS["small"] in found.predicted
    for config in located:
        assert choose_config(locate_config(config)) == config


@pytest.fixture(scope="module")
def explored(areas, tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    areas.save(folder / "area.json")
    arguments = ("explore", DIGITS, "--board", "ulx3s", "--budget", "16", "--finalists", "2",
                 "--area-model", folder / "area.json", "-o", folder / "front", "--seed", "1")
    return folder, arguments, command(*arguments, "--baseline", "tiny", "--json", "--report",
                                      folder / "front.html")


def test_every_point_of_a_front_fits_and_is_exact(explored):
    import microtron

    folder, _, ended = explored
    assert ended.code == 0, ended.error
    found = json.loads(ended.out)
    assert (found["trials"], found["exact"]) == (16, 3)         # with the baseline, which fits
    assert found["gains"][0].startswith("baseline: ")
    board = find_board("ulx3s")
    with (folder / "front/front.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found["front"]) > 0
    for row in rows:
        config = load_config(folder / "front" / row["file"])
        check_fits(board, config)
        assert config.bus_bits == 64            # as its memory was measured
        assert {name: int(row[f"config_{name}"]) for name in config.to_dict()} == config.to_dict()
    model = microtron.compile(DIGITS, load_config(folder / "front" / rows[0]["file"]),
                              memory=board.memory.timing)
    assert sum(microtron.simulate(each, memory=board.memory.timing).cycles
               for each in model.programs) == int(rows[0]["cycles"])
    planned = command("build", "--board", "ulx3s", "--config", folder / "front" / rows[0]["file"],
                      "--dry-run")
    assert planned.code == 0, planned.error
    assert "synthesis: yosys" in planned.out
    picture = ET.parse(folder / "front/front.svg").getroot()
    assert len(picture.findall(".//{*}circle")) == found["predicted"] + found["exact"] + len(rows)
    summary = json.loads((folder / "front/exploration.json").read_text())
    assert summary["rejected"] == found["rejected"]
    assert summary["rejected"].keys() == summary["examples"].keys()


def test_the_report_shows_the_points_of_the_search(explored):
    folder, _, ended = explored
    found = json.loads(ended.out)
    text = (folder / "front.html").read_text(encoding="utf-8")
    shown = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["pareto"]
    assert (shown["trials"], shown["fit"]) == (found["trials"], found["predicted"])
    assert {reason: times for reason, times, _ in shown["rejected"]} == found["rejected"]

    def facts(kind):
        return [{"cycles": each["latency"], **{name: each[name] for name in KINDS}}
                for each in shown["points"] if each["kind"] == kind]
    front = [{name: each[name] for name in ("cycles", *KINDS)} for each in found["front"]]
    assert sorted(facts("front"), key=lambda each: each["cycles"]) == front
    assert facts("baseline") == [found["baseline"]]
    behind = found["baseline"] not in front
    assert len(facts("exact")) == found["exact"] - len(front) - behind
    for each in shown["points"]:
        if each["kind"] == "front":
            config = load_config(folder / "front" / each["name"])
            assert dict(zip(shown["fields"], each["config"], strict=True)) == config.to_dict()


def test_the_same_seed_finds_the_same_and_simulates_nothing_again(explored, monkeypatch):
    from microtron.explore.codesign import workload

    _, arguments, ended = explored
    compiled = []
    real = workload._compile
    monkeypatch.setattr(workload, "_compile",
                        lambda *given: compiled.append(given) or real(*given))
    again = command(*arguments, "--baseline", "tiny", "--json")
    assert json.loads(again.out)["front"] == json.loads(ended.out)["front"]
    assert len(compiled) == 1                   # to see the layers


@pytest.mark.parametrize(("arguments", "message"), [
    (("--board", "ulx3"), "ulx3"),
    (("--board", "ulx3s", "--objective", "latency,luts"), "objective is 'luts'"),
    (("--board", "ulx3s", "--objective", "lut"), "must name latency"),
    (("--board", "ulx3s", "--weights", "1,2"), "2 weights, but 1 networks"),
    (("--board", "ulx3s", "--weights", "none"), "weights are 'none'"),
    (("--board", "ulx3s", "--budget", "soon"), "budget is 'soon'"),
    (("--board", "ulx3s", "--baseline", "tinny"), "tinny"),
    (("--board", "ulx3s", "--study", "study.db"), "--study is 'study.db', which Optuna cannot"),
    (("--board", "ulx3s", "-o", DIGITS), "must be a folder, or a name for one"),
    (("--board", "ulx3s", "--report", "front.txt"), "a report is an .html file"),
    (("--board", "ulx3s", "-o", DIGITS / "front"), "cannot be made a folder: Not a directory"),
    (("--board", "tang_nano_20k"), "areas are not known for its parts, only for those of ecp5"),
])
def test_the_command_refuses_bad_input_in_one_line(explored, tmp_path, arguments, message):
    folder, _, _ = explored
    assert message in bad("explore", DIGITS, "--area-model", folder / "area.json", "-o",
                          tmp_path / "front", *arguments)
