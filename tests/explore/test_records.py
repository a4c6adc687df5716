"""The store of measurements: whole whatever happens, and honest about what it holds."""

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from microtron import Conv2d, Elementwise, MemoryTiming, MicrotronError, load_config
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.choice import candidates
from microtron.explore import records as records_module
from microtron.explore.exchange import export_records, import_records
from microtron.explore.points import (
    LayerPoint,
    PointError,
    Schedule,
    describe,
    parse_layer,
    parse_point,
    point_key,
)
from microtron.explore.records import Record, Records, State, current_sources

LAYER = Conv2d(height=6, width=5, channels_in=8, channels_out=12, pad=(1, 1, 0, 2),
               rounding="even")


def point_of(layer=LAYER, config="tiny", number=0, **memory):
    config = load_config(config)
    operator = operator_of(layer)
    knobs = candidates(operator.template, operator.forms_of(layer, config)[0])[number]
    return LayerPoint(layer, config, MemoryTiming(**memory), Schedule(0, knobs))


def record_of(number=0, **memory):
    asked = point_of(number=number, **memory).to_json()
    return Record(asked, current_sources("layer"), {"cycles": 100 + number})


def test_a_point_is_read_as_it_was_written():
    for point in (point_of(number=3, read_latency=7, shared=False),
                  point_of(Elementwise(operation="mul", channels=20, height=3, width=4))):
        again = parse_point(point.to_json())
        assert again == point
        assert point_key(again.to_json()) == point_key(dict(reversed(point.to_json().items())))
    assert describe(LAYER) == {
        "operator": "conv2d", "height": 6, "width": 5, "channels_in": 8, "channels_out": 12,
        "pad": [1, 1, 0, 2], "rounding": "even"}


@pytest.mark.parametrize(("path", "value", "message"), [
    (("kind",), "netwrk", "kind is 'netwrk', but must be"),
    (("layer", "operator"), "conv3d", r"layer: operator is 'conv3d', .*did you mean conv2d"),
    (("layer", "hight"), 3, "layer: Conv2d has no keyword 'hight'"),
    (("layer", "height"), "6", "layer: conv2d: height is '6', but must be"),
    (("layer",), [1], r"layer is \[1\], but must be an object"),
    (("config", "batch"), 3, "config: batch is 3, but must be"),
    (("config", "batch"), 1.0, "config: batch is 1.0, but must be an integer"),
    (("memory", "read_latency"), 0, "memory: .*read_latency is 0, but must be"),
    (("form",), 99, "schedule: conv2d: form is 99, but must be from 0 to"),
    (("form",), "0", "schedule: form is '0', but must be the number of a form"),
    (("knobs", "rows"), 1000, "schedule: conv2d: knob rows is 1000, but must be from 1 to 6"),
    (("knobs", "row"), 1, "schedule: conv2d has no knob 'row'; there are blocks, rows"),
])
def test_a_point_that_cannot_be_is_refused_with_its_place(path, value, message):
    asked = point_of().to_json()
    inner = asked
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(PointError, match=message):
        parse_point(asked)
    assert Record(asked, current_sources("layer"), {}).state is State.FOREIGN


def test_an_operator_of_several_parts_is_no_point():
    asked = {**point_of().to_json(), "layer": {
        "operator": "transposed", "height": 4, "width": 4, "channels_in": 4, "channels_out": 4,
        "stride": [2, 2]}}
    with pytest.raises(PointError, match="transposed: has no schedule of its own"):
        parse_point(asked)


def test_a_missing_field_is_named():
    with pytest.raises(PointError, match=r"layer: conv2d: missing .*'channels_in'"):
        parse_layer({"operator": "conv2d", "height": 3, "width": 3, "channels_out": 3})


def test_a_point_is_recorded_once_for_each_source(tmp_path):
    with Records(tmp_path / "r.sqlite") as records:
        one = record_of()
        assert records.find(one.asked) is None
        assert records.add(one)
        assert not records.add(replace(one, measured={"cycles": 1}))
        assert records.add(replace(one, sources={"compiler": "old", "simulator": "old"}))
        assert records.add_all([record_of(1), record_of(1), record_of(1, read_latency=5)]) == 2
    with Records(tmp_path / "r.sqlite") as records:
        assert len(records) == 4
        assert records.find(one.asked) == {"cycles": 100}
        assert records.keys_among("layer", [one.key, record_of(2).key]) == {one.key}
        states = [each.state for each in records]
        assert states == [State.VALID, State.STALE, State.VALID, State.VALID]


def test_a_change_of_the_compiler_or_the_simulator_makes_records_stale(tmp_path, monkeypatch):
    with Records(tmp_path / "r.sqlite") as records:
        records.add(record_of())
        for module in ("microtron.compiler.compile", "microtron.sim.simulate"):
            current_sources.cache_clear()
            monkeypatch.setattr(records_module, "source_digest", lambda name, changed=module: (
                "0" * 64 if name == changed else real(name)))
            assert [each.state for each in records] == [State.STALE]
            assert records.find(point_of().to_json()) is None
            assert record_of().state is State.VALID         # one of these sources
            monkeypatch.undo()
            current_sources.cache_clear()
        assert [each.state for each in records] == [State.VALID]


real = records_module.source_digest

WRITER = """
import sys
from microtron.explore.records import Record, Records
path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Records(path) as records:
    for number in range(first, last):
        records.add(Record({"kind": "layer", "number": number},
                           {"compiler": "a", "simulator": "b"}, {"cycles": number}))
        print(number, flush=True)
"""


def start_writer(path, first, last):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first), str(last)],
                            stdout=subprocess.PIPE, text=True)


def numbers_in(path):
    with Records(path) as records:
        return sorted(each.measured["cycles"] for each in records)


def test_two_processes_write_at_once(tmp_path):
    path = tmp_path / "r.sqlite"
    writers = [start_writer(path, 0, 150), start_writer(path, 100, 250)]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert numbers_in(path) == list(range(250))


def test_a_writer_that_is_killed_loses_nothing_that_it_has_added(tmp_path):
    path = tmp_path / "r.sqlite"
    writer = start_writer(path, 0, 1_000_000)
    seen = [int(writer.stdout.readline()) for _ in range(60)]
    os.kill(writer.pid, signal.SIGKILL)
    seen += map(int, writer.communicate()[0].split())
    found = numbers_in(path)
    assert found[:len(seen)] == seen
    assert len(found) <= len(seen) + 1                  # one may not have been announced
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Records(path) as records:                      # and goes on
        assert records.add(record_of())


def test_records_are_only_ever_added(tmp_path):
    with Records(tmp_path / "r.sqlite") as records:
        records.add(record_of())
    database = sqlite3.connect(tmp_path / "r.sqlite")
    for statement in ("DELETE FROM records", "UPDATE records SET measured = '{}'"):
        with pytest.raises(sqlite3.DatabaseError, match="only ever added"):
            database.execute(statement)


def test_a_file_that_is_no_store_is_refused_in_one_line(tmp_path):
    def refuse(path, message):
        with pytest.raises(MicrotronError, match=message) as error:
            Records(path)
        assert "\n" not in str(error.value)
    (tmp_path / "text").write_text("not a database, but long enough to be read as one" * 40)
    refuse(tmp_path / "text", "text: not a store of records, or a damaged one: file is not")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE things (name TEXT)")
    other.close()
    refuse(tmp_path / "other", "other: a SQLite file, but not a store of records")
    Records(tmp_path / "newer").__exit__(None, None, None)
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute("PRAGMA user_version=9")
    newer.close()
    refuse(tmp_path / "newer", "version 9, but this Microtron reads version 1")
    refuse(tmp_path / "none" / "r.sqlite", "cannot be used as a store of records: unable to open")


def test_a_damaged_record_is_named(tmp_path):
    path = tmp_path / "r.sqlite"
    with Records(path) as records:
        records.add_all([record_of(0), record_of(1)])
    content = path.read_bytes()
    assert content.count(b'{"cycles":101}') == 1
    path.write_bytes(content.replace(b'{"cycles":101}', b'{"cycles":201}'))
    with Records(path) as records, pytest.raises(MicrotronError, match="record 2 is damaged"):
        list(records)


def test_records_travel_as_lines(tmp_path):
    with Records(tmp_path / "one") as one, Records(tmp_path / "other") as other:
        one.add_all([record_of(0), record_of(1), Record(
            {"kind": "board"}, {"board": "x"}, {"seconds": 1.5})])
        other.add(record_of(1))
        assert export_records(one, tmp_path / "lines") == 3
        assert import_records(other, tmp_path / "lines") == (3, 2)
        assert sorted(map(str, map(asdict, other))) == sorted(map(str, map(asdict, one)))
        assert [each.state for each in one][-1] is State.FOREIGN


@pytest.mark.parametrize("line", ["{", "3", '{"asked": {}, "sources": {}}', '{"asked": NaN}',
                                  '{"asked": {}, "sources": {"a": 1}, "measured": {}}',
                                  '{"asked": [], "sources": {}, "measured": {}}', "[" * 10_000])
def test_a_line_that_is_no_record_is_refused_and_nothing_is_added(tmp_path, line):
    with Records(tmp_path / "r") as records:
        records.add(record_of(0))
        export_records(records, tmp_path / "lines")
        good = (tmp_path / "lines").read_text()
        (tmp_path / "lines").write_text(good + line)
        with Records(tmp_path / "empty") as empty:
            with pytest.raises(MicrotronError, match="lines:2: "):
                import_records(empty, tmp_path / "lines")
            assert len(empty) == 0
