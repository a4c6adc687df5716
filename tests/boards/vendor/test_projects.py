"""Vendors' projects wire the ports that the Verilog has; nothing here can place them."""

from __future__ import annotations

import re

import pyslang
import pytest

from microtron.boards.build.flow import flow_of
from microtron.boards.facts.catalogue import find_board, load_boards
from microtron.boards.facts.errors import BoardError
from microtron.boards.vendor import quartus, vivado
from microtron.boards.vendor.axi_ports import IP, MODULE, ports_of
from microtron.isa.config import tiny

from ...hw.emitted import emitted

TINY = tiny.to_dict()
VIVADO = [each.name for each in load_boards() if each.flow in ("vivado", "zynq")]


@pytest.fixture(scope="module")
def accelerator():
    return emitted(tiny)


def elaborate(*sources):
    """Top modules by name, if slang has nothing against the sources."""
    compilation = pyslang.ast.Compilation()
    for source in sources:
        compilation.addSyntaxTree(pyslang.syntax.SyntaxTree.fromText(source))
    serious = [each for each in compilation.getAllDiagnostics() if each.isError()]
    assert not serious, [str(each.code) for each in serious]
    return {each.name: each for each in compilation.getRoot().topInstances}


def ports_in(instance):
    return {port.name: (str(port.direction).rpartition(".")[2], port.type.bitWidth)
            for port in instance.body.portList}


def test_the_ports_are_those_of_the_verilog(accelerator):
    there = ports_in(elaborate(accelerator)[MODULE])
    ours = {port.name: ("Out" if port.is_output else "In", port.width) for port in ports_of(TINY)}
    assert ours == {name: each for name, each in there.items() if not name.startswith("trace_")}


@pytest.mark.parametrize("block", [vivado.format_block(TINY),
                                   quartus.wrap_accelerator(ports_of(TINY), {})])
def test_the_block_joins_every_port_to_one_of_its_width(accelerator, block):
    top = elaborate(accelerator, block)[IP]
    inner = ports_in(elaborate(accelerator)[MODULE])
    joined = re.findall(r"\.(\w+)\((\w+)\)", block)
    assert all(one == other for one, other in joined)
    assert {one for one, _ in joined} == {name for name in inner if not name.startswith("trace_")}
    assert all(inner[name] == each for name, each in ports_in(top).items())


def test_vivado_is_told_what_every_port_is():
    text = vivado.format_block(TINY)
    told = dict(re.findall(r'X_INTERFACE_INFO = "(\S+ \S+ \S+)" \*\)\n(?:  \(\*.*\*\)\n)?'
                           r"  (?:in|out)put wire (?:\[\d+:0\] )?(\w+)", text))
    assert len(told) == text.count("X_INTERFACE_INFO")
    assert set(told.values()) == {port.name for port in ports_of(TINY)}
    for role, name in told.items():
        _, interface, signal = role.split()
        assert name in (f"{interface}_{signal.lower()}", interface)


@pytest.mark.parametrize("name", VIVADO)
def test_what_vivados_script_wires_exists(name):
    """Every pin and interface that is joined belongs to a cell that was made, and the accelerator's
    are those that its block declares."""
    script = vivado.format_project(find_board(name))
    cells = set(re.findall(r"^create_bd_cell .* (\w+)$", script, re.M))
    used = re.findall(r"get_bd_(?:intf_)?pins (\w+)/(\w+)", script)
    assert {cell for cell, _ in used} == cells == {"processor", "accelerator", "reset", "control",
                                                   "memory"}
    declared = set(re.findall(r'X_INTERFACE_INFO = "\S+ (\S+) ', vivado.format_block(TINY)))
    assert {pin for cell, pin in used if cell == "accelerator"} == declared
    clocked = re.findall(r"get_bd_pins processor/(?:FCLK_CLK0|pl_clk0)\] \[get_bd_pins (\w+)/",
                         script)
    assert set(clocked) == cells
    assert f"-part {find_board(name).part.name} " in script
    assert f"{{{find_board(name).clock.system_hz / 1e6:g}}}" in script
    assert script.count("{") == script.count("}")
    assert script.count("[") == script.count("]")


def test_vivado_is_refused_for_other_parts():
    with pytest.raises(BoardError, match=r"ulx3s: part is 'LFE5U-85F-6BG381C', but must be a Zynq"):
        vivado.format_project(find_board("ulx3s"))


def test_quartus_is_told_every_port_once(accelerator):
    text = quartus.format_component(ports_of(TINY))
    there = ports_in(elaborate(accelerator)[MODULE])
    told = re.findall(r"^add_interface_port (\w+) (\w+) (\w+) (Input|Output) (\d+)$", text, re.M)
    assert {name: (direction.removesuffix("put"), int(width))
            for _, name, _, direction, width in told} == {
        name: each for name, each in there.items() if not name.startswith("trace_")}
    interfaces = re.findall(r"^add_interface (\w+) ", text, re.M)
    assert {interface for interface, *_ in told} == set(interfaces)
    for interface, name, role, *_ in told:
        assert name in (f"{interface}_{role}", interface)


def test_what_quartus_system_wires_exists():
    de10_nano = find_board("de10_nano")
    script = quartus.format_system(de10_nano)
    instances = dict(re.findall(r"^add_instance (\w+) (\w+)$", script, re.M))
    ends = re.findall(r"^add_connection (\w+)\.(\w+) (\w+)\.(\w+)$", script, re.M)
    assert {cell for one, _, other, _ in ends for cell in (one, other)} == set(instances)
    used = {pin for one, pin, other, second in ends for cell, pin in ((one, pin), (other, second))
            if cell == "accelerator"}
    component = quartus.format_component(ports_of(TINY))
    declared = set(re.findall(r"^add_interface (\w+) ", component, re.M))
    assert used == declared
    assert de10_nano.part.name in script
    assert f"PIN_{de10_nano.clock.pin}" in quartus.format_project(de10_nano)
    assert de10_nano.clock.hz == de10_nano.clock.system_hz, "there is no PLL"


def test_the_top_of_quartus_joins_every_pin_of_memory():
    declared = "".join(f", {direction} wire [{width - 1}:0] memory_{name}"
                       for name, (direction, width) in quartus.MEMORY.items())
    stub = f"module system (input wire clk_clk, input wire reset_reset_n{declared}); endmodule"
    assert set(elaborate(quartus.format_top(), stub)) == {"top"}


@pytest.mark.parametrize("name", ["kv260", "de10_nano"])
def test_a_project_is_not_called_a_bitstream(name):
    flow = flow_of(find_board(name))
    assert not flow.makes_bitstream
    build = flow.plan(find_board(name), tiny)
    assert build.product in build.steps[-1].outputs
    assert build.loads.rpartition(".")[0] == name
