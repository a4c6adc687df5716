"""Times of an inference: measured or estimated, said so, and adding up."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.boards.facts.catalogue import find_board, load_boards
from microtron.boards.facts.speed import processor_mhz
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.indexing import Gather
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.layers.normalization import Softmax
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.types import TensorType
from microtron.runtime.clock import Clock
from microtron.runtime.reports.layers import inspect_model
from microtron.runtime.reports.model_tables import layer_rows
from microtron.runtime.reports.units import duration
from microtron.runtime.times import measure
from microtron.runtime.times.estimate import PROCESSORS, estimate_times, find_processor
from microtron.runtime.times.host_times import Source
from microtron.runtime.times.measure import measure_times
from microtron.runtime.times.operations import Operations, operations_of

from ..command import bad, good
from .small_model import image, small_graph

A9 = PROCESSORS["Cortex-A9"]


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), "tiny")


def on_a9(model):
    return estimate_times(model, A9, 500)


def float_graph():
    """relu-like chain, a product, a softmax and a look-up by indices that are data."""
    builder = Builder("floats")
    builder.input("x", TensorType((4, 8), "float32"))
    builder.input("rows", TensorType((2,), "int64"))
    weights = builder.constant("w", np.ones((8, 3), np.float32))
    builder.add("twice", Binary(kind=BinaryKind.ADD, left="x", right="x"))
    builder.add("exp", Unary(kind=UnaryKind.EXP, x="twice"))
    builder.add("product", MatMul(left="exp", right=weights))
    builder.add("soft", Softmax(x="product", axis=1))
    builder.add("some", Gather(x="soft", indices="rows", axis=0))
    return builder.graph(("some",))


def test_every_node_of_the_cpu_and_every_handed_over_tensor_is_measured(model):
    found = measure_times(model, threads=1)
    assert list(found.nodes) == [each.name for each in model.host_nodes] == ["table_of", "real"]
    assert all(each.seconds > 0 and each.source == Source.MEASURED for each in found.nodes.values())
    assert found.source == Source.MEASURED
    assert "this machine" in found.processor
    assert [(each.tensor, each.to_accelerator) for each in found.handovers] == [
        ("image", True), ("conv", False), ("sum", False), ("table_of", True), ("dense", False)]
    assert all(each.seconds > 0 and each.bytes > 0 for each in found.handovers)


def test_a_node_inside_another_ones_kernel_says_which():
    found = measure_times(microtron.compile(float_graph(), "tiny"), threads=1)
    assert list(found.nodes) == ["twice", "exp", "product", "soft", "some"]
    assert found.nodes["twice"].inside in ("exp", "product")
    assert found.nodes["twice"].seconds is None
    assert found.nodes["product"].seconds > 0
    inside = {name: each.inside for name, each in found.nodes.items() if each.inside}
    assert all(found.nodes[each].seconds for each in inside.values())


@pytest.mark.parametrize("name", ["MOST_OPERATIONS", "MOST_BYTES"])
def test_what_is_too_large_to_try_is_estimated_and_marked(model, monkeypatch, name):
    monkeypatch.setattr(measure, name, 1)
    found = measure_times(model)
    assert {each.source for each in found.nodes.values()} == {Source.ESTIMATED}
    assert found.source == Source.ESTIMATED


def test_what_cannot_run_here_is_estimated(model, monkeypatch):
    def refuse(self, part):
        raise MicrotronError("no code for it")
    monkeypatch.setattr(measure.CompiledBackend, "load", refuse)
    assert {each.source for each in measure_times(model).nodes.values()} == {Source.ESTIMATED}


def test_operations_are_counted_by_kind():
    graph = float_graph()
    assert {name: operations_of(graph, node) for name, node in graph.nodes.items()} == {
        "twice": Operations(0, 32, 0, True), "exp": Operations(0, 0, 32, True),
        "product": Operations(96, 12, 0, True), "soft": Operations(0, 48, 12, True),
        "some": Operations(0, 14, 0, True)}


def test_an_estimate_is_operations_times_cycles_at_the_clock(model):
    found = on_a9(model)
    assert found.nodes["table_of"].seconds == pytest.approx(16 * A9.element / 500e6)
    assert found.nodes["real"].seconds == pytest.approx(5 * A9.real_element / 500e6)
    for each in found.handovers:
        assert each.seconds == pytest.approx(each.bytes * A9.repacked_byte / 500e6)
    slow = estimate_times(model, A9, 250)
    assert slow.node_seconds == pytest.approx(2 * found.node_seconds)
    assert found.processor == "Cortex-A9 at 500 MHz"
    assert found.source == Source.ESTIMATED


def test_all_parts_add_up_in_json_and_csv(model):
    found = inspect_model(model, clock=Clock(50, "given"), time_host=on_a9)
    totals, total = found.totals(), found.end_to_end
    assert totals["accelerator_seconds"] == pytest.approx(found.cycles / 50e6)
    assert totals["end_to_end_seconds"] == pytest.approx(
        totals["accelerator_seconds"] + totals["cpu_seconds"] + totals["repack_seconds"])
    assert totals["cpu_time_source"] == "estimated"
    assert totals["handovers"] == 5
    assert total.utilization < total.accelerator_utilization
    assert total.utilization == pytest.approx(
        total.macs / (total.seconds * 50e6 * model.config.macs_per_cycle))
    rows = list(layer_rows(found))
    assert sum(float(each["seconds"] or 0) for each in rows) == pytest.approx(
        totals["end_to_end_seconds"])
    assert {each["where"]: each["time_source"] for each in rows if each["seconds"]} == {
        "accelerator": "simulated", "cpu": "estimated", "hand-over": "estimated"}
    data = json.loads(json.dumps(found.to_dict()))
    assert sum(each["seconds"] for each in data["handovers"]) == pytest.approx(
        totals["repack_seconds"])
    assert {each["time_source"] for each in data["layers"] if each["where"] == "cpu"} == {
        "estimated"}


def test_a_result_says_what_the_cpu_took_in_its_run(model):
    result = model.run(image())
    assert result.cpu_seconds > 0
    assert result.repack_seconds > 0
    assert result.end_to_end_seconds(50) == pytest.approx(
        result.cycles / 50e6 + result.cpu_seconds + result.repack_seconds)
    assert model.run(image(), "functional").end_to_end_seconds() is None


@pytest.mark.parametrize("mhz", [0, -1, float("nan"), float("inf"), "fast", True])
def test_a_clock_is_above_zero(mhz):
    with pytest.raises(MicrotronError, match=r"the clock is .* must be above zero"):
        Clock(mhz)


def test_the_processor_of_every_board_is_known():
    for each in load_boards():
        if each.cpu != "none":
            assert find_processor(each.cpu).name in each.cpu
            assert processor_mhz(each, 50) > 0
    assert processor_mhz(find_board("ulx3s"), 50) == 50
    with pytest.raises(MicrotronError, match="how fast a processor '2 × Z80' is; there are"):
        find_processor("2 × Z80")
    with pytest.raises(MicrotronError, match="pynq_z2: the clock of its processor is not known"):
        processor_mhz(replace(find_board("pynq_z2"), cpu_mhz=None), 50)


@pytest.mark.parametrize(("seconds", "text"), [
    (None, ""), (0, "0"), (1e-9, "1.00ns"), (55.23e-6, "55.2µs"), (0.9996e-3, "1.00ms"),
    (123e-3, "123ms"), (9.996, "10.0s"), (999.4, "999s"), (12_345, "12.3ks")])
def test_times_keep_three_digits(seconds, text):
    assert duration(seconds) == text


@pytest.fixture
def file(model, tmp_path):
    model.save(tmp_path / "small.mt")
    np.save(tmp_path / "image.npy", image())
    return tmp_path / "small.mt"


def test_every_command_says_whose_times_they_are(file):
    text = " ".join(good("inspect", file, columns=80).split())
    for part in ("accelerator alone", "CPU 2 of 5", "hand-overs 5 tensors", "end to end",
                 "the accelerator at 100 MHz (assumed; --clock sets it)",
                 "the CPU measured on this machine", "of its 16 multipliers while it runs"):
        assert part in text, part
    ran = json.loads(good("run", file, "-i", file.with_name("image.npy"), "--json", "--clock",
                          "25"))
    assert ran["clock_mhz"] == 25
    assert ran["cpu_time_source"] == "measured"
    assert [each["time_source"] for each in ran["nodes"] if each["where"] == "cpu"] == [
        "measured"] * 2
    found = json.loads(good("profile", file, "--json", "--board", "ulx3s"))
    assert found["network"]["cpu"] == "VexRiscv at 50 MHz"
    assert found["network"]["cpu_time_source"] == "estimated"
    assert [each["clock_source"] for each in found["programs"]] == ["ulx3s"] * 2
    text = " ".join(good("profile", file, "--board", "ulx3s").split())
    assert "at 50 MHz on ulx3s" in text
    assert "estimated (~) for VexRiscv at 50 MHz from operations" in text
    text = good("inspect", file, "--board", "ulx3s", "--clock", "40")
    assert "the accelerator at 40 MHz; the CPU estimated (~) for VexRiscv at 40 MHz" in text
    assert "~" in text.split("hand-overs")[1].splitlines()[0]


@pytest.mark.parametrize(("arguments", "message"), [
    (("--clock", "0"), "the clock is 0.0 MHz, but must be above zero"),
    (("--board", "ulx3s", "--memory", "read_latency=5"), "--board has a memory of its own"),
    (("--board", "de10_nano"), "de10_nano: how its memory behaves has not been measured"),
    (("--board", "ulx4s"), "there is no board 'ulx4s'"),
])
def test_a_clock_or_a_board_that_is_wrong_is_refused(file, arguments, message):
    for command in ("inspect", "profile"):
        assert message in bad(command, file, *arguments)
