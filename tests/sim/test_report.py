"""Reports: equal runs are equal, and everything in them is plain data."""

import json
from dataclasses import replace

from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer, Gemm, Load
from microtron.isa.memory_timing import MemoryTiming
from microtron.sim.counts import count
from microtron.sim.report import Report
from microtron.sim.timeline import empty_timeline

from .functional.support import program

PROGRAM = program(tiny, Load(buffer=Buffer.WGT, shape=(1, 1, 3)), Gemm(loops=(1, 1, 50)),
                  memory=4096)
TIMED = Report(device="cycle", config=tiny, counts=count(PROGRAM.code, tiny, {}), cycles=200,
               memory=MemoryTiming(), counters={"cycles": 200, "gemm_busy": 58},
               timeline=empty_timeline(3))
UNTIMED = Report(device="functional", config=tiny, counts=TIMED.counts)


def test_figures_follow_from_counts_and_cycles():
    assert TIMED.macs == 50 * 16
    assert TIMED.bytes == 3 * 16
    assert TIMED.utilization == 50 / 200
    assert UNTIMED.utilization is None


def test_reports_are_equal_if_everything_but_the_timeline_is():
    assert replace(TIMED, timeline=None) == TIMED
    assert replace(TIMED, cycles=201) != TIMED
    assert replace(TIMED, memory=MemoryTiming(reads=1)) != TIMED


def test_json_holds_everything_but_the_timeline():
    for report in (TIMED, UNTIMED):
        table = json.loads(json.dumps(report.to_dict()))
        assert table["cycles"] == report.cycles
        assert table["counts"]["bytes_loaded"] == {"wgt": 48}
        assert table["config"]["block_in"] == 4
        assert "timeline" not in table
    assert TIMED.to_dict()["memory"]["read_latency"] == 32
    assert UNTIMED.to_dict()["memory"] is None


def test_a_row_is_flat_and_plain_and_always_has_the_same_columns():
    row = TIMED.to_row()
    assert {type(value) for value in row.values()} == {int, float, str}
    expected = {"device": "cycle", "config_block_in": 4, "memory_read_latency": 32,
                "memory_shared": 1, "count_gemm": 1, "count_store": 0, "macs": 800, "bytes": 48,
                "loaded_wgt": 48, "loaded_inp": 0, "stored_out": 0, "cycles": 200,
                "utilization": 0.25, "gemm_busy": 58}
    assert {name: row[name] for name in expected} == expected
    other = replace(TIMED, counts=count(program(tiny).code, tiny, {}))
    assert list(other.to_row()) == list(row)
    assert not {"cycles", "utilization", "memory_reads"} & set(UNTIMED.to_row())
