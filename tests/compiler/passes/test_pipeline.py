"""The whole list keeps what random networks compute."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from microtron.compiler.passes.pipeline import PASSES, run_passes

from ..graph.random_graphs import networks
from .checks import changed, kinds


@given(networks())
@settings(max_examples=200)
def test_random_networks_compute_the_same_after_all_passes(graph):
    found = changed(run_passes, graph)
    assert len(found.nodes) <= len(graph.nodes) + len(graph.inputs) + len(graph.outputs) + sum(
        3 for node in graph.nodes.values() if getattr(node.operation, "raw", False))


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.name)
@given(graph=networks())
@settings(max_examples=10)
def test_random_networks_compute_the_same_after_each_pass(each, graph):
    changed(each.run, graph)


@given(networks())
@settings(max_examples=10)
def test_a_second_time_changes_nothing(graph):
    once = run_passes(graph)
    assert kinds(run_passes(once)) == kinds(once)


@given(networks())
@settings(max_examples=1)
def test_stages_are_shown_in_order(graph):
    seen = []
    found = run_passes(graph, lambda name, stage: seen.append((name, str(stage))))
    assert [name for name, _ in seen] == [each.name for each in PASSES]
    assert seen[-1][1] == str(found)
    assert len(set(dict(seen))) == len(PASSES), "names differ"


def test_the_page_has_the_list():
    page = (Path(__file__).resolve().parents[3] / "docs" / "passes.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [each.name for each in PASSES]
