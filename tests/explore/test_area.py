"""Areas: units are cut out alike, synthesized once, and what they add up to can be learned."""

import json
import math
import re
from dataclasses import replace

import pytest

from microtron import MicrotronError
from microtron.explore.area import area_dataset, synthesis
from microtron.explore.area.area_counts import KINDS, area_features
from microtron.explore.area.area_dataset import AreaDesign, area_rows, collect_areas
from microtron.explore.area.area_model import (
    SHIPPED,
    AreaRow,
    fit_area,
    load_area_model,
    read_areas,
    shipped_area_model,
)
from microtron.explore.area.netlist import Unit, split_units
from microtron.explore.area.synthesis import measure_area, run_yosys
from microtron.explore.records import Records, State
from microtron.explore.sampling import CENTRES, STAR_VALUES, sample_configs, star_configs
from microtron.isa.config import PRESETS
from microtron.runtime.reports.table_files import write_rows
from tests.command import bad

CHILD = r"""
  wire width 1 input 0 \clk
  wire width 4 output 1 \value$%d
  cell \%s \inner
  end
"""
DESIGN = r"""
attribute \top 1
module \top
  cell \top.accelerator \accelerator
  end
end
module \top.accelerator
  cell \top.accelerator.lanes \lanes
  end
end
module \top.accelerator.lanes
  cell \top.accelerator.lanes.lane_0 \lane_0
  end
  cell \top.accelerator.lanes.lane_1 \lane_1
  end
end
module \top.accelerator.lanes.lane_0""" + CHILD % (7, "top.accelerator.lanes.lane_0.deep") + r"""end
module \top.accelerator.lanes.lane_0.deep
  wire width 8 \sum$9
end
module \top.accelerator.lanes.lane_1""" + (
    CHILD % (21, "top.accelerator.lanes.lane_1.deep")) + r"""end
module \top.accelerator.lanes.lane_1.deep
  wire width 8 \sum$30
end
"""


def test_equal_units_have_equal_text_and_others_are_black_boxes():
    units = split_units(DESIGN)
    assert list(units) == ["top.accelerator", "top.accelerator.lanes",
                           "top.accelerator.lanes.lane_0", "top.accelerator.lanes.lane_1"]
    lane = units["top.accelerator.lanes.lane_0"]
    assert lane == units["top.accelerator.lanes.lane_1"]
    assert lane.text.count("module") == 2           # with what is inside
    lanes = units["top.accelerator.lanes"]
    assert lanes.text.count("attribute \\blackbox 1") == 2
    assert lanes.text.count("wire width 4 output 1") == 2       # ports stay
    assert "deep" not in lanes.text


ADDER = r"""
module \unit0
  wire width 8 input 0 \a
  wire width 8 input 1 \b
  wire width 1 input 2 \clk
  wire width 8 output 3 \sum
  wire width 8 \next
  cell $add $1
    parameter \A_SIGNED 0
    parameter \B_SIGNED 0
    parameter \A_WIDTH 8
    parameter \B_WIDTH 8
    parameter \Y_WIDTH 8
    connect \A \a
    connect \B \b
    connect \Y \next
  end
  cell $dff $2
    parameter \WIDTH 8
    parameter \CLK_POLARITY 1
    connect \CLK \clk
    connect \D \next
    connect \Q \sum
  end
end
"""


@pytest.mark.parametrize(("family", "register"), [("ecp5", "TRELLIS_FF"), ("xc7", "FDRE")])
def test_yosys_counts_the_cells_of_a_unit(family, register):
    pytest.importorskip("pyosys")
    assert run_yosys(Unit(ADDER, "unit0"), family)[register] == 8


@pytest.mark.parametrize(("family", "times"), [("ecp5", 1), ("xc7", 0)])
def test_luts_of_a_unit_are_merged_as_in_builds(family, times, monkeypatch):
    pytest.importorskip("pyosys")
    merged = []
    monkeypatch.setattr(synthesis, "save_luts", merged.append)
    run_yosys(Unit(ADDER, "unit0"), family)
    assert len(merged) == times


def test_a_unit_is_synthesized_once_and_areas_are_recorded(tmp_path, monkeypatch):
    runs = []

    def count(unit, family, place):
        runs.append(unit.text)
        return {"LUT4": 10, "CCU2C": 3, "TRELLIS_FF": 5, "MULT18X18D": 2, "DP16KD": 1}

    monkeypatch.setattr(synthesis, "tool_digest", lambda family: "0" * 16)
    monkeypatch.setattr(synthesis, "run_yosys", count)
    monkeypatch.setattr(synthesis, "_elaborate", lambda config, family: split_units(DESIGN))
    configs = [PRESETS["tiny"], replace(PRESETS["tiny"], queue_depth=4)]
    with Records(tmp_path / "r") as records:
        first = measure_area(records, configs[0], "ecp5")
        assert [first[kind] for kind in KINDS] == [4 * 16, 20, 8, 4]
        assert len(runs) == 3                       # two lanes are one
    monkeypatch.setattr(area_dataset, "area_question", synthesis.area_question)
    design = AreaDesign(configs, ["ecp5"])
    assert collect_areas(tmp_path / "r", design) == 1
    assert collect_areas(tmp_path / "r", design) == 0
    assert len(runs) == 3
    rows, failed = area_rows(tmp_path / "r", design)
    assert not failed
    assert [row["lut"] for row in rows] == [64, 64]
    with Records(tmp_path / "r") as records:
        assert {each.state for each in records} == {State.VALID}
    write_rows(tmp_path / "areas.csv", rows)
    assert [row.config for row in read_areas([tmp_path / "areas.csv"])] == configs


def test_a_unit_that_takes_too_long_is_recorded_and_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr(synthesis, "tool_digest", lambda family: "0" * 16)
    monkeypatch.setattr(synthesis, "LIMITED", synthesis.LIMITED.replace(
        synthesis.SCRIPT, "while True: pass"))
    monkeypatch.setattr(synthesis, "UNIT_SECONDS", 1)
    monkeypatch.setattr(synthesis, "_elaborate", lambda config, family: split_units(DESIGN))
    design = AreaDesign([PRESETS["tiny"]], ["ecp5"])
    assert collect_areas(tmp_path / "r", design) == 1
    assert collect_areas(tmp_path / "r", design) == 0
    rows, [failed] = area_rows(tmp_path / "r", design)
    assert not rows
    assert failed == ("top.accelerator takes more than 1 s of processor time to synthesize")


def test_what_would_fit_no_board_is_left_out_of_samples():
    pytest.importorskip("scipy")
    tiny = PRESETS["tiny"]
    many = replace(tiny, block_in=16, block_out=16, wgt_bytes=1 << 16)      # 64 lanes' multipliers
    large = replace(tiny, wgt_bytes=1 << 19)
    design = AreaDesign([large], ["ecp5", "xc7"], [large, tiny, many])      # as it was asked for
    assert list(design.questions()) == [(large, "ecp5"), (large, "xc7"), (tiny, "ecp5"),
                                        (tiny, "xc7"), (many, "xc7")]
    assert list(design.questions(3)) == list(design.questions())[:3]
    found = AreaDesign([], ["ecp5", "xc7"], [tiny, many, large]).rejected
    assert [each[:2] for each in found] == [(many, "ecp5"), (large, "ecp5")]
    assert re.fullmatch(r"about 192 multipliers, but LFE5U\w*-85F has 156", found[0][2])
    assert re.fullmatch(r"about 280 blocks of RAM, but LFE5U\w*-85F has 208", found[1][2])


def test_stars_differ_from_a_centre_in_one_field_and_mixes_in_many():
    found = star_configs(120)
    assert len(set(found)) == 120
    assert star_configs(40) == found[:40]
    assert [config for config in found if config in CENTRES] == list(CENTRES)
    distances = [min(sum(getattr(config, name) != getattr(centre, name) for name in STAR_VALUES)
                     for centre in CENTRES) for config in found]
    assert max(distances[:20]) == 1
    assert sum(distance > 3 for distance in distances) > 30
    for config, distance in zip(found, distances, strict=True):
        assert distance <= 1 or (config.macs_per_cycle <= 256 and config.alu_lanes <= 16)


def synthetic(configs):
    """Areas that follow from counts by a rule."""
    rows = []
    for config in configs:
        counts = area_features(config, "ecp5")
        area = {kind: sum((2 + len(name)) * count for name, count in counts[kind].items())
                for kind in KINDS[:2]}
        area |= {kind: sum(counts[kind].values()) for kind in KINDS[2:]}
        rows.append(AreaRow(config, "ecp5", area))
    return rows


def test_a_model_finds_what_areas_are_made_of(tmp_path):
    pytest.importorskip("scipy")
    model = fit_area(synthetic(sample_configs(80, 0)))
    assert all(model.errors["ecp5"][kind]["median"] < 0.01 for kind in KINDS)
    [unseen] = synthetic(sample_configs(1, 5))
    predicted = model.predict(unseen.config, "ecp5")
    assert predicted == pytest.approx(unseen.area, rel=0.02)
    model.save(tmp_path / "model.json")
    assert load_area_model(tmp_path / "model.json").predict(unseen.config, "ecp5") == predicted


def test_the_shipped_model_is_near_what_was_measured():
    """Multipliers and blocks as boards/facts/areas.toml has them, LUTs nearly."""
    pytest.importorskip("scipy")
    for name, lut, dsp, bram in (("mini", 13461, 6, 6), ("tiny", 16731, 24, 14),
                                 ("small", 21084, 48, 48), ("slim", 27496, 144, 91)):
        predicted = shipped_area_model().predict(PRESETS[name], "xc7")
        assert predicted["dsp"] == dsp
        assert predicted["bram"] == pytest.approx(bram, rel=0.02)
        assert predicted["lut"] == pytest.approx(lut, rel=0.08)


def test_a_design_that_the_model_has_not_seen_is_as_large_as_it_says():
    """32 × 4 with eight banks, windows and tables, as a build for the PYNQ-Z2 synthesized it
    (2026-11-19), less the shell."""
    pytest.importorskip("scipy")
    config = replace(PRESETS["tiny"], block_in=32, uop_bytes=8192, inp_bytes=1 << 16,
                     wgt_bytes=1 << 16, acc_bytes=1 << 17, out_bytes=8192, acc_banks=8,
                     queue_depth=4, reads_in_flight=32, writes_in_flight=16, vector_cycles=2,
                     out_readers=2, window_taps=3, cycles_only=0, tables=8)
    predicted = shipped_area_model().predict(config, "xc7", 220)
    assert (predicted["dsp"], predicted["bram"]) == (84, 76)
    assert predicted["lut"] == pytest.approx(22628 - 1267, rel=0.08)
    assert predicted["register"] == pytest.approx(17292 - 206, rel=0.08)


@pytest.mark.parametrize(("fields", "lut", "dsp", "bram", "near"), [
    ({"block_in": 32, "block_out": 2, "uop_bytes": 8192, "inp_bytes": 8192, "acc_bytes": 4096,
      "reads_in_flight": 32, "vector_cycles": 2}, 17675, 36, 9, 0.05),
    ({"block_in": 8, "block_out": 8, "uop_bytes": 8192, "inp_bytes": 8192, "wgt_bytes": 8192,
      "acc_bytes": 16384, "reads_in_flight": 4, "writes_in_flight": 16, "vector_cycles": 4,
      "window_taps": 3}, 19482, 64, 21, 0.12),
    ({"block_in": 16, "block_out": 16, "uop_bytes": 16384, "inp_bytes": 32768, "wgt_bytes": 16384,
      "acc_bytes": 65536, "out_bytes": 8192, "reads_in_flight": 8, "vector_cycles": 4,
      "window_taps": 3}, 33735, 192, 38, 0.2)])
def test_memories_of_64_words_are_in_luts_on_xilinx(fields, lut, dsp, bram, near):
    """Designs with one bank and tables, as builds for the PYNQ-Z2 synthesized them with the shell
    (2026-11-19). Weights are 64 words of the first and the last, 128 of the other."""
    pytest.importorskip("scipy")
    config = replace(PRESETS["tiny"], acc_banks=1, queue_depth=4, out_readers=1, tables=8, **fields)
    predicted = shipped_area_model().predict(config, "xc7", 220)
    assert (predicted["dsp"], predicted["bram"]) == (dsp, bram)
    assert predicted["lut"] == pytest.approx(lut - 1267, rel=near)


def test_blocks_and_multipliers_are_those_of_every_synthesis():
    for row in read_areas([SHIPPED]):
        counts = area_features(row.config, row.family)
        assert sum(counts["dsp"].values()) == row.area["dsp"]
        assert sum(counts["bram"].values()) == pytest.approx(row.area["bram"], rel=0.03)


@pytest.mark.parametrize(("text", "message"), [
    ("{}", "not an area model"), ("nothing", "not JSON"),
    (json.dumps({"format": "microtron area model", "version": 1, "weights": {"ecp5": {}}}),
     "not an area model"),
    *((json.dumps({"format": "microtron area model", "version": 1, "weights": {
        "ecp5": {kind: {"once": weight} for kind in KINDS}}}), "not an area model")
      for weight in (math.nan, math.inf, 10 ** 400, True, "1")),
])
def test_a_file_that_is_no_model_is_refused(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(MicrotronError, match=message):
        load_area_model(path)


@pytest.mark.parametrize(("column", "value", "message"), [
    ("asked", "{}", "row 1: not a row of microtron dataset --area"),
    ("asked", '{"kind":"area","family":"ecp6","config":{}}', "row 1: family is 'ecp6'"),
    ("lut", -3, "row 1: family is 'ecp5' and the area"),
    ("dsp", "many", "row 1: not a row"),
])
def test_a_row_that_cannot_be_is_named(tmp_path, column, value, message):
    row = {"asked": '{"kind":"area","family":"ecp5","config":{}}', **dict.fromkeys(KINDS, 5)}
    write_rows(tmp_path / "a.csv", [{**row, column: value}])
    with pytest.raises(MicrotronError, match=message):
        read_areas([tmp_path / "a.csv"])


@pytest.mark.parametrize(("arguments", "message"), [
    (("--area", "ecp6"), "--area is 'ecp6', but must be one of ecp5, xc7 (did you mean ecp5?)"),
    (("--area", "xc7", "--random-layers", "4"), "leave out --random-layers"),
])
def test_the_command_refuses_bad_input_in_one_line(tmp_path, arguments, message):
    assert message in bad("dataset", str(tmp_path / "a.csv"), *arguments)
