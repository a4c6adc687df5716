"""Fronts and plots in a browser: the numbers are those of the search, and people can move in it."""

from __future__ import annotations

import json

import pytest

from microtron.base.notebooks.svg_plot import Series
from microtron.isa.config import PRESETS
from microtron.report.extra_plot import ExtraPlot
from microtron.report.pareto import MOST_PREDICTED, Pareto, ParetoPoint
from microtron.report.save_report import write_report
from microtron.testing.browser import find_chromium, open_browser

from .test_report_data import HOSTILE

FRONT = [(1000.0, 50.0, 8.0), (2000.0, 40.0, 0.0), (3000.0, 45.0, 4.0), (40000.0, 10.0, 4.0)]


def point(kind, name, cycles, lut, dsp, preset="tiny"):
    return ParetoPoint(kind=kind, name=name, config=PRESETS[preset], cycles=cycles,
                       area={"lut": lut, "dsp": dsp})


def search(predicted=3):
    points = [point("predicted", HOSTILE, 900.0 + number, 60.0, 1.0) for number in range(predicted)]
    points += [point("exact", "beaten", 50000.0, 60.0, 9.0)]
    points += [point("front", f"point_{number:02d}.toml", *each)
               for number, each in enumerate(FRONT, 1)]
    points += [point("baseline", "small", 2000.0, 80.0, 16.0, "small")]
    return Pareto(board="board", mhz=50.0, objectives=("latency", "lut", "dsp"), trials=99,
                  points=points, rejected=[(HOSTILE, 7, "an example")])


def test_no_more_predictions_are_drawn_than_a_page_bears():
    data = search(3 * MOST_PREDICTED + 1).to_dict()
    kinds = [each["kind"] for each in data["points"]]
    assert MOST_PREDICTED / 2 <= kinds.count("predicted") <= MOST_PREDICTED
    assert (kinds.count("front"), kinds.count("exact"), kinds.count("baseline")) == (4, 1, 1)
    assert data["left_out"] + len(kinds) == 3 * MOST_PREDICTED + 1 + 6
    assert search(3).to_dict()["left_out"] == 0


@pytest.fixture(scope="module")
def browser():
    if find_chromium() is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "front.html"
    plot = ExtraPlot(title="Calibration", about="", x="predicted", y="ratio", log_x=True, level=1.0,
                     series=[Series("90 %", [10, 100, 1000], [0.8, 0.9, 0.9], "band", [1, 2, 3]),
                             Series("median", [10, 100, 1000], [0.9, 1.0, 1.1], "line"),
                             Series("dots", [10], [1.0], labels=[HOSTILE])])
    write_report({}, path, "search", pareto=search(), plots=[plot])
    browser.open(path)
    browser.wait_for("typeof report !== 'undefined' && report.ready")
    yield browser
    assert browser.errors == []
    assert browser.requests == [path.as_uri()]


def texts(page, selector):
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})]"
                         f".map((each) => each.textContent)")


def test_a_front_shows_the_numbers_of_the_search(page):
    cells = texts(page, "#front-table tbody td")
    assert [cells[row:row + 5] for row in range(0, len(cells), 5)] == [
        [f"point_{number:02d}.toml", f"{cycles:,.0f}", f"{cycles / 50_000:.3f}", f"{lut:.0f}",
         f"{dsp:.0f}"] for number, (cycles, lut, dsp) in enumerate(FRONT, 1)]
    assert texts(page, "#rejected tbody td") == [HOSTILE, "7", "an example"]
    assert len(texts(page, "#pareto-plot path.point")) == 6
    assert page.evaluate("document.querySelectorAll('img').length") == 0


def test_the_line_joins_what_is_best_in_the_axes_that_are_shown(page):
    points = "plotOf(page.pareto.points, report.pareto)" \
             ".series.find((each) => each.kind === 'steps').points.map((each) => each.name)"
    assert page.evaluate(points) == [f"point_{number:02d}.toml" for number in (4, 2, 1)]
    page.evaluate("(() => { const across = document.getElementById('pareto-x'); across.value = "
                  "'dsp'; across.dispatchEvent(new Event('change')); })()")
    assert page.evaluate(points) == [f"point_{number:02d}.toml" for number in (2, 1)]
    page.evaluate("(() => { const across = document.getElementById('pareto-x'); across.value = "
                  "'lut'; across.dispatchEvent(new Event('change')); })()")


def test_keys_walk_along_the_front_and_a_click_chooses_any_point(page):
    page.evaluate("document.getElementById('pareto-plot').focus()")
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "End", "ArrowLeft"):
        page.press(key)
        seen.append(page.evaluate("report.pareto.chosen.name")[6:8])
    assert seen == ["04", "02", "03", "01", "03"]       # by LUTs
    said = page.evaluate("document.getElementById('pareto-point').textContent")
    assert "3,000 cycles (1.500× the baseline)" in said
    assert f"batch = {PRESETS['tiny'].batch}" in said
    tiny, small = (PRESETS[name].block_in for name in ("tiny", "small"))
    assert f"block_in = {tiny} ({small})" in said       # the baseline's differs
    assert page.evaluate("document.querySelector('#front-table .chosen td').textContent") == (
        "point_03.toml")
    page.evaluate("document.getElementById('pareto-plot').scrollIntoView()")
    x, y = page.evaluate("(() => { const mark = [...document.querySelectorAll('#pareto-plot "
                         "path.point')].at(-1).getBoundingClientRect(); "
                         "return [mark.x + mark.width / 2, mark.y + mark.height / 2]; })()")
    page.mouse("mouseMoved", x, y)
    assert texts(page, "#pareto-plot .tip.shown") == [
        "small: 2,000 cycles, 80 LUTs, 16 multipliers"]
    page.click(x, y)
    assert page.evaluate("report.pareto.chosen.kind") == "baseline"


def test_a_plot_has_its_series_and_names_stay_text(page):
    assert [each.strip() for each in texts(page, "#plot-0 .legend > span")] == [
        "90 %", "median", "dots"]
    assert texts(page, "#plot-0 h2") == ["Calibration"]
    heights = page.evaluate("[...document.querySelectorAll('#plot-0 svg path.point, #plot-0 "
                            "line[stroke-dasharray]')].map((each) => each.getBBox().y + "
                            "each.getBBox().height / 2)")
    assert heights[0] == pytest.approx(heights[1], abs=1.5)     # a dot at 1.0, on the level
