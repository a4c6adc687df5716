"""Tables for notebooks: the numbers of the API, and names that stay text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import microtron
from microtron.runtime.reports.html_table import MOST_ROWS, html_table
from microtron.runtime.reports.layers import inspect_model
from microtron.runtime.reports.units import abbreviate

from ..small_model import small_graph

HOSTILE = "</td><script>alert(1)</script>"


def test_notebooks_show_what_layers_cost_and_why_they_run_there():
    found = inspect_model(microtron.compile(small_graph(), "tiny"))
    text = found._repr_html_()
    cells = [unescape(each) for each in re.findall(r"<td>(.*?)</td>", text)]
    for cost in found.layers:
        if cost.cycles is not None:
            assert {cost.node.title, abbreviate(cost.cycles)} <= set(cells)
    assert f"{found.cycles:,} cycles" in text
    assert all(each.reason in cells for each in found.model.host_nodes)


def test_names_stay_text_and_tables_end():
    model = microtron.compile(small_graph(), "tiny")
    hostile = replace(model, name=HOSTILE, nodes=tuple(
        replace(each, origin=HOSTILE) for each in model.nodes))
    text = inspect_model(hostile)._repr_html_()
    assert "<script>" not in text
    assert HOSTILE in unescape(text)
    rows = [[number] for number in range(MOST_ROWS + 7)]
    text = html_table("long", ["n"], rows)
    assert text.count("<tr>") == MOST_ROWS + 2
    assert "… 7 more" in text
