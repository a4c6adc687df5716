"""Static timing: the slowest path, when it settles, its lines of source, and who owns cells."""

from __future__ import annotations

import gzip
import json

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.build.static_timing import PlacedTiming
from microtron.boards.timing import cell_owners as owners
from microtron.boards.timing import critical_paths as paths
from microtron.boards.timing import ecp5_delays as delays
from microtron.boards.timing import explain_path as explain
from microtron.boards.timing import families, sdf
from microtron.boards.timing import placed_paths as placed
from microtron.boards.timing import timing_netlist as netlist
from microtron.boards.timing import unit_synthesis as synthesis

OUTPUTS = {"Q", "Z", "S0", "S1", "COUT", "DO", "Y"}


def module(cells, names=None, ports=None):
    """A module as Yosys writes it: cells as name → (type, pins, source)."""
    return {
        "attributes": {},
        "ports": {name: {"direction": direction, "bits": bits}
                  for name, (direction, bits) in (ports or {}).items()},
        "cells": {name: {
            "type": kind, "attributes": {} if source is None else {"src": source},
            "port_directions": {pin: "output" if pin in OUTPUTS else "input" for pin in pins},
            "connections": {pin: bits if isinstance(bits, list) else [bits]
                            for pin, bits in pins.items()},
        } for name, (kind, pins, source) in cells.items()},
        "netnames": {name: {"hide_name": 0, "bits": bits, "attributes": {}}
                     for name, bits in (names or {}).items()},
    }


@pytest.fixture
def read(tmp_path):
    def one(*arguments):
        path = tmp_path / "netlist.json"
        path.write_text(json.dumps({"modules": {"top": module(*arguments)}}))
        return netlist.read_netlist(path, "top")
    return one


def register(clock, data, out):
    return "TRELLIS_FF", {"CLK": clock, "DI": data, "Q": out}, "hw/gemm/mac.py:7|cells_map.v:1"


def lut(out, *inputs):
    return "LUT4", {**dict(zip("ABCD", inputs, strict=False)), "Z": out}, None


CHAIN = {"from": register(1, 9, 2), "one": lut(3, 2), "two": lut(4, 3, 2), "to": register(1, 4, 5)}


def test_the_slowest_path_counts_cells_and_wires(read):
    path, = paths.Timing(read(CHAIN)).longest()
    one, two = delays.wire_delay(None, None, "A", 2), delays.wire_delay(None, None, "A", 1)
    assert [step.cell.name for step in path.steps] == ["one", "two"]
    assert path.start.name == "from"
    assert path.end.name == "to"
    assert path.levels == 2
    # The LUT in front of a register sits beside it: no wire there.
    assert path.time == pytest.approx(0.52 + one + 0.24 + two + 0.24)


def test_paths_from_and_to_ports_are_told_apart(read):
    design = read({"one": lut(3, 8), "kept": register(1, 3, 5)}, None,
                  {"given": ("input", [8]), "taken": ("output", [3]), "clk": ("input", [1])})
    assert not paths.Timing(design).longest(paths.OUTPUT)
    path, = paths.Timing(design, paths.INPUT).longest(paths.OUTPUT)
    assert (path.pin_out, path.pin_in, path.levels) == ("given", "taken", 1)
    assert paths.Timing(design, paths.INPUT).longest()[0].end.name == "kept"


def test_a_carry_chain_is_one_level_and_cheap_along_the_chain(read):
    def carry(number, data):
        return "CCU2C", {"A0": data, "CIN": 20 + number, "COUT": 21 + number,
                         "S0": 40 + number}, None

    cells = {"from": register(1, 9, 2), "to": register(1, 44, 5),
             **{f"carry{number}": carry(number, 2 if not number else "0") for number in range(5)}}
    path, = paths.Timing(read(cells)).longest()
    assert path.levels == 1
    assert len(path.steps) == 5
    assert path.time == pytest.approx(
        0.52 + delays.wire_delay(None, None, "A0", 1) + delays.CARRY_IN + 3 * delays.CARRY
        + delays.CARRY_OUT)


def test_a_loop_without_a_register_is_refused(read):
    with pytest.raises(MicrotronError, match=r"2 cells are in or behind a loop .* such as one"):
        paths.Timing(read({"one": lut(3, 4), "two": lut(4, 3)}))


def test_the_address_of_a_lut_ram_passes_and_its_data_do_not(read):
    ram = "TRELLIS_DPR16X4", {"RAD": [2, "0", "0", "0"], "DI": [2, "0", "0", "0"], "WCK": 1,
                              "DO": [3, 31, 32, 33]}, None
    design = read({"from": register(1, 9, 2), "ram": ram, "to": register(1, 3, 5)})
    ends = {(end.cell.name, end.pin) for end in paths.Timing(design).ends()}
    assert ends == {("ram", "DI[0]"), ("to", "DI")}


def gate(kind, source, out, *inputs):
    return f"$_{kind}_", {**dict(zip("AB", inputs, strict=False)), "Y": out}, source


def test_a_path_through_luts_is_told_in_lines_of_source(read):
    """The longest way through the gates, not the one through a single gate."""
    gates = read({"from": register(1, 9, 2), "to": register(1, 6, 5),
                  "$1": gate("AND", "hw/gemm/mac.py:1", 3, 2, 8), "$2": gate("OR", None, 4, 3, 8),
                  "$3": gate("XOR", "hw/gemm/mac.py:2", 6, 4, 2)},
                 {"row.early": [3], "row.sum": [6], "row.result": [5]})
    path, = paths.Timing(read(CHAIN)).longest()
    places = explain.Explainer(gates).explain(path)
    assert [(place.source, place.names, place.gates) for place in places] == [
        ("hw/gemm/mac.py:7", ("from",), 0), ("hw/gemm/mac.py:1", ("row.early",), 1),
        ("hw/gemm/mac.py:2", ("row.sum",), 2), ("hw/gemm/mac.py:7", ("to",), 0)]


def test_a_name_is_taken_from_the_unit_that_the_line_describes(read):
    design = read({}, {"outer.ready": [7], "outer.inner.taken": [7]})
    assert design.name_of(7, None) == "outer.inner.taken"
    scopes = {"outer": "hw/store/store.py", "outer.inner": "hw/transfer/burst_walker.py"}
    here = netlist.Netlist({}, {}, {}, design.names, scopes)
    assert here.name_of(7, "hw/store/store.py:3") == "outer.ready"
    assert here.name_of(7, "hw/transfer/burst_walker.py:3") == "outer.inner.taken"
    assert here.name_of(8, "hw/transfer/burst_walker.py:3") is None


def test_luts_belong_to_most_of_their_readers(read, tmp_path):
    cells = read({
        "$a": register(1, 10, 2), "$b": register(1, 11, 3), "$c": register(1, 11, 4),
        "$x": lut(10, 12), "$y": lut(11, 12), "$z": lut(12, 2)})
    gates = read({name: register(1, 9, bit) for name, bit in (("$a", 2), ("$b", 3), ("$c", 4))},
                 {"accelerator.load.a": [2], "accelerator.store.b": [3],
                  "accelerator.store.row.c": [4]})
    design = synthesis.Synthesis(tmp_path, gates, cells)
    owner = owners.owners_by_unit(design, ("load", "store", "store.row"), 1)
    assert owner == {"$a": "load", "$b": "store", "$c": "store", "$x": "load", "$y": "store",
                     "$z": "load"}
    assert owners.owners_by_unit(design, ("load", "store", "store.row"), 2)["$c"] == "store.row"
    area = owners.area_by_unit(design, families.FAMILIES["ecp5"], owner)
    assert {unit: (each["lut"], each["register"]) for unit, each in area.items()} == {
        "load": (2, 1), "store": (1, 2)}


SDF = r"""(DELAYFILE
  (CELL (CELLTYPE "top")
    (INSTANCE )
        (INTERCONNECT pad/O \$a/CLK (0:0:0) (0:0:0))
        (INTERCONNECT pad/O \$b/CLK (0:0:0) (0:0:0))
        (INTERCONNECT \$a/Q sum.slice\[0\]\$CCU2_COMB0/A (100:200:300) (100:200:300))
        (INTERCONNECT sum.slice\[0\]\$CCU2_COMB0/FCO sum.slice\[0\]\$CCU2_COMB1/FCI (0:0:0) (0:0:0))
        (INTERCONNECT sum.slice\[0\]\$CCU2_COMB1/F \$b/M (1:2:700) (1:2:700))
    (INSTANCE \$a)
        (IOPATH CLK Q (430:477:525) (430:477:525))
    (INSTANCE sum.slice\[0\]\$CCU2_COMB0)
        (IOPATH A FCO (175:311:447) (175:311:447))
    (INSTANCE sum.slice\[0\]\$CCU2_COMB1)
        (IOPATH FCI F (295:349:403) (295:349:403))
    (INSTANCE \$b)
      (SETUPHOLD (posedge M) (posedge CLK) (10:20:30) (233:268:303))
      (SETUPHOLD (negedge M) (posedge CLK) (10:20:30) (233:268:303))
"""


def test_a_placed_path_adds_up_what_nextpnr_wrote(read, tmp_path):
    path = tmp_path / "delays.sdf.gz"
    with gzip.open(path, "wt") as file:
        file.write(SDF)
    timing = PlacedTiming(sdf.read_sdf(path))
    (end, time), = timing.ends()
    assert end == ("$b", "M")
    assert time == pytest.approx(0.525 + 0.3 + 0.447 + 0.403 + 0.7 + 0.03)
    gates = read({"$a": register(1, 9, 2), "$b": register(1, 4, 5),
                  "sum.slice[0]": ("CCU2C", {"A0": 2, "S1": 4}, "hw/transfer/burst_walker.py:3")})
    found = placed.to_path(timing.path_to(end), gates)
    assert [(step.cell.name, step.pin, step.out) for step in found.steps] == [
        ("sum.slice[0]", "A0", "S1")]
    assert (found.start.name, found.end.name, found.pin_in) == ("$a", "$b", "DI")
    assert found.time == pytest.approx(time)
    assert found.levels == 1
    assert [place.cell for place in explain.Explainer(gates).explain(found)] == [
        "TRELLIS_FF", "CCU2C", "TRELLIS_FF"]


def test_units_are_named_by_their_place_and_others_refused():
    text = "".join(f"module \\{name}\nend\n" for name in (
        "top", "top.accelerator", "top.accelerator.store", "top.accelerator.store.reader"))
    assert synthesis.list_units(text) == ["store", "store.reader"]
    synthesis.check_unit("store.reader", text)
    with pytest.raises(MicrotronError, match=r"no unit 'store.raeder'.* as store.reader"):
        synthesis.check_unit("store.raeder", text)


def test_inputs_of_a_lut_in_the_same_place_are_no_wires_of_this_one():
    def cell(name, kind, inputs, outputs):
        return netlist.Cell(name, kind, None, inputs, outputs)

    cells = {each.name: each for each in (
        cell("first", "FDRE", {}, {"Q": 1}), cell("other", "FDRE", {}, {"Q": 2}),
        cell("sum", "CARRY4", {}, {"O[0]": 3}), cell("lut", "LUT2", {"I0": 1, "I1": 3}, {"O": 4}),
        cell("last", "FDRE", {"D": 4}, {"Q": 5}))}
    delays = sdf.Delays(wires={
        ("lut", "A1"): (("first", "Q"), 1.0), ("lut", "A2"): (("other", "Q"), 9.0),
        ("lut", "A3"): (("sum$split$muxcy0$PACKED", "O0"), 1.0),
        ("lut", "A4"): (("made by nextpnr", "O6"), 1.0), ("last", "D"): (("lut", "O6"), 1.0)})
    placed.drop_neighbour_wires(delays, netlist.Netlist(cells, {}, {}, {}, {}))
    assert set(delays.wires) == {("lut", "A1"), ("lut", "A3"), ("lut", "A4"), ("last", "D")}
