"""Plots as SVG: what is drawn lies where it should, and names stay text."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from microtron.base.errors import MicrotronError
from microtron.base.notebooks.svg_plot import HEIGHT, LEFT, TOP, WIDTH, Series, plot_svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def marks(text):
    """Where the round marks are."""
    return [(float(x) + 4, float(y)) for x, y in re.findall(
        r'd="M([\d.-]+) ([\d.-]+)a4 4', text)][:-1]            # the last is of the legend


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[1.0], [5.0, 5.0], [1e-9, 3.0, 2e9], [1, 2, 3], [999.5, 1000]])
def test_points_lie_inside_and_in_order_and_axes_have_ticks(values, log):
    text = plot_svg([Series("s", values, values)], x="x", y="y", log_x=log, log_y=log)
    root = ElementTree.fromstring(text)
    found = marks(text)
    assert len(found) == len(values)
    for x, y in found:
        assert LEFT < x < WIDTH
        assert TOP < y < HEIGHT
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert [y for _, y in found] == sorted((y for _, y in found), reverse=True)
    ticks = [each.text for each in root.iter(f"{NAMESPACE}text") if each.get("class") == "quiet"]
    assert 2 <= len(ticks) <= 30
    assert all(re.fullmatch(r"-?[\d,.]+(e[+-]\d+)?( [GM])?", each) for each in ticks)


def test_a_tick_is_where_its_number_is():
    text = plot_svg([Series("s", [0, 100], [10, 1000])], x="x", y="y", log_y=True)
    ticks = {each.text: float(each.get("y")) - 4
             for each in ElementTree.fromstring(text).iter(f"{NAMESPACE}text")
             if each.get("text-anchor") == "end"}
    (_, low), (_, high) = marks(text)
    assert ticks["10"] == pytest.approx(low, abs=0.2)
    assert ticks["1,000"] == pytest.approx(high, abs=0.2)
    assert ticks["100"] == pytest.approx((low + high) / 2, abs=0.2)


def test_steps_hold_a_value_up_to_the_next():
    text = plot_svg([Series("front", [1, 2, 4], [9, 5, 1], "steps")], x="x", y="y")
    path = re.search(r'stroke-width="2" d="M(.*?)"', text)[1]
    corners = [tuple(map(float, each.split())) for each in path.split("L")]
    assert len(corners) == 5
    for (x, y), (next_x, next_y) in pairwise(corners):
        assert (x == next_x) != (y == next_y)


def test_names_stay_text():
    name = "</text><script>alert(1)</script>\x1b&\"'"
    text = plot_svg([Series(name, [1, 2], [1, 2], labels=[name, name])], x=name, y=name, title=name)
    root = ElementTree.fromstring(text)
    assert not list(root.iter(f"{NAMESPACE}script"))
    assert sum(each.text is not None and "<script>" in each.text for each in root.iter()) >= 5


def test_what_cannot_be_drawn_is_refused_in_a_line():
    with pytest.raises(MicrotronError, match="x: 0 has no place on a logarithmic axis"):
        plot_svg([Series("s", [0], [1])], x="x", y="y", log_x=True)
    with pytest.raises(MicrotronError, match="y: nan has no place on an axis"):
        plot_svg([Series("s", [0], [float("nan")])], x="x", y="y")
    with pytest.raises(MicrotronError, match="there is nothing to plot"):
        plot_svg([], x="x", y="y")
    with pytest.raises(MicrotronError, match="s: there are 2 xs, but 1 ys"):
        Series("s", [1, 2], [1])
    with pytest.raises(MicrotronError, match="kind is 'dot', but must be one of dots, line, "):
        Series("s", [1], [1], "dot")
