"""Traces: what Perfetto and NumPy read is what happened."""

import json
from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.isa.config import tiny
from microtron.isa.instructions import Engines, Gemm, Load, Store, Sync
from microtron.isa.program import Access, Program, Segment, engines_of
from microtron.isa.stream import encode
from microtron.runtime.devices.device import open_device
from microtron.runtime.reports.token_pairs import tokens_of
from microtron.runtime.reports.trace import save_trace
from microtron.sim.simulate import simulate
from microtron.testing.random_programs import random_program

PROGRAM = random_program(tiny, 3, length=60)
ENGINES = ["load", "gemm", "alu", "store"]


@pytest.fixture(scope="module")
def report():
    return simulate(PROGRAM)


@pytest.fixture
def trace(report, tmp_path):
    save_trace(tmp_path / "trace.json", PROGRAM, report)
    return json.loads((tmp_path / "trace.json").read_text())


def events(trace, phase):
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_every_instruction_is_a_slice_from_its_start_to_its_end(trace, report):
    slices = {event["args"]["position"]: event for event in events(trace, "X")}
    engines, timeline = engines_of(PROGRAM), report.timeline
    assert sorted(slices) == np.flatnonzero(engines >= 0).tolist()
    for position, each in slices.items():
        assert each["ts"] == timeline.start[position]
        assert each["ts"] + each["dur"] == timeline.end[position]
        assert each["cat"] == ENGINES[engines[position]]
        assert each["args"]["text"].startswith(each["name"])
        assert each["args"]["dispatched"] == timeline.dispatched[position]
        assert [each["args"].get(f"waited_for_{name}", 0) for name in ENGINES] == (
            timeline.waits[position].tolist())
    assert timeline.waits.any()


def test_tracks_are_named_after_engines_and_their_slices_do_not_overlap(trace):
    names = {event["tid"]: event["args"]["name"] for event in events(trace, "M")
             if event["name"] == "thread_name"}
    assert set(ENGINES) <= set(names.values())
    busy_until = {}
    for each in sorted(events(trace, "X"), key=lambda each: each["ts"]):
        assert names[each["tid"]].split()[0] == each["cat"]
        assert busy_until.get(each["tid"], 0) <= each["ts"]
        busy_until[each["tid"]] = each["ts"] + each["dur"]


def test_arrows_lead_from_the_post_of_a_token_to_its_taker(trace):
    slices = events(trace, "X")

    def at(event):
        """The slice that an end of an arrow lies in."""
        found, = (each["args"]["position"] for each in slices if each["tid"] == event["tid"]
                  and each["ts"] <= event["ts"] < each["ts"] + each["dur"])
        return found

    starts, ends = ({each["id"]: at(each) for each in events(trace, phase)} for phase in "sf")
    assert starts.keys() == ends.keys()
    assert {(starts[each], ends[each]) for each in starts} == {
        (token.poster, token.taker) for token in tokens_of(PROGRAM)}


def test_the_file_says_what_was_run(trace, report):
    assert trace["otherData"]["cycles"] == report.cycles
    assert trace["otherData"]["counters"] == report.counters
    assert trace["otherData"]["config"] == tiny.to_dict()


def test_columns_are_arrays_of_plain_numbers_and_text(report, tmp_path):
    path = tmp_path / "trace.npz"
    save_trace(path, PROGRAM, report)
    with np.load(path, allow_pickle=False) as columns:
        assert columns["format"] == 1
        assert columns["config"] == tiny.digest
        assert columns["cycles"] == report.cycles
        assert dict(zip(columns["counter_names"].tolist(), columns["counters"].tolist(),
                        strict=True)) == report.counters
        assert (columns["opcode"] == PROGRAM.code["opcode"]).all()
        assert (columns["engine"] == engines_of(PROGRAM)).all()
        for name in ("start", "end", "dispatched", "waits"):
            assert (columns[name] == getattr(report.timeline, name)).all()
    content = path.read_bytes()
    save_trace(path, PROGRAM, report)
    assert path.read_bytes() == content


def test_a_timeline_of_starts_and_ends_is_enough(report, tmp_path):
    bare = replace(report, timeline=replace(report.timeline, dispatched=None, waits=None))
    save_trace(tmp_path / "trace.json", PROGRAM, bare)
    slices = events(json.loads((tmp_path / "trace.json").read_text()), "X")
    assert all(set(each["args"]) == {"position", "text"} for each in slices)
    save_trace(tmp_path / "trace.npz", PROGRAM, bare)
    with np.load(tmp_path / "trace.npz") as columns:
        assert not {"dispatched", "waits"} & set(columns)


def test_what_did_not_end_is_left_out(report, tmp_path):
    timeline = report.timeline
    last = int(timeline.order()[-1])
    end = np.where(np.arange(len(timeline.end)) == last, -1, timeline.end)
    save_trace(tmp_path / "trace.json", PROGRAM,
               replace(report, timeline=replace(timeline, end=end)))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert last not in [each["args"]["position"] for each in events(trace, "X")]
    assert len(events(trace, "s")) == len(events(trace, "f"))


def test_tokens_pair_the_k_th_post_with_the_k_th_wait():
    code = [Load(post=Engines.GEMM), Load(), Load(post=Engines.GEMM | Engines.STORE), Gemm(),
            Gemm(wait=Engines.LOAD), Store(wait=Engines.LOAD), Gemm(wait=Engines.LOAD),
            Load(post=Engines.GEMM), Sync()]
    program = Program(tiny, encode(code), (Segment("memory", 64, Access.WRITE),))
    assert sorted((token.poster, token.taker) for token in tokens_of(program)) == [
        (0, 4), (2, 5), (2, 6)]


def test_other_names_and_devices_without_a_clock_are_refused(report, tmp_path):
    with pytest.raises(MicrotronError, match=r"trace\.txt: a trace's name must end in \.json or "):
        save_trace(tmp_path / "trace.txt", PROGRAM, report)
    device = open_device("functional")
    device.load(PROGRAM)
    with pytest.raises(MicrotronError, match=r"trace\.json: the functional device has no clock"):
        save_trace(tmp_path / "trace.json", PROGRAM, device.run())
    with pytest.raises(MicrotronError, match=r"trace\.npz: cannot be written: No such file"):
        save_trace(tmp_path / "no" / "trace.npz", PROGRAM, report)
    assert not list(tmp_path.iterdir())
