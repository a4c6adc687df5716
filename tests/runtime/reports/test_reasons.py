"""Why nodes are the CPU's: a line for each reason, with what to do about it."""

from __future__ import annotations

import pytest

import microtron
from microtron.compiler.graph.types import TensorType
from microtron.compiler.network.network import Where
from microtron.compiler.network.select_operator import REASONS
from microtron.runtime.models.compiled_model import NodeReport
from microtron.runtime.reports.reasons import ReasonGroup, group_reasons
from microtron.runtime.times.host_times import NodeTime, Source

from ...command import good
from ..small_model import small_graph


def node(number, operator, reason):
    return NodeReport(f"n{number}", "", operator, TensorType((1,), "float32"), Where.CPU, reason)


def test_reasons_are_counted_and_say_what_to_do():
    nodes = [*(node(each, "conv", "real numbers; quantize the model") for each in range(38)),
             *(node(each, "pool", "real numbers; quantize the model") for each in range(38, 41)),
             node(50, "softmax", "no exponential in the ALU")]
    first, second = group_reasons(nodes)
    assert first.line() == "41 nodes: real numbers; quantize the model (38 conv, 3 pool)"
    assert second.line() == ("1 node: no exponential in the ALU; leave it out where only the order "
                             "of scores matters (softmax)")


def test_what_takes_longest_comes_first():
    nodes = [node(0, "conv", "a"), node(1, "conv", "a"), node(2, "pool", "b")]
    times = {"n2": NodeTime(0.25, Source.MEASURED), "n1": NodeTime(1e-3, Source.MEASURED),
             "n0": NodeTime(None, Source.MEASURED, inside="n1")}
    assert [each.line() for each in group_reasons(nodes, times)] == [
        "1 node: b (pool, 250ms)", "2 nodes: a (conv, 1.00ms)"]


def test_reasons_that_differ_in_numbers_alone_are_one():
    group, = group_reasons([node(1, "dense", "takes 70000 bytes, but there are 512"),
                            node(2, "dense", "takes 90000 bytes, but there are 512")])
    assert group.line().startswith("2 nodes: takes … bytes, but there are …; take a larger")


@pytest.mark.parametrize("reason", sorted(set(REASONS.values())))
def test_there_is_advice_for_every_operation_that_is_left_to_the_cpu(reason):
    assert ReasonGroup(reason).advice


def test_an_unknown_reason_stands_alone():
    assert ReasonGroup("it is tuesday", [node(1, "conv", "it is tuesday")]).line() == (
        "1 node: it is tuesday (conv)")


def test_commands_group_reasons_unless_told_otherwise(tmp_path):
    microtron.compile(small_graph(), "tiny").save(tmp_path / "m.mt")
    text = good("inspect", tmp_path / "m.mt")
    assert "1 node: no table of values in the ALU; ReLU and clip cost nothing" in text
    assert "TABLE 2: no table" not in text
    text = good("inspect", tmp_path / "m.mt", "--all")
    assert "cpu 2 TABLE 2: no table of values in the ALU" in text
    assert "1 node:" not in text
