"""The report in a browser: it shows the right numbers, and people can move in it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import microtron
from microtron.isa.assembly.disassembler import format_instruction
from microtron.isa.config import tiny
from microtron.isa.instructions import ISA
from microtron.isa.stream import decode
from microtron.report.extra_table import ExtraTable
from microtron.report.save_report import save_report, write_report
from microtron.runtime.models.model import Model
from microtron.runtime.reports.layers import inspect_model
from microtron.runtime.reports.token_pairs import tokens_of
from microtron.testing.browser import find_chromium, open_browser
from microtron.testing.random_programs import random_program

from ..runtime.small_model import small_graph
from .test_report_data import HOSTILE

pytestmark = pytest.mark.skipif(find_chromium() is None,
                                reason="there is no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def found():
    return inspect_model(microtron.compile(small_graph(), "tiny"))


@pytest.fixture
def show(browser, tmp_path):
    """Opens a report; at the end, nothing may have gone wrong in it, or been asked for."""
    pages = []

    def open_report(runs, tables=(), **options):
        path = tmp_path / f"report{len(pages)}.html"
        pages.append(path.as_uri())
        write_report(runs, path, tables=tables)
        browser.open(path, **options)
        browser.wait_for("typeof report !== 'undefined' && report.ready")
        return browser

    yield open_report
    assert browser.errors == []
    assert [each for each in browser.requests if each not in pages] == []
    browser.requests.clear()


def texts(browser, selector):
    return browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})]"
                            f".map((each) => each.textContent)")


def test_the_page_shows_the_numbers_of_the_api(show, found):
    browser = show({"small": found})
    totals = found.totals()
    shown = browser.evaluate("Object.fromEntries([...document.querySelectorAll('[data-figure]')]"
                             ".map((each) => [each.dataset.figure, "
                             "each.querySelector('b').textContent]))")
    assert shown["cycles"] == f"{totals['cycles']:,}"
    assert shown["instructions"] == f"{totals['instructions']:,}"
    assert shown["accelerator_utilization"] == f"{totals['accelerator_utilization']:.1%}".replace(
        "%", " %")
    assert shown["cpu_nodes"] == f"{totals['cpu_nodes']} of {totals['nodes']}"
    rows = browser.evaluate("[...document.querySelectorAll('#layer-table tbody tr')].map((row) => "
                            "[...row.cells].map((cell) => cell.textContent))")
    working = [each for each in found.layers if each.node.where.value in ("accelerator", "cpu")]
    assert len(rows) == len(working)
    for row, cost in zip(rows, working, strict=True):
        assert row[1].startswith(cost.node.title)
        assert cost.node.reason in row[1]
        if cost.cycles is not None:
            assert row[7] == f"{cost.cycles:,}"
            assert row[10] == f"{cost.bytes:,}"
    for section in ("summary", "network", "layers", "roofline", "timeline", "scratchpads",
                    "traffic"):
        assert browser.evaluate(f"document.getElementById('{section}') !== null"), section
    reasons = texts(browser, "g.node[data-where=cpu] title")
    assert all(any(each.reason in text for text in reasons) for each in found.model.host_nodes)


def test_headings_sort(show, found):
    browser = show({"small": found})
    column = "[...document.querySelectorAll('#layer-table tbody tr')].map((row) => " \
             "Number(row.cells[7].textContent.replaceAll(',', '')))"
    click = "[...document.querySelectorAll('#layer-table th button')]" \
            ".find((each) => each.textContent === 'cycles').click()"
    browser.evaluate(click)
    falling = browser.evaluate(column)
    assert falling == sorted(falling, reverse=True)     # what has none is zero here, and last
    browser.evaluate(click)
    rising = browser.evaluate(column)
    known = [each for each in falling if each]
    assert rising == [*reversed(known), *([0] * (len(rising) - len(known)))]
    assert len(known) > 1


@pytest.mark.parametrize("seed", [0, 5])
def test_instructions_and_tokens_are_those_of_the_program(show, seed):
    program = random_program(tiny, seed)
    browser = show({"random": inspect_model(_as_model(program))})
    shown = browser.evaluate("Array.from(report.timelines[0].events.place, (_, i) => "
                             "report.timelines[0].events.text(i))")
    assert shown == [format_instruction(each, program.segments) for each in decode(program.code)]
    pairs = browser.evaluate(
        "Array.from(report.timelines[0].events.place, (_, i) => i).flatMap((i) => "
        "report.timelines[0].events.tokensOf(i).from.map((each) => [each, i]))")
    back = browser.evaluate(
        "Array.from(report.timelines[0].events.place, (_, i) => i).flatMap((i) => "
        "report.timelines[0].events.tokensOf(i).to.map((each) => [i, each]))")
    wanted = sorted([each.poster, each.taker] for each in tokens_of(program))
    assert sorted(pairs) == sorted(back) == wanted


def _as_model(program):
    from microtron.report.programs import model_of_program
    return model_of_program(program, "random")


def test_every_kind_of_instruction_was_looked_at():
    kinds = {type(each) for seed in (0, 5) for each in decode(random_program(tiny, seed).code)}
    assert kinds == {kind for kind in ISA if kind in tiny.instructions}


@pytest.mark.parametrize("way", ["keys", "mouse"])
def test_people_zoom_from_the_network_to_one_instruction(show, found, way):
    browser = show({"small": found})
    timeline = "report.timelines[0]"
    whole = browser.evaluate(f"{timeline}.end - {timeline}.start")
    assert whole == pytest.approx(max(1, browser.evaluate(f"{timeline}.events.cycles")))
    browser.evaluate(f"{timeline}.canvas.scrollIntoView()")
    if way == "keys":
        browser.evaluate(f"{timeline}.canvas.focus()")
        for key in ("+", "n", "Enter"):
            browser.press(key)
    else:
        # The middle of a gemm, where it is drawn now.
        x, y = browser.evaluate(
            f"(() => {{ const t = {timeline}, b = t.drawing().box(t.events.tracks[1].item[0]),"
            f" c = t.canvas.getBoundingClientRect();"
            f" return [c.x + (b.left + b.right) / 2, c.y + b.top + b.height / 2]; }})()")
        browser.click(x, y)
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-480)
        zoomed = browser.evaluate(f"{timeline}.end - {timeline}.start")
        assert zoomed == pytest.approx(whole / 4)
        browser.evaluate(f"{timeline}.showAll()")
        browser.click(x, y, times=2)
    selected = browser.evaluate(f"{timeline}.selected")
    programs = found.model.programs
    code = [format_instruction(each, program.segments) for program in programs
            for each in decode(program.code)]
    assert code[selected].split(".")[0].split(" ")[0] in ("gemm", "window")
    start, end = browser.evaluate(f"{timeline}.spanOf({timeline}.selected)")
    first, last = browser.evaluate(f"[{timeline}.start, {timeline}.end]")
    assert first <= start <= end <= last
    assert last - first <= max(8, 2 * (end - start)) + 2
    assert code[selected] in browser.evaluate(f"{timeline}.details.textContent")
    if way == "keys":
        for key in ("n", "ArrowDown", "t", "-", "ArrowLeft", "Home"):
            browser.press(key)
        assert browser.evaluate(f"{timeline}.selected") != selected
        assert browser.evaluate(f"{timeline}.end - {timeline}.start") == pytest.approx(whole)


def test_names_stay_text(show, found):
    nodes = tuple(replace(each, origin=f"{HOSTILE}{number}")
                  for number, each in enumerate(found.model.nodes))
    fields = {**vars(found.model), "name": HOSTILE, "nodes": nodes,
              "provenance": {"model": HOSTILE, "sha256": HOSTILE}}
    table = ExtraTable(title=HOSTILE, about=HOSTILE, columns=(HOSTILE, "b"), bars=(1.0, 3.0),
                       rows=((HOSTILE, "1"), (HOSTILE, "2")))
    browser = show({HOSTILE: inspect_model(Model(**fields)), "other": found}, [table])
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("page.title") == f"{HOSTILE} and other"
    assert browser.evaluate("document.title").startswith("</script><img")
    assert any(HOSTILE in each for each in texts(browser, "#layer-table .name"))
    assert any(HOSTILE in each for each in texts(browser, "svg title"))
    assert texts(browser, "#table-0 tbody td") == [HOSTILE, "1", "", HOSTILE, "2", ""]
    assert browser.evaluate("[...document.querySelectorAll('#table-0 .bar span')]"
                            ".map((each) => parseFloat(each.style.width))") == pytest.approx(
        [100 / 3, 100], abs=0.01)


def test_runs_stand_side_by_side(show, found):
    small = microtron.compile(small_graph(), "small")
    other = inspect_model(small)
    browser = show({"tiny": found, "small": other}, dark=True)
    cells = browser.evaluate("[...document.querySelector('#comparison tbody tr').cells]"
                             ".map((each) => each.textContent)")
    assert cells[1] == f"{found.cycles:,}"
    assert cells[2].startswith(f"{other.cycles:,} (")
    assert browser.evaluate("report.timelines.length") == 2
    browser.evaluate("report.timelines[0].zoom(0.5)")
    assert browser.evaluate("report.timelines[0].end") == browser.evaluate(
        "report.timelines[1].end")
    is_dark = "document.documentElement.classList.contains('dark')"
    assert browser.evaluate(is_dark)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not browser.evaluate(is_dark)
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(is_dark)
    browser.evaluate("document.getElementById('theme').click()")
    assert not browser.evaluate("document.documentElement.classList.contains('dark')")
    assert texts(browser, ".run-name") == ["tiny"]
    browser.evaluate("(() => { const choice = document.getElementById('choose-run'); "
                     "choice.value = 1; choice.dispatchEvent(new Event('change')); })()")
    browser.wait_for("document.querySelector('.run-name').textContent === 'small'")
    assert f"{other.cycles:,}" in texts(browser, "[data-figure=cycles] b")


def test_a_network_without_the_accelerator_is_shown(show, tmp_path):
    from microtron.compiler.graph.builder import Builder
    from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
    from microtron.compiler.graph.types import TensorType

    builder = Builder("floats")
    builder.input("x", TensorType((4,), "float32"))
    builder.add("y", Unary(kind=UnaryKind.EXP, x="x"))
    model = microtron.compile(builder.graph(("y",)), "tiny")
    browser = show({"floats": inspect_model(model)})
    assert texts(browser, "[data-figure=cycles] b") == ["0"]
    assert "Scratchpads" not in texts(browser, "h2")
    save_report(model, tmp_path / "floats.html")
