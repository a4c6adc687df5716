"""What a build is expected to take, and what a tool is doing while it runs."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from microtron.boards.build import estimate, tool_progress
from microtron.boards.build.estimate import Record, estimate_build, read_records
from microtron.boards.build.plan import make_plan
from microtron.boards.build.tool_progress import LogReader, follow_log
from microtron.boards.facts.catalogue import find_board, load_boards
from microtron.boards.facts.fit import measured_resources
from microtron.isa.config import PRESETS, tiny

from ...command import good

ULX3S = find_board("ulx3s")


def expected(board, config=tiny):
    return estimate_build(board, config, make_plan(board, config, "some").build)


def test_records_are_of_boards_and_presets_that_there_are():
    boards = {board.name: board for board in load_boards()}
    for each in read_records():
        assert boards[each.board].flow == each.flow
        assert each.config in PRESETS
        assert min(each.lut, each.synthesis, each.route) > 0


def test_time_and_memory_grow_with_luts(monkeypatch):
    records = (Record(flow="ecp5", board="ulx3s", config="tiny", lut=10_000, synthesis=100,
                      route=300, memory_mib=1000),
               Record(flow="ecp5", board="ecpix5", config="base", lut=10_000_000, synthesis=9,
                      route=9),
               Record(flow="gowin", board="ulx3s", config="tiny", lut=29_000, synthesis=1, route=1))
    monkeypatch.setattr(estimate, "read_records", lambda: records)
    scale = measured_resources(ULX3S, tiny)["lut"] / 10_000
    found = expected(ULX3S)
    assert (found.routes, found.memory_mib) == (1, round(1000 * scale))
    assert found.processor_seconds == pytest.approx(scale * 400)
    crossed = replace(ULX3S, clock=replace(ULX3S.clock, accelerator_hz=80_000_000))
    found = expected(crossed)
    assert found.processor_seconds == pytest.approx(scale * 400)
    assert str(found) == (
        f"about {round(scale * 400 / 60)} processor minutes with one route and "
        f"{scale * 1000 / 1024:.1f} GiB of memory, by the build of ulx3s with tiny; what is done "
        "already takes none")


def test_nothing_is_expected_of_what_nobody_has_built():
    odd = replace(tiny, queue_depth=8)
    assert expected(ULX3S, odd) is None                     # whose area nobody knows
    assert expected(find_board("kv260"), PRESETS["base"]) is None       # a project: no route


def test_a_dry_run_says_what_is_expected():
    assert "\nexpected: about " in good("build", "--board", "ulx3s", "--dry-run")
    found = json.loads(good("build", "--board", "ulx3s", "--dry-run", "--json"))["expected"]
    assert found["routes"] == 1
    assert found["processor_seconds"] > 100


@pytest.mark.parametrize(("lines", "state"), [
    ((), ""),
    (("Info: Packing constants..",), "packing cells"),
    (("Info: Running Static placer...", "Info:   something else"), "placing"),
    (("Info: Running simulated annealing placer for refinement.",), "refining the placement"),
    (("Info: Running router2...",), "routing"),
    (("Info:     iter=3 wires=2000 overused=20 overuse=31 tmgfail=0 archfail=NA",),
     "routing: 99 % of wires without a conflict, round 3"),
    (("Info:     iter=4 wires=2000 overused=1 overuse=1 archfail=NA",),
     "routing: 99 % of wires without a conflict, round 4"),
    (("Info:     iter=9 wires=2000 overused=0 overuse=0 archfail=0",),
     "routing: 100 % of wires without a conflict, round 9"),
    (("Info: Routing..", "Info: Routing 17861 arcs."), "routing"),
    (("Info: Routing 17861 arcs.",
      "Info:       6000 |       99       3900 |   36   964 |     14164|       0.66       2.14|"),
     "routing: 20 % of wires"),
    (("Info:       6000 |       99       3900 |   36   964 |     14164|       0.66       2.14|",),
     ""),
])
def test_what_nextpnr_says_is_understood(lines, state):
    reader = LogReader()
    for line in lines:
        reader.read(line)
    assert reader.state == state


def test_a_log_is_followed_while_it_grows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool_progress, "INTERVAL", 0.001)
    log = tmp_path / "route.log"

    def wait_for(text):
        end = time.monotonic() + 30
        said = ""
        while text not in said and time.monotonic() < end:
            said += capsys.readouterr().err
        assert text in said

    # The reader opens the file only once it is there.
    with follow_log(log, "nextpnr"), log.open("w") as file:
        for text in ("Info: Running Static pla", "cer...\n"):
            file.write(text)
            file.flush()
        wait_for("microtron: nextpnr: placing\n")
        file.write("Info:     iter=1 wires=100 overused=50 overuse=60 archfail=NA\n")
        file.flush()
        wait_for("microtron: nextpnr: routing: 50 % of wires without a conflict, round 1\n")
