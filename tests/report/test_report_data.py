"""What a report shows is what the API says."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microtron
from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer
from microtron.isa.verification.order.layout import prepare
from microtron.report import page
from microtron.report.encoding import encode_array, encode_json
from microtron.report.network_layout import lay_out
from microtron.report.programs import model_of_program
from microtron.report.run_data import run_data
from microtron.report.save_report import inspect_source
from microtron.report.scratchpads import BINS, scratchpad_data
from microtron.runtime.reports.inference_timeline import PlacedProgram
from microtron.runtime.reports.layers import inspect_model
from microtron.sim.simulate import simulate
from microtron.testing.random_programs import random_program

from ..runtime.small_model import small_graph

HOSTILE = '</script><img src=x onerror="document.title=1">\u2028<!--'


@pytest.fixture(scope="module")
def found():
    return inspect_model(microtron.compile(small_graph(), "tiny"))


@pytest.fixture(scope="module")
def data(found):
    return run_data("small", found)


def decode(encoded):
    """What assets/data.js makes of an array."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(encoded["data"])), np.uint8)
    if encoded["kind"] == "u8":
        return raw.astype(np.int64)
    if encoded["kind"] == "f64":
        return raw.view("<f8").astype(np.int64)
    numbers = np.ascontiguousarray(raw.reshape(4, -1).T).view("<i4").ravel().astype(np.int64)
    return np.cumsum(numbers) if encoded["kind"] == "d32" else numbers


@given(st.lists(st.integers(-(1 << 31), (1 << 40))), st.booleans())
def test_arrays_survive(numbers, delta):
    assert decode(encode_array(np.array(numbers, np.int64), delta=delta)).tolist() == numbers


@given(st.text())
def test_json_cannot_end_its_script(text):
    written = encode_json({text: [text, HOSTILE]})
    assert "<" not in written
    assert not {"\u2028", "\u2029"} & set(written)
    assert json.loads(written) == {text: [text, HOSTILE]}


def test_totals_and_layers_are_those_of_inspect(found, data):
    assert data["totals"] == found.totals()
    for shown, cost in zip(data["layers"], found.layers, strict=True):
        assert cost.to_dict().items() <= shown.items()
    assert sum(data["limits"].values()) == pytest.approx(found.totals()["bound"])


def test_traffic_adds_up_to_the_bytes_that_were_moved(found, data):
    total = sum(each["read"] + each["written"] for each in data["tensors"])
    assert total == found.totals()["bytes"] > 0


def test_traffic_of_a_real_network_adds_up_too():
    model = microtron.compile("examples/digits/digits.onnx", "base")
    digits = inspect_model(model)
    shown = run_data("digits", digits)
    total = sum(each["read"] + each["written"] for each in shown["tensors"])
    assert total == digits.totals()["bytes"]
    arena = model.programs[0].segment("arena").size
    for plan in shown["plans"]:
        assert plan["tensors"]
        for each in plan["tensors"]:
            assert 0 <= each["offset"] < each["offset"] + each["bytes"] <= arena
            assert plan["base"] <= each["first"] < each["last"] <= plan["base"] + plan["cycles"]
    places = {each["name"]: each for plan in shown["plans"] for each in plan["tensors"]}
    assert len(places) == len(model.steps[1].plan.offsets)
    ends = [each["offset"] + each["bytes"] for each in places.values()]
    assert max(ends) == model.steps[1].plan.peak


def test_engines_are_those_of_the_profile(found, data):
    profiles = [microtron.profile(each, found.model.memory) for each in found.model.programs]
    for number, shown in enumerate(data["engines"]):
        each = [profile.engines[number] for profile in profiles]
        assert shown["working"] == sum(one.working for one in each)
        assert shown["tokens"] == {name: sum(one.tokens[name] for one in each)
                                   for name in shown["tokens"]}
        assert sum((shown[name] for name in ("working", "memory", "queue", "idle")),
                   sum(shown["tokens"].values())) == found.cycles


def test_events_are_those_of_the_simulator_on_one_axis(found, data):
    end = 0.0
    for shown, program, report in zip(data["timeline"]["programs"], found.model.programs,
                                      found.reports, strict=True):
        assert decode(shown["start"]).tolist() == report.timeline.start.tolist()
        length = report.timeline.end - report.timeline.start
        assert decode(shown["length"]).tolist() == length.tolist()
        code = decode(shown["code"]).astype(np.uint8).reshape(32, -1).T
        assert np.ascontiguousarray(code).tobytes() == program.code.tobytes()
        assert decode(shown["bytes"]).sum() == report.bytes
        assert shown["base"] >= end
        assert sum(each["cycles"] for each in shown["layers"]) == report.cycles
        end = shown["base"] + report.cycles
    host = sum(each["seconds"] for each in data["timeline"]["cpu"])
    times = found.end_to_end.host
    assert host == pytest.approx(times.node_seconds + times.repack_seconds)
    assert data["timeline"]["cycles"] == pytest.approx(
        found.end_to_end.seconds * found.end_to_end.clock.mhz * 1e6,
        abs=len(found.reports))             # programs start at whole cycles


def test_the_network_has_all_working_nodes_and_its_edges_go_forward(found, data):
    nodes, edges = data["network"]["nodes"], data["network"]["edges"]
    shown = {each["title"] for each in nodes}
    for each in found.model.nodes:
        assert (each.title in shown) == (each.where.value in ("accelerator", "cpu"))
    for each in nodes:
        if each["where"] == "cpu":
            assert each["text"]
    titles = {(nodes[one]["title"], nodes[two]["title"]) for one, two in edges}
    assert ("image", "CONV 0") in titles
    assert ("ADD 1", "TABLE 2") in titles
    assert {each["title"] for each in nodes if each["what"] == "output"} == set(
        found.model.outputs)
    for name in found.model.outputs:            # reached by an edge
        assert name in {two for _, two in titles}


@given(st.integers(1, 60), st.data())
def test_nodes_never_share_a_place_and_edges_leave_upwards_only_to_the_next_column(count, draw):
    nodes = [f"n{number}" for number in range(count)]
    edges = [(f"n{draw.draw(st.integers(0, number - 1))}", f"n{number}")
             for number in range(1, count)]
    places = lay_out(nodes, edges)
    assert len(set(places.values())) == count
    for source, target in edges:
        (x0, y0), (x1, y1) = places[source], places[target]
        assert y1 > y0 or x1 > x0


def test_a_program_is_a_network_of_its_labels():
    program = random_program(tiny, 3)
    program = replace(program, labels={"late": len(program.code) // 2})
    found = inspect_source(program, "random")
    assert [each.node.name for each in found.layers] == ["program", "late"]
    assert found.cycles == simulate(program).cycles
    assert sum(each.cycles for each in found.layers) == found.cycles
    assert sum(each.node.macs for each in found.layers) == simulate(program).macs


@pytest.mark.parametrize("seed", range(6))
def test_scratchpad_maps_show_what_is_read_after_it_was_written(seed):
    """Compared with a walk over single tiles, in maps that have a part for each."""
    program = random_program(tiny, seed)
    report = simulate(program)
    placed = [PlacedProgram(0, program, report, 0)]
    for buffer in (Buffer.INP, Buffer.WGT, Buffer.OUT, Buffer.ACC):
        tiles = program.config.tiles(buffer)
        lines = next(decode(each["map"]).reshape(tiles, BINS) for each
                     in scratchpad_data(placed, float(report.cycles), tiles)
                     if each["name"] == buffer.name.lower())
        wanted = np.zeros((tiles, BINS))
        for tile, begin, end in _spans(prepare(program), report.timeline, buffer, tiles):
            times = np.clip(np.arange(BINS + 1) * report.cycles / BINS, begin, end)
            wanted[tile] += np.diff(times) * BINS / report.cycles * 255
        assert np.abs(np.minimum(wanted, 255) - lines).max() <= 1


def _spans(layout, timeline, buffer, tiles):
    """When each tile is live, from first write to last read before the next write."""
    spans = {tile: [] for tile in range(tiles)}         # per tile: [first write, last read or None]
    for position in range(len(layout.program.code)):
        for row in layout.rows_of(position):
            cells = _cells(row, layout, position) if row["space"] == buffer else []
            for tile in range(min(cells), max(cells) + 1) if cells else ():
                mine = spans[tile]
                if row["write"] and (not mine or mine[-1][1] is not None):
                    mine.append([int(timeline.start[position]), None])
                elif not row["write"] and mine:
                    end = int(timeline.end[position])
                    mine[-1][1] = max(end, mine[-1][1] or 0)
    return [(tile, begin, end) for tile, mine in spans.items() for begin, end in mine
            if end is not None and end > begin]


def _cells(row, layout, position):
    counters = np.indices(row["loops"]).reshape(3, -1)
    indices = row["base"] + row["stride"] @ counters
    if row["column"] >= 0:
        uops = layout.uops_at(position)[row["uop"]:row["uop"] + row["count"], row["column"]]
        indices = (indices[None] + uops.astype(np.int64)[:, None]).ravel()
    cells = indices // row["divisor"]
    return [*cells.tolist(), *(cells + row["span"] - 1).tolist()]


def test_a_program_without_code_worth_showing_is_shown():
    program = random_program(tiny, 0)
    model = model_of_program(replace(program, labels={}), "x")
    assert [each.name for each in model.nodes] == ["program"]


def test_assets_are_small_and_all_of_them_are_in_the_page():
    folder = Path(page.__file__).parent / "assets"
    assert {path.name for path in folder.iterdir()} == {*page.STYLES, *page.SCRIPTS}
    for path in folder.iterdir():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 300
    whole = b"".join(page.page_of("<title>", "1", [])).decode()
    assert "<title>&lt;title&gt;</title>" in whole
    addresses = set(re.findall(r"https?://[\w./]*", whole))
    assert addresses == {"http://www.w3.org/2000/svg"}      # a name, which nobody fetches
    assert "src=" not in whole
