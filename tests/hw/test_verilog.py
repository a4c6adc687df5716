"""The Verilog we emit, read back by other people's tools: ports, widths, latches and drivers."""

import gc
import re
import subprocess
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable

from microtron.hw.alu.alu_decode import decoded_layout
from microtron.hw.alu.alu_lane import LIMITED
from microtron.hw.alu.alu_results import ticket_layout
from microtron.hw.counters import COUNTER_BITS
from microtron.hw.fetch.fetch import JUDGEMENT
from microtron.hw.gemm.gemm import READ, TASK, write_stage
from microtron.hw.gemm.gemm_decode import JUDGED
from microtron.hw.load.load_steps import LoadSteps
from microtron.hw.logic import exponent
from microtron.hw.store.store_steps import StoreSteps
from microtron.hw.top import MODULE, TRACE
from microtron.isa.instructions import INSTRUCTION_BYTES, POSITION_BITS, Buffer, Engine

from .emitted import CONFIGS, emitted


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.soak] if name != "tiny" else [])
                        for name in CONFIGS])
def design(request):
    """A configuration and its Verilog."""
    config = CONFIGS[request.param]
    return config, emitted(config)


def expected_ports(config):
    """The contract with whoever instantiates the accelerator: name → direction and width."""
    address = {"id": 1, "addr": config.address_bits, "len": 8, "size": 3, "burst": 2, "lock": 1,
               "cache": 4, "prot": 3, "qos": 4, "valid": 1}
    out = {f"m_axi_{channel}{name}": width for channel in ("ar", "aw")
           for name, width in address.items()}
    out |= {"m_axi_wdata": config.bus_bits, "m_axi_wstrb": config.bus_bytes, "m_axi_wlast": 1,
            "m_axi_wvalid": 1, "m_axi_rready": 1, "m_axi_bready": 1, "s_axi_awready": 1,
            "s_axi_wready": 1, "s_axi_bresp": 2, "s_axi_bvalid": 1, "s_axi_arready": 1,
            "s_axi_rdata": 32, "s_axi_rresp": 2, "s_axi_rvalid": 1, "interrupt": 1,
            "trace_running": 1}
    out |= {f"trace_{engine.name.lower()}_{name}": width for engine in Engine
            for name, width in TRACE.items()}
    into = {"clk": 1, "rst": 1, "m_axi_arready": 1, "m_axi_rid": 1, "m_axi_rdata": config.bus_bits,
            "m_axi_rresp": 2, "m_axi_rlast": 1, "m_axi_rvalid": 1, "m_axi_awready": 1,
            "m_axi_wready": 1, "m_axi_bid": 1, "m_axi_bresp": 2, "m_axi_bvalid": 1,
            "s_axi_awaddr": 12, "s_axi_awprot": 3, "s_axi_awvalid": 1, "s_axi_wdata": 32,
            "s_axi_wstrb": 4, "s_axi_wvalid": 1, "s_axi_bready": 1, "s_axi_araddr": 12,
            "s_axi_arprot": 3, "s_axi_arvalid": 1, "s_axi_rready": 1}
    return {**{name: ("Output", width) for name, width in out.items()},
            **{name: ("Input", width) for name, width in into.items()}}


@pytest.mark.filterwarnings("ignore")       # the parser's own, about its grammar
def test_ports_and_widths_are_the_contract(design, tmp_path, monkeypatch):
    from pyverilog.vparser import ast
    from pyverilog.vparser.parser import VerilogParser

    config, text = design
    monkeypatch.chdir(tmp_path)             # the parser leaves its tables where it runs
    top = text[re.search(rf"^module {MODULE}\(", text, re.M).start():]
    top = re.sub(r"\(\* .*? \*\)", "", top[:top.index("endmodule") + len("endmodule")])
    description = VerilogParser(outputdir=str(tmp_path), debug=False).parse(top).description
    module, = description.definitions
    found = {}
    for declaration in module.items:
        for each in getattr(declaration, "list", ()):
            if isinstance(each, ast.Input | ast.Output):
                width = 1 if each.width is None else int(each.width.msb.value) + 1
                found[each.name] = type(each).__name__, width
    assert found == expected_ports(config)
    assert {port.name for port in module.portlist.ports} == set(found)


def test_a_second_parser_elaborates_it_without_complaint(design):
    import pyslang

    _, text = design
    tree = pyslang.syntax.SyntaxTree.fromText(text)
    compilation = pyslang.ast.Compilation()
    compilation.addSyntaxTree(tree)
    errors = [str(each.code) for each in compilation.getAllDiagnostics() if each.isError()]
    assert errors == []
    assert [top.name for top in compilation.getRoot().topInstances] == [MODULE]


def prepared_bits(steps, config):
    """The width of what LOAD or STORE queues. The unit is never used, and nobody minds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        bits = steps(config).prepared_layout.size
        gc.collect()
    return bits


def expected_memories(config):
    """Everything that is to become block RAM or distributed RAM: place → words and bits a word."""
    command, beat = 8 * INSTRUCTION_BYTES + POSITION_BITS, config.bus_bits
    tile = {buffer: 8 * config.tile_bytes(buffer) for buffer in Buffer}
    scratchpads = {buffer.name.lower(): max(tile[buffer], beat)
                   for buffer in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.OUT)}
    return {
        **{f"{name}.memory": (8 * getattr(config, f"{name}_bytes") // word, word)
           for name, word in scratchpads.items()},
        **{f"accumulator.bank_{bank}": (config.acc_bank_tiles, tile[Buffer.ACC])
           for bank in range(config.acc_banks)},
        **({f"{engine.name.lower()}_queue.places": (config.queue_depth, bits)
            for engine, bits in ((Engine.LOAD, command), (Engine.GEMM, JUDGED.size),
                                 (Engine.ALU, decoded_layout(config).size),
                                 (Engine.STORE, command))} if config.queue_depth > 2 else {}),
        "fetch.buffer.storage": (16, JUDGEMENT.size),
        "fetch.words": (16, 8 * INSTRUCTION_BYTES),
        "control.segments.low": (8, 32), "control.segments.size": (8, 32),
        **({"control.segments.high": (8, config.address_bits - 32)} if config.address_bits > 32
           else {}),
        "control.counters.memory": (32, COUNTER_BITS - exponent(64 * config.bus_bytes)),
        "load.queue.places": (4, prepared_bits(LoadSteps, config)),
        "store.queue.storage": (3, prepared_bits(StoreSteps, config)),  # the last is in a register
        "store.awaited.storage": (config.writes_in_flight + 1, POSITION_BITS + 6),
        "store.reader.queue.storage": (5, beat + beat // 8),
        "writer.lengths.storage": (max(config.writes_in_flight, 2), 8),
        **{f"alu.results.result_memory_{part}": (16, tile[Buffer.ACC] // config.vector_cycles)
           for part in range(config.vector_cycles)},
        "alu.results.ticket_memory": (16, ticket_layout(config).size),
        "gemm.read_task": (READ, TASK.size),
        "gemm.last_task": (write_stage(config) - 1 - READ, TASK.size),
        "alu.lanes.limits": (LIMITED - 1, 25),
    }


def modules(text):
    """The modules by their place in the accelerator."""
    return {name.removeprefix(f"{MODULE}.").partition("$")[0]: body for name, body in re.findall(
        r"^module \\?(\S+?)\s*\(.*?\);(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)}


def test_scratchpads_and_queues_are_memories_of_the_right_size(design):
    config, text = design
    found = {f"{place}.{name}": (int(last) + 1, int(top) + 1)
             for place, body in modules(text).items()
             for top, name, last in re.findall(r"^ *reg \[(\d+):0\] (\w+) \[(\d+):0\];", body,
                                               re.MULTILINE)}
    expected = expected_memories(config)
    # In line, items have nothing but their order: synthesis drops that.
    expected |= {place.replace(".places", ".line.storage"): (words, 1)
                 for place, (words, _) in expected.items() if place.endswith("queue.places")}
    for place, (words, _) in expected.items():
        if words < 2:                       # one word needs no memory
            found[place] = expected[place]
    assert found == expected


def test_there_are_as_many_multipliers_as_the_configuration_says(design):
    config, text = design
    rows = [body for place, body in modules(text).items() if ".row_" in place]
    assert sum(body.count(" * ") for body in rows) == config.macs_per_cycle


def test_no_signal_of_ours_is_without_bits(design):
    """Amaranth's queues of depth 1 have pointers of no bits; they are left to Amaranth."""
    queues = {place.rpartition(".")[0] for place in expected_memories(design[0])
              if place.endswith(".storage")}
    assert [place for place, body in modules(design[1]).items()
            if "[-1:0]" in body and place not in queues] == []


def complaints(text, folder):
    """Latches and signals with several drivers, as Verilator sees them."""
    (folder / "design.v").write_text(text)
    done = subprocess.run(
        ["verilator", "--lint-only", "-Wno-lint", "-Wno-fatal", "-Wwarn-LATCH",
         "-Wwarn-MULTIDRIVEN", "design.v"], cwd=folder, capture_output=True, text=True, check=False)
    return re.findall("%(Warning-LATCH|Warning-MULTIDRIVEN|Error[^:]*)", done.stderr)


def test_there_is_no_latch_and_nothing_has_two_drivers(design, tmp_path):
    assert complaints(design[1], tmp_path) == []


def test_no_block_waits_for_signals_that_it_does_not_read(design):
    """`always @* a = 1;` has nothing to wait for: some simulators run it, some never do."""
    assert re.findall(r"always @\*\s+(?!begin)[^;=]+ = \d+'[sbhd]+[0-9a-fx]+;", design[1]) == []


@pytest.mark.parametrize(("body", "kind"), [
    ("always @* if (a) q = b;", "Warning-LATCH"),
    ("always @(posedge a) q <= b; always @(posedge b) q <= a;", "Warning-MULTIDRIVEN"),
])
def test_the_checks_above_can_fail(body, kind, tmp_path):
    text = f"module m(input a, b, output reg q);\n{body}\nendmodule\n"
    assert complaints(text, tmp_path) == [kind]
