"""The benchmark of networks: its rows add up, and unknown names are refused."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from microtron.base.errors import MicrotronError
from microtron.isa.config import base
from microtron.isa.config_files import load_config
from microtron.sim.simulate import simulate

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def networks():
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        specification = importlib.util.spec_from_file_location("networks", FOLDER / "networks.py")
        module = importlib.util.module_from_spec(specification)
        sys.modules["networks"] = module        # dataclasses look there
        specification.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FOLDER))
        for name in {"networks", "common", "models"} - before:
            sys.modules.pop(name, None)


def test_a_row_says_what_a_network_takes_beside_its_layers_alone(networks, monkeypatch):
    [digits] = networks.select_networks(["digits"])
    asked = []

    def note(path, config, anew, bytecode):        # another test starts the command
        asked.append((anew, bytecode))
        return len(asked)

    monkeypatch.setattr(networks, "_command_seconds", note)
    row = networks.measure_network(digits, "tiny")
    assert [anew for anew, _ in asked] == ["1", "1", "0", "0"]
    assert len({bytecode for _, bytecode in asked}) == 1
    assert (row["compile_anew_seconds"], row["compile_seconds"]) == (2, 4)
    assert row["network"] == "digits"
    assert row["macs"] == 388_736
    assert row["cpu_share"] == 0
    assert row["cpu_seconds"] == row["cpu_node_seconds"] + row["cpu_move_seconds"]
    assert 0 < row["cpu_move_seconds"] < row["run_seconds"]
    assert 0 < row["cpu_nodes"] < row["nodes"]
    assert row["accelerator_efficiency"] == row["bound"] / row["cycles"]
    assert row["accelerator_utilization"] == row["macs"] / (row["cycles"] * 16)
    assert row["seam"] == row["alone"] / row["cycles"]
    assert row["instruction_bytes"] == 32 * row["instructions"]
    assert 0 < row["peak_memory"] <= row["tensor_memory"]
    assert row["run_seconds"] > 0
    assert row["compile_bytes"] >= row["start_bytes"] > 1 << 20


def test_the_command_keeps_bytecode_for_the_next(networks, tmp_path):
    [digits] = networks.select_networks(["digits"])
    assert networks._command_seconds(digits.path, "tiny", "1", tmp_path) > 0
    assert list(tmp_path.rglob("cli/main.*.pyc"))


def test_layers_alone_are_programs_of_their_own(networks):
    from microtron import compile_op
    from microtron.isa.memory_timing import MemoryTiming
    [digits] = networks.select_networks(["digits"])
    network = networks.compile_to_network(digits.path, "tiny", networks.ModelOptions(), version="0")
    alone = [simulate(compile_op(layer.spec, "tiny").program).cycles
             for step in network.steps if hasattr(step, "layers") for layer in step.layers]
    assert len(alone) >= 5
    assert networks.sum_layer_cycles(network, MemoryTiming()) == sum(alone)


def test_networks_are_chosen_by_name(networks):
    usual = [each.name for each in networks.select_networks([])]
    assert {"digits", "resnet18", "mobilenet_v2"} <= set(usual)
    assert "resnet50" not in usual
    assert [each.name for each in networks.select_networks(["resnet50"])] == ["resnet50"]
    with pytest.raises(MicrotronError, match="there is no network 'alexnet'; there are digits"):
        networks.select_networks(["alexnet"])


def test_a_shape_is_base_with_other_blocks(networks, tmp_path):
    assert networks.config_file("small", tmp_path) == "small"
    config = load_config(networks.config_file("1x32x16", tmp_path))
    assert config == replace(base, block_in=32)
    with pytest.raises(MicrotronError, match="block_in is 24"):
        networks.config_file("1x24x16", tmp_path)
