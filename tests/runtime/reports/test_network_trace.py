"""Traces of whole networks: CPU and accelerator on one time line, in a form that Perfetto takes."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.network.network import Where
from microtron.isa.program import engines_of
from microtron.runtime.clock import Clock
from microtron.runtime.reports.layers import end_to_end
from microtron.runtime.reports.network_trace import check_trace, network_trace_content
from microtron.runtime.times.host_times import Handover, HostTimes, NodeTime, Source, ports_of

from ..small_model import image, small_graph


def host_times(model):
    """Times that no machine has: odd fractions of a cycle, so that rounding shows."""
    nodes = {each.name: NodeTime((1 + number / 7) * 1e-6, Source.MEASURED)
             for number, each in enumerate(model.host_nodes)}
    handovers = tuple(Handover(port.name, step, to_accelerator, size, size / 3 * 1e-9,
                               Source.ESTIMATED)
                      for step, port, to_accelerator, size in ports_of(model))
    return HostTimes(processor="a CPU", nodes=nodes, handovers=handovers)


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), "tiny")


@pytest.fixture(scope="module")
def result(model):
    return model.run(image(), "cycle")


@pytest.fixture(scope="module")
def trace(model, result, tmp_path_factory):
    return traced(model, result, tmp_path_factory.mktemp("trace") / "t.json")


def traced(model, result, path):
    time = end_to_end(model, result.cycles, Clock(123.0), host_times)
    content = b"".join(network_trace_content(path, model, result.reports, time))
    return json.loads(content)


def slices(trace):
    return [each for each in trace["traceEvents"] if each["ph"] == "X"]


def track_names(trace):
    """(process, track) → their names."""
    processes = {each["pid"]: each["args"]["name"] for each in trace["traceEvents"]
                 if each["ph"] == "M" and each["name"] == "process_name"}
    return {(each["pid"], each["tid"]): (processes[each["pid"]], each["args"]["name"])
            for each in trace["traceEvents"]
            if each["ph"] == "M" and each["name"] == "thread_name"}


def test_every_track_has_a_name_and_slices_nest_in_order(trace):
    names = track_names(trace)
    tracks = defaultdict(list)
    for each in slices(trace):
        tracks[names[each["pid"], each["tid"]]].append(each)
    assert {("cpu", "cpu"), ("accelerator", "layers"), ("accelerator", "load"),
            ("accelerator", "gemm"), ("accelerator", "alu"), ("accelerator", "store")} <= set(
                tracks)
    for name, track in tracks.items():
        starts = [each["ts"] for each in track]
        assert starts == sorted(starts), name
        open_until: list[float] = []
        for each in track:
            end = each["ts"] + each["dur"]
            assert each["dur"] >= 0
            while open_until and open_until[-1] <= each["ts"]:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-9, (name, each)
            if name[1] != "layers":
                assert not open_until, "slices of one engine, or of the CPU, do not overlap"
            open_until.append(end)


def test_cpu_and_accelerator_take_turns_in_the_order_of_steps(model, result, trace):
    spans = sorted((each["ts"], each["ts"] + each["dur"], each["cat"], each["name"])
                   for each in slices(trace) if each["cat"] in ("cpu", "program"))
    for before, after in pairwise(spans):
        assert before[1] <= after[0] + 1e-9
    on_cpu = [name for _, _, kind, name in spans if kind == "cpu"]
    expected = [each.title for each in model.host_nodes]
    assert [name for name in on_cpu if name in expected] == expected
    programs = [each for each in spans if each[2] == "program"]
    assert [round(end - start) for start, end, _, _ in programs] == [
        each.cycles for each in result.reports]
    assert len(programs) == 2
    second = programs[1][0]
    table = next(each for each in spans if each[3] == "TABLE 2")
    assert programs[0][1] <= table[0] < second
    seconds = sum(each.seconds for each in host_times(model).nodes.values()) + sum(
        each.seconds for each in host_times(model).handovers)
    total = sum(end - start for start, end, kind, _ in spans if kind == "cpu")
    assert total == pytest.approx(seconds * 123e6, rel=1e-3)


def test_layers_fill_their_programs_and_instructions_are_those_that_ran(model, result, trace):
    layers = [each for each in slices(trace) if each["cat"] == "layer"]
    assert [each["name"] for each in layers] == [
        each.title for each in model.nodes if each.where == Where.ACCELERATOR]
    assert sum(each["dur"] for each in layers) == result.cycles
    bases = [each["ts"] for each in slices(trace) if each["cat"] == "program"]
    found = [(each["ts"], each["dur"]) for each in slices(trace) if "position" in each["args"]]
    expected = []
    for program, report, base in zip(model.programs, result.reports, bases, strict=True):
        for position in np.flatnonzero(engines_of(program) >= 0):
            start, end = report.timeline.start[position], report.timeline.end[position]
            expected.append((base + int(start), int(end - start)))
    assert sorted(found) == sorted(expected)


def test_arrows_have_numbers_of_their_own_and_end_in_slices(trace):
    starts, ends = ({each["id"]: each for each in trace["traceEvents"] if each["ph"] == phase}
                    for phase in "sf")
    assert starts.keys() == ends.keys()
    assert len(starts) == sum(each["ph"] == "s" for each in trace["traceEvents"]) > 0
    for each in (*starts.values(), *ends.values()):
        assert any(one["pid"] == each["pid"] and one["tid"] == each["tid"]
                   and one["ts"] <= each["ts"] < one["ts"] + one["dur"] for one in slices(trace))
    assert all(starts[each]["ts"] <= ends[each]["ts"] for each in starts)


def test_the_file_says_at_which_clock(trace, result):
    assert trace["otherData"]["clock_mhz"] == 123.0
    assert trace["otherData"]["cycles"] == result.cycles
    assert trace["otherData"]["cpu"] == "a CPU"


def test_columns_are_of_one_program(model, result, tmp_path):
    with pytest.raises(MicrotronError, match=r"t\.npz: columns are of one program, but small has "
                                             r"2; a \.json file shows all of them"):
        check_trace(tmp_path / "t.npz", model)
    with pytest.raises(MicrotronError, match=r"a trace's name must end in"):
        check_trace(tmp_path / "t.txt", model)


def test_a_device_without_a_clock_has_no_trace(model, tmp_path):
    with pytest.raises(MicrotronError, match="the functional device has no clock"):
        traced(model, model.run(image(), "functional"), tmp_path / "t.json")
