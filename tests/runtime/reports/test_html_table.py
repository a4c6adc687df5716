"""Tables for notebooks: the numbers of the API, and names that stay text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import microtron
from microtron.base.checked_values import printable
from microtron.base.notebooks.figure import has_matplotlib
from microtron.base.notebooks.html_table import MOST_ROWS, html_table
from microtron.runtime.reports.layers import inspect_model
from microtron.runtime.reports.units import abbreviate

from ..small_model import image, small_graph

HOSTILE = "</td><script>alert(1)</script>"


class Tags(HTMLParser):
    """The tags of a text, which must close as they opened."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open = set(), []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def cells(text):
    return [unescape(each) for each in re.findall(r"<t[dh]>(.*?)</t[dh]>", text)]


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), "tiny")


def test_notebooks_show_where_the_nodes_of_a_model_run(model):
    found = cells(model._repr_html_())
    for node in model.nodes:
        assert node.title in found
    for node in model.host_nodes:
        assert node.reason in found
    assert {"input", "image", "output", "real", "conv"} <= set(found)


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_notebooks_show_the_outputs_of_a_result(model, device):
    result = model.run(image(), device)
    text = result._repr_html_()
    assert (f"{result.cycles:,} cycles" in text) == (device == "cycle") if result.cycles else (
        "cycles" not in text)
    conv = result["conv"]
    assert f"{conv.min()} to {conv.max()}" in cells(text)
    assert " ".join(map(str, conv.ravel()[:8])) + " …" in cells(text)


def test_notebooks_show_reports_and_profiles(model):
    report = microtron.simulate(model.programs[0])
    assert {f"{report.cycles:,}", f"{report.macs:,}", *report.counters} <= set(
        cells(report._repr_html_()))
    found = microtron.profile(model.programs[0])
    for each in found.engines:
        assert {each.engine, f"{each.working:,}", f"{each.memory:,}"} <= set(
            cells(found._repr_html_()))


def test_notebooks_show_what_layers_cost_and_why_they_run_there(model):
    found = inspect_model(model)
    text = found._repr_html_()
    shown = cells(text)
    for cost in found.layers:
        if cost.cycles is not None:
            assert {cost.node.title, abbreviate(cost.cycles)} <= set(shown)
    assert f"{found.cycles:,} cycles" in text
    assert all(each.reason in shown for each in found.model.host_nodes)


def test_the_roofline_has_every_layer_under_its_roof(model):
    found = inspect_model(model)
    roof, *layers = found.roofline()
    shown = {name: place for each in layers
             for name, *place in zip(each.labels, each.xs, each.ys, strict=True)}
    wanted = {cost.node.name: [cost.node.macs / cost.bytes, cost.node.macs / cost.cycles]
              for cost in found.layers if cost.cycles and cost.node.macs}
    assert shown == wanted != {}
    for x, y in shown.values():
        assert roof.xs[0] < x < roof.xs[-1]
        assert y <= np.interp(np.log(x), np.log(roof.xs), roof.ys) * 1.001
    if has_matplotlib():
        assert len(found.plot().get_lines()) == 1 + len(layers)
    else:
        with pytest.raises(microtron.MicrotronError, match="need matplotlib"):
            found.plot()


@pytest.mark.parametrize("name", [HOSTILE, '"><img src=x onerror=alert(1)>', "<!--", "&lt;b&gt;",
                                  "\x1b[31m", "a\nb", "\u202e", "x" * 10_000])
def test_names_stay_text_wherever_they_come_from(model, name):
    hostile = replace(
        model, name=name, inputs={name: model.inputs["image"]},
        nodes=tuple(replace(each, origin=name, operator=name, reason=name)
                    for each in model.nodes))
    found = inspect_model(model)
    result = model.run(image(), "functional")
    shown = [hostile, replace(found, model=hostile, layers=tuple(
                 replace(each, node=node)
                 for each, node in zip(found.layers, hostile.nodes, strict=True))),
             replace(result, device=name, outputs={name: result["conv"]},
                     types={name: result.types["conv"]}),
             replace(found.reports[0], name=name, device=name, counters={name: 1}),
             replace(microtron.profile(model.programs[0]),
                     report=replace(found.reports[0], name=name))]
    for each in shown:
        text = each._repr_html_()
        assert Tags(text).seen == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert printable(name) in unescape(text)
        assert "\x1b" not in text


def test_tables_end():
    rows = [[number] for number in range(MOST_ROWS + 7)]
    text = html_table("long", ["n"], rows)
    assert text.count("<tr>") == MOST_ROWS + 2
    assert "… 7 more" in text
