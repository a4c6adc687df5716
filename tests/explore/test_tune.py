"""Tuning: searches find what is there, files hold it, and networks are faster with it."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from microtron import PRESETS, Conv2d, Dense, MicrotronError, compile, compile_op, load, simulate
from microtron.compiler.operators.catalogue import operator_of
from microtron.explore.features import steps_of
from microtron.explore.points import LayerPoint, Schedule, parse_config, parse_point
from microtron.explore.records import Records
from microtron.explore.schedule_files import (
    find_schedules,
    read_schedules,
    shipped_schedules,
    write_schedules,
)
from microtron.explore.search import Space, run_search
from microtron.explore.tune import (
    MOST_STEPS,
    LayerQuestion,
    Tuned,
    TunedLayer,
    TuneOptions,
    Tuner,
    compiler_choice,
    schedule_space,
)
from microtron.isa.memory_timing import MemoryTiming
from tests.command import bad, good
from tests.models import ROOT, model_path, needs_models

MEMORY = MemoryTiming()
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


@dataclass(frozen=True)
class Knobs:
    rows: int
    columns: int


@pytest.mark.parametrize("method", ["exhaustive", "anneal", "guided"])
def test_a_layer_of_one_schedule_is_measured_once(method):
    [schedule], asked = [Schedule(0, Knobs(1, 1))], []
    space = Space([schedule], np.ones(1), np.ones((1, 2), np.float32))

    def measure(some):
        assert some, "nothing to measure is not asked for"
        asked.extend(some)
        return [7.0] * len(some)
    assert run_search(method, space, measure, 8, 0, schedule) == {schedule: 7.0}
    assert asked == [schedule]


def test_forms_of_operators_alone_are_points_but_no_choice_of_a_network_s_layer():
    layer, config = Conv2d(height=8, width=8, channels_in=4, channels_out=4, pad=1), PRESETS["base"]
    alone = compile_op(layer, config)
    others = operator_of(layer).forms_of(layer, config)
    assert alone.form.number >= len(others)
    point = LayerPoint(layer, config, MEMORY, Schedule(alone.form.number, alone.knobs))
    assert parse_point(point.to_json()).form == alone.form
    assert compiler_choice(LayerQuestion(layer, config, MEMORY)).form < len(others)


def test_a_layer_of_many_steps_has_schedules_to_search():
    """What has more than MOST_STEPS is left out, unless the compiler's own choice has as many."""
    layer, config = Dense(rows=128, inputs=512, outputs=512), PRESETS["micro"]
    choice = compiler_choice(LayerQuestion(layer, config, MEMORY))
    steps = steps_of(LayerPoint(layer, config, MEMORY, choice))
    assert steps > MOST_STEPS
    space = schedule_space(LayerQuestion(layer, config, MEMORY), choice)
    found = [steps_of(LayerPoint(layer, config, MEMORY, each)) for each in space.schedules]
    assert len(found) > 1
    assert max(found) <= 2 * steps


def bowl():
    """A space with one valley, which estimates place somewhere else."""
    schedules = [Schedule(0, Knobs(rows, columns)) for rows in range(16) for columns in range(16)]
    places = np.array([(each.knobs.rows, each.knobs.columns) for each in schedules], np.float32)
    cycles = {each: 1000.0 + 10 * ((each.knobs.rows - 11) ** 2 + (each.knobs.columns - 3) ** 2)
              for each in schedules}
    expected = 1000.0 + 10 * ((places[:, 0] - 6) ** 2 + (places[:, 1] - 8) ** 2)
    return Space(schedules, expected.astype(float), places), cycles


@pytest.mark.parametrize(("method", "trials", "good_enough"), [
    ("exhaustive", 256, 1000.0), ("anneal", 128, 1200.0), ("guided", 64, 1100.0)])
def test_searches_find_the_valley_within_their_trials(method, trials, good_enough):
    if method == "guided":
        pytest.importorskip("xgboost")
    space, cycles = bowl()
    asked = []

    def measure(some):
        asked.extend(some)
        return [cycles[each] for each in some]
    known = run_search(method, space, measure, trials, 0, space.schedules[0])
    assert len(asked) == len(set(asked)) == len(known) == trials
    assert space.schedules[0] in known
    assert min(known.values()) <= good_enough
    again = run_search(method, space, lambda some: [cycles[each] for each in some], trials, 0,
                       space.schedules[0])
    assert list(again) == list(known)                   # a seed repeats


@pytest.mark.parametrize("method", ["exhaustive", "anneal", "guided"])
def test_searches_end_where_the_space_does_and_pass_over_what_cannot_run(method):
    if method == "guided":
        pytest.importorskip("xgboost")
    space, cycles = bowl()
    few = Space(space.schedules[:9], space.expected[:9], space.features[:9])
    known = run_search(method, few, lambda some: [
        float("inf") if each.knobs.columns % 2 else cycles[each] for each in some], 100, 0,
        few.schedules[4])
    assert len(known) == 9
    assert min(known, key=lambda each: known[each]).knobs.columns % 2 == 0


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """What the command found, the folder with its files, and a tuner that goes on from them."""
    folder = tmp_path_factory.mktemp("tuned")
    found = json.loads(good(
        "tune", DIGITS, "--config", "small", "--method", "exhaustive", "--trials", 4, "--streams",
        1, "-o", "s.json", "--report", "s.html", "--json", cwd=folder))
    options = TuneOptions(method="exhaustive", trials=4, streams=1)
    return folder, found, Tuner(DIGITS, PRESETS["small"], MEMORY, folder / "s.records", options)


@pytest.fixture(scope="module")
def layers(tuned):
    """Schedules of some layers, one for each."""
    folder = tuned[0]
    with Records(folder / "s.records") as records:
        points = [parse_point(each.asked) for each in records]
    return {point.layer: point.schedule for point in points}


def cycles_of(model):
    return sum(simulate(each, memory=MEMORY).cycles for each in model.programs)


def test_the_report_has_the_network_before_and_after(tuned):
    folder, found, _ = tuned
    text = (folder / "s.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert [(each["name"], each["totals"]["cycles"]) for each in data["runs"]] == [
        ("before tuning", found["before"]), ("tuned", found["after"])]
    [table] = data["tables"]
    assert [row[2] for row in table["rows"]] == [f"{each['before']:.0f}"
                                                 for each in found["layers"]]


def test_a_tuned_network_takes_the_cycles_that_were_found(tuned):
    folder, found, tuner = tuned
    assert len(read_schedules(folder / "s.json", tuner.config)) == found["kept"]
    good("compile", DIGITS, "--config", "small", "-o", "d.mt", "--schedules", "s.json", cwd=folder)
    assert found["after"] == cycles_of(load(folder / "d.mt")) <= found["before"]
    for each in found["layers"]:
        assert each["after"] <= each["before"]
        assert 1 <= each["trials"] <= 4


@pytest.mark.parametrize(("together", "apart", "kept"), [
    (900, {}, "abc"),                                   # all of them gain
    (1100, {"a": 950, "ab": 960, "ac": 940}, "ac"),     # one by one, on those kept before
    (1100, {"a": 1001, "b": 1000, "c": 1100}, ""),      # alone only
])
def test_only_what_makes_the_stream_faster_is_kept(tuned, monkeypatch, together, apart, kept):
    tuner = tuned[2]
    monkeypatch.setattr(tuner, "options", replace(tuner.options, streams=9))
    monkeypatch.setattr(tuner, "_compile", lambda schedules: "".join(sorted(schedules)))
    monkeypatch.setattr(tuner, "_cycles", lambda names: {**apart, "abc": together}[names])
    found = Tuned(1000, 1000, [
        TunedLayer(name, 1, 100, after, Schedule(0, Knobs(after, 0)), 1, 1)
        for name, after in (("b", 50), ("a", 40), ("c", 60), ("d", 100))])
    tuner._tune_stream(found)
    assert "".join(sorted(found.kept)) == kept
    assert found.after == ({**apart, "abc": together}[kept] if kept else 1000)


def test_nothing_is_measured_again(tuned, layers):
    folder, found, tuner = tuned
    with Records(folder / "s.records") as records:
        count = len(records)
    assert count == sum(each["trials"] for each in found["layers"])
    again = tuner.tune_layer(next(iter(layers)))
    assert (again.before, again.after) == (found["layers"][0]["before"],
                                           found["layers"][0]["after"])
    with Records(folder / "s.records") as records:
        assert len(records) == count


def test_a_schedule_that_is_given_is_used_or_refused(tuned, layers):
    _, _, tuner = tuned
    layer, first = next(iter(layers.items()))
    space = schedule_space(LayerQuestion(layer, tuner.config, MEMORY), first)
    worst = space.schedules[int(np.argmax(space.expected))]
    plain, slow = (compile(DIGITS, "small", memory=MEMORY, schedules=given, cost="estimate")
                   for given in (None, {layer: (worst.form, worst.knobs)}))
    assert cycles_of(slow) > cycles_of(plain)
    for given, message in (({layer: (99, worst.knobs)}, "form is 99, but must be from 0 to"),
                           ({layer: (0, 3)}, r"cannot be used: .*knobs are 3, but must be"),
                           ({replace(layer, width=99): (0, worst.knobs)},
                            "none of the 1 schedules is for a layer")):
        with pytest.raises(MicrotronError, match=message):
            compile(DIGITS, "small", schedules=given, cost="estimate")


@pytest.mark.parametrize(("change", "message"), [
    (lambda text: "[", "s.json: not a file of schedules: it is not JSON"),
    (lambda text: "{}", "s.json: not a file of schedules: it must be an object"),
    (lambda text: text.replace('"version": 1', '"version": 3'), "s.json: version is 3, but"),
    (lambda text: text.replace('"acc_banks": 4', '"acc_banks": 2'),
     "s.json: its schedules are for another configuration"),
    (lambda text: text.replace('"acc_banks": 4', '"acc_banks": 3'), "acc_banks is 3"),
    (lambda text: text.replace('"acc_banks": 4', '"acc_banks": 4.0'),
     r"s.json: config: acc_banks is 4.0, but"),
    (lambda text: text.replace('"form": 0', '"form": 9', 1), r"layer \d: .*form is 9"),
    (lambda text: text.replace('"form"', '"from"', 1), r"layer 0 is .*, but must have"),
    (lambda text: text.replace('"operator": "', '"operator": "x', 1), "layer 0: operator is 'x"),
])
def test_a_file_that_is_wrong_is_refused_in_one_line(layers, tmp_path, change, message):
    config = PRESETS["small"]
    write_schedules(tmp_path / "s.json", config, layers, {"before": 1})
    assert {layer: Schedule(*each) for layer, each in read_schedules(
        tmp_path / "s.json", config).items()} == layers
    (tmp_path / "s.json").write_text(change((tmp_path / "s.json").read_text()))
    with pytest.raises(MicrotronError, match=message) as error:
        read_schedules(tmp_path / "s.json", config)
    assert "\n" not in str(error.value)


def test_commands_refuse_bad_input_in_one_line(tmp_path):
    assert "none.onnx: cannot be read" in bad("tune", "none.onnx", cwd=tmp_path)
    assert "method is 'best', but must be one of auto" in bad(
        "tune", DIGITS, "--method", "best", "-o", "s.json", cwd=tmp_path)
    assert "must be a .json file" in bad("tune", DIGITS, "-o", "s.txt", cwd=tmp_path)
    assert "none.json: cannot be read" in bad(
        "compile", DIGITS, "-o", "d.mt", "--schedules", "none.json", cwd=tmp_path)
    assert "none/s.json: cannot be written: there is no folder" in bad(
        "tune", DIGITS, "-o", "none/s.json", cwd=tmp_path)
    assert "none/r.records: cannot be used as a store of records" in bad(
        "tune", DIGITS, "-o", "s.json", "--records", "none/r.records", cwd=tmp_path)
    assert not list(tmp_path.iterdir())



def shipped_facts(name):
    return json.loads(shipped_schedules()[name].read_text(encoding="utf-8"))


def test_schedules_that_come_with_microtron_are_found_by_name(tmp_path, monkeypatch):
    assert "resnet8_slim" in shipped_schedules()
    for name, path in shipped_schedules().items():
        facts = shipped_facts(name)
        found = read_schedules(find_schedules(Path(name)), parse_config(facts["config"]))
        assert len(found) == len(facts["layers"]) > 0
        assert facts["after"] < facts["before"]
        assert find_schedules(Path(name)) == path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resnet8_slim").touch()
    assert find_schedules(Path("resnet8_slim")) == Path("resnet8_slim")         # a file comes first
    assert find_schedules(Path("resnet9_slim")) == Path("resnet9_slim")


@pytest.mark.soak
@needs_models
@pytest.mark.parametrize("name", shipped_schedules())
def test_schedules_that_come_with_microtron_give_the_cycles_they_state(name, tmp_path, monkeypatch):
    facts = shipped_facts(name)
    network = tmp_path / facts["network"]
    if network.suffix == ".onnx":               # benchmarks generate it
        monkeypatch.syspath_prepend(ROOT / "benchmarks")
        from models.catalogue import MODELS
        MODELS[network.stem](network)
    else:
        network = model_path(facts["network"])
    config = parse_config(facts["config"])
    for given, cycles in ((None, "before"), (read_schedules(shipped_schedules()[name], config),
                                             "after")):
        model = compile(network, config, memory=MEMORY, schedules=given)
        assert cycles_of(model) == facts[cycles]
