"""Static timing of a routed design, on a made-up part whose delays are added up by hand."""

import json

import pytest

from microtron.boards.facts.errors import BoardError
from microtron.boards.zynq import zynq_flow
from microtron.boards.zynq.timing.analysis import UNCERTAINTY, analyse_file
from microtron.boards.zynq.timing.cells import CellDelays
from microtron.boards.zynq.timing.fabric import Fabric, TileType
from microtron.boards.zynq.timing.routing import RoutedCell

DEVICE = "xc7z999"


def pip(source, target, delay, res, cap):
    there = {"delay": ["0", "0", "0", str(delay)], "res": str(res), "in_cap": str(cap)}
    return {"src_wire": source, "dst_wire": target, "is_directional": "1", "src_to_dst": there,
            "dst_to_src": there}


def pin(wire, delay=0.0, **more):
    return {"wire": wire, "delay": ["0", "0", "0", str(delay)], **more}


# A slice whose output goes over a wire into the next tile, where switches lead back to LUT inputs.
TILES = {
    "CLB": {"wires": {"OUT": None, "IN1": None, "IN2": None, "AX": None,
                      "BEG": {"res": "2000", "cap": "6"}},
            "pips": {"a": pip("OUT", "BEG", 0.1, 1000, 8)},
            "sites": [{"prefix": "SLICE", "name": "X0Y0", "site_pins": {
                "AQ": pin("OUT", 0.01, res="1500"), "A1": pin("IN1", 0.5, cap="0"),
                "A2": pin("IN2", 0.4, cap="0"), "AX": pin("AX", 0.0, cap="0"), "CLK": None}}]},
    "INT": {"wires": {"END": {"res": "1000", "cap": "4"}, "BACK1": None, "BACK2": None},
            "pips": {"b": pip("END", "BACK1", 0.2, 1200, 10),
                     "c": pip("END", "BACK2", 0.3, 1200, 10)}, "sites": []}}
GRID = {"CLB_X0Y0": {"type": "CLB", "grid_x": 1, "grid_y": 1},
        "INT_X0Y0": {"type": "INT", "grid_x": 2, "grid_y": 1}}
JOINTS = [{"grid_deltas": [1, 0], "tile_types": ["CLB", "INT"],
           "wire_pairs": [["BEG", "END"], ["IN1", "BACK1"], ["IN2", "BACK2"], ["AX", "BACK2"]]}]
CELL = '(CELLTYPE "{}")\n(INSTANCE SLICE)\n{}\n'
SLICE = "".join((
    CELL.format("LUT6", "(IOPATH A1 O6 (0.0::0.0)(0.1::0.124))\n"
                        "(IOPATH A2 O6 (0.0::0.0)(0.1::0.125))"),
    CELL.format("REG_INIT_FF", "(IOPATH CLK Q (0.1::0.1)(0.2::0.340))\n"
                "(SETUP CE (posedge CLK) (0.088::0.109))\n"
                "(SETUP DIN (posedge CLK) (-0.055::-0.045))"),
    CELL.format("REG_INIT_FF_QL", "(RECOVERY SR (posedge CLK) (0.3::0.404))"),
    CELL.format("FF_INIT", "(IOPATH CLK Q (0.1::0.1)(0.2::0.362))")))
DSP = "".join((
    CELL.format("DSP48E1_AREG_0_A_INPUT_DIRECT_MREG_1_USE_DPORT_FALSE_USE_MULT_MULTIPLY",
                "(SETUP A (posedge CLK) (-1.0::3.5))"),
    CELL.format("DSP48E1_AREG_1_A_INPUT_DIRECT", "(SETUP A (posedge CLK) (-0.1::0.362))"),
    CELL.format("DSP48E1_MREG_1_PREG_0", "(IOPATH CLK P (0.4::0.9)(1.0::2.305))"),
    CELL.format("DSP48E1_PREG_1", "(IOPATH CLK P (0.1::0.2)(0.3::0.434))")))
RAM = "".join((
    CELL.format("RAMBFIFO36E1", "(SETUP ADDRAU (posedge CLKARDCLKU) (-0.360::0.566))"),
    CELL.format("RAMBFIFO36E1RAM_MODE_U_RAMB18TDP_U_DOA_REG_U_0_EN_ECC_READ_FALSE",
                "(IOPATH CLKARDCLKU DOADOU (0.5::1.0)(1.3::2.454))"),
    CELL.format("RAMBFIFO36E1RAM_MODE_U_RAMB18TDP_U_DOA_REG_U_1_EN_ECC_READ_FALSE",
                "(IOPATH CLKARDCLKU DOADOU (0.2::0.3)(0.5::0.882))")))
ROUTING = """\
cell\tff\tSLICE_FFX\tX1Y1/SLICE_X0Y0.AFF\tINIT=x\t
cell\tlut\tSLICE_LUTX\tX1Y1/SLICE_X0Y0.A6LUT\t\tA1
cell\tend\tSLICE_FFX\tX1Y1/SLICE_X0Y0.BFF\tINIT=x\t
cell\tbuffer\tBUFGCTRL\tX9Y9/BUFG.BUFG\t\t
net\tq
from\tff\tQ\tX1Y1/SLICE_X0Y0.AFF_Q
to\tlut\tA1\tX1Y1/SLICE_X0Y0.A1
to\tlut\tA2\tX1Y1/SLICE_X0Y0.A2
pip\tNone
pip\tX1Y1/SLICE_X0Y0.AQ/SLICE_X0Y0.AFF_Q
pip\tX1Y1/OUT/SLICE_X0Y0.AQ
pip\tX1Y1/BEG/OUT
pip\tX2Y1/BACK1/END
pip\tX1Y1/SLICE_X0Y0.A2/IN1
net\td
from\tlut\tO6\tX1Y1/SLICE_X0Y0.O6
to\tend\tD\tX1Y1/SLICE_X0Y0.D
pip\tX1Y1/SLICE_X0Y0.D/SLICE_X0Y0.O6
net\tclock
from\tbuffer\tO\tX1Y1/CLOCK
to\tff\tCK\tX1Y1/CLOCK
to\tend\tCK\tX1Y1/CLOCK
"""
# Out of the register and its pin into a buffer's capacitance; behind that 10 fF of wire and another
# buffer's 10, of which the wire's 3,000 ohms see 15; the next buffer sees none; then the LUT's pin.
LOADED = 1e-6 * (1500 * 8 + 1000 * 20 + 3000 * 15)
WIRE = 0.01 + 0.1 + 0.2 + LOADED + 0.5


@pytest.fixture
def family(tmp_path):
    texts = {f"tile_type_{name}.json": each for name, each in TILES.items()}
    for name, text in {**texts, f"{DEVICE}/tilegrid.json": GRID,
                       f"{DEVICE}/tileconn.json": JOINTS}.items():
        (tmp_path / "db" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "db" / name).write_text(json.dumps(text))
    (tmp_path / "db" / "timings").mkdir()
    for names, text in {("CLBLL", "CLBLM"): SLICE, ("DSP",): DSP, ("BRAM",): RAM}.items():
        for name in names:
            for side in "LR":
                (tmp_path / "db" / "timings" / f"{name}_{side}.sdf").write_text(text)
    return tmp_path / "db"


def routed(tmp_path, text=ROUTING):
    (tmp_path / "routing.txt").write_text(text)
    return tmp_path / "routing.txt"


def test_a_path_takes_what_its_parts_take(tmp_path, family):
    """The slower register of a slice counts, and the pin at which the route ends: nextpnr routed to
    A2's wire and exchanged the inputs, of which the LUT reads one."""
    found = analyse_file(routed(tmp_path), family, DEVICE)
    assert found["period_ns"] == pytest.approx(
        0.362 + WIRE + 0.124 - 0.045 + UNCERTAINTY, abs=0.001)
    assert found["mhz"] == pytest.approx(1000 / found["period_ns"], rel=0.001)
    assert [hop["cell"] for hop in found["path"]] == ["ff", "lut", "end"]
    assert found["path"][1]["wire_ns"] == pytest.approx(WIRE, abs=0.001)


def test_a_second_branch_loads_the_first(tmp_path, family):
    text = ROUTING.replace("pip\tX2Y1/BACK1/END", "pip\tX2Y1/BACK1/END\npip\tX2Y1/BACK2/END")
    found = analyse_file(routed(tmp_path, text), family, DEVICE)
    assert found["path"][1]["wire_ns"] == pytest.approx(WIRE + 1e-6 * 4000 * 10, abs=0.001)


@pytest.mark.parametrize(("old", "new", "complaint"), [
    ("pip\tX2Y1/BACK1/END\n", "", "q: its route does not reach A1 of lut"),
    ("D/SLICE_X0Y0.O6\n", "C/SLICE_X0Y0.O6\n", "d: its route does not reach D of end"),
    ("pip\tX1Y1/BEG/OUT", "pip\tX1Y1/BEG/IN3", "has no switch from IN3 to BEG"),
    ("pip\tX2Y1/BACK1", "pip\tX7Y1/BACK1", "there is no tile at X7Y1"),
    ("X1Y1/SLICE_X0Y0.A1\n", "SLICE\n", "'SLICE' is no wire, as X53Y47/CLBLM_L_BQ is"),
    ("\tSLICE_FFX\tX1Y1/SLICE_X0Y0.BFF", "\tLATCH\tX1Y1", "how long a LATCH takes is not known"),
    ("net\tclock", "net\tother\nnet\tclock", None),
])
def test_what_cannot_be_timed_is_not_passed_over(tmp_path, family, old, new, complaint):
    assert old in ROUTING
    path = routed(tmp_path, ROUTING.replace(old, new))
    if complaint is None:
        assert analyse_file(path, family, DEVICE)["ends"] == 1
        return
    with pytest.raises(BoardError, match=complaint):
        analyse_file(path, family, DEVICE)


def test_a_lut_that_passes_a_signal_on_takes_time(family):
    kind = TileType(TILES["CLB"])
    found = kind.switch("IN1", "OUT")
    assert found.delay == pytest.approx(0.5 + 0.157 + 0.01)
    assert found.resistance == 1500


def test_wires_of_neighbours_are_one_node(family):
    fabric = Fabric(family, DEVICE)
    assert fabric.node((1, 1, "BEG")) is fabric.node((2, 1, "END"))
    assert fabric.node((1, 1, "BEG")).capacitance == 10
    assert fabric.node((1, 1, "IN1")) is not fabric.node((1, 1, "IN2"))


@pytest.mark.parametrize(("parameters", "setup", "out"), [
    ({"AREG": "0" * 32, "PREG": "0", "MREG": "1"}, 3.5, 2.305),
    ({"AREG": "1", "PREG": "1"}, 0.362, 0.434),
    ({}, 0.362, 0.434),
])
def test_a_multiplier_takes_what_its_registers_leave(family, parameters, setup, out):
    cell = RoutedCell("DSP48E1_DSP48E1", "", parameters, frozenset())
    found = CellDelays(family).timing(cell, frozenset({"A17", "P3", "CLK"}))
    assert found.setups == {"A17": setup}
    assert found.arcs == {("CLK", "P3"): out}


@pytest.mark.parametrize(("register", "out"), [("0", 2.454), ("1", 0.882)])
def test_a_block_ram_takes_less_with_a_register_behind_it(family, register, out):
    cell = RoutedCell("RAMB36E1_RAMB36E1", "", {"DOA_REG": register}, frozenset())
    found = CellDelays(family).timing(
        cell, frozenset({"ADDRARDADDRL3", "CLKARDCLKL", "DOADO31"}))
    assert found.setups == {"ADDRARDADDRL3": 0.566}
    assert found.arcs == {("CLKARDCLKL", "DOADO31"): out}


def test_a_report_has_our_clock_and_keeps_nextpnr_s(tmp_path, family, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(zynq_flow, "family_folder", lambda: family)
    routed(tmp_path)
    (tmp_path / "timing.json").write_text(json.dumps(
        {"fmax": {"clk": {"achieved": 900.0, "constraint": 100}}, "utilization": {}}))
    zynq_flow.prove_timing(DEVICE)
    found = json.loads((tmp_path / "proven.json").read_text())
    assert found["fmax"]["clk"]["nextpnr"] == 900
    assert found["fmax"]["clk"]["achieved"] == found["analysis"]["mhz"] < 900
