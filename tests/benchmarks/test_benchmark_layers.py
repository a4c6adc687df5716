"""The benchmark of layers: its tables are those of the networks, its rows and sums add up."""

import importlib.util
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.compile import bound_of
from microtron.isa.config import base
from microtron.isa.memory_timing import MemoryTiming

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def layers():
    """The module, which is no part of the package and imports its neighbour."""
    spec = importlib.util.spec_from_file_location("layers", FOLDER / "layers.py")
    module = sys.modules["layers"] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FOLDER))
    try:
        spec.loader.exec_module(module)
        module.compile_op = cache(module.compile_op)        # some layers are measured repeatedly
        yield module
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("layers", "layer_sweep", "common", "cases", "cases.known_layers",
                     "cases.other_layers"):
            sys.modules.pop(name, None)


@pytest.fixture
def networks(layers):
    return sys.modules["cases.known_layers"]


def test_resnet_18_has_20_convolutions_of_which_vta_runs_19(networks):
    """Sums as published: 1,695.5 million products, 6,623,232 cycles of 256."""
    assert sum(layer.times for layer in networks.RESNET_18) == 20
    assert sum(layer.offloaded for layer in networks.RESNET_18) == 19
    macs = sum(layer.spec.macs * layer.offloaded for layer in networks.RESNET_18)
    assert macs == 6_623_232 * 256
    assert round(macs / 1e6, 1) == 1695.5


def test_both_numberings_are_there_in_their_order(networks):
    assert [layer.name for layer in networks.RESNET_18] == [f"C{n}" for n in range(1, 13)]
    named = [layer.vta for layer in networks.RESNET_18 if layer.vta]
    assert named == [f"C{n}" for n in range(1, 12)]
    other = next(layer for layer in networks.RESNET_18 if not layer.vta)
    assert other.name == "C3"
    assert other.times == 0


def test_every_layer_of_mobilenet_feeds_the_next(networks):
    """13 of them; between two, a depthwise convolution keeps the channels."""
    specs = [layer.spec for layer in networks.MOBILENET if layer.name.startswith("P")]
    assert sum(layer.times for layer in networks.MOBILENET if layer.name.startswith("P")) == 13
    assert specs[0].channels_in == 32
    for one, other in pairwise(specs):
        assert other.channels_in == one.channels_out
        assert other.height in (one.height, one.height // 2)
    assert (specs[-1].channels_out, specs[-1].height) == (1024, 7)


def test_mobilenet_takes_the_products_that_were_published(networks):
    """569 million, with the first layer and the classifier, which are not in the table."""
    first, classifier = 112 * 112 * 32 * 27, 1024 * 1000
    macs = sum(layer.spec.macs * layer.times for layer in networks.MOBILENET)
    assert round((macs + first + classifier) / 1e6) == 569


def test_a_block_of_bert_takes_its_products(networks):
    """By hand: four projections, scores and context of twelve heads, and two sides of the
    feed-forward layer."""
    words, width, head = 128, 768, 64
    macs = sum(layer.spec.macs * layer.times for layer in networks.BERT)
    assert macs == (4 * words * width**2 + 2 * 12 * words**2 * head
                    + 2 * words * width * 4 * width)
    assert [layer.spec.constant_weights for layer in networks.BERT] == [
        True, False, False, True, True]


def test_a_row_says_what_a_layer_needs_and_takes(layers):
    layer = next(each for each in layers.LAYERS if each.name == "C5")
    row = layers.measure_layer(layer, base, MemoryTiming(), 1)
    assert row["vta"] == "C4"
    assert row["macs"] == 28 * 28 * 128 * 64
    assert row["bytes"] == 28 * 28 * 64 + 64 * 128 + 28 * 28 * 128
    assert row["bound"] == row["macs"] / 256
    assert row["bound"] < row["cycles"] < row["cycles_without_hiding"]
    assert row["limit"] == "macs"
    assert row["efficiency"] == row["bound"] / row["cycles"]
    assert row["utilization"] == row["macs"] / (row["cycles"] * base.macs_per_cycle)
    assert row["gain"] == row["cycles_without_hiding"] / row["cycles"]
    assert sum(row["gemm"].values()) == row["cycles"]
    assert row["gemm"]["working"] >= row["bound"]


def test_where_the_cycles_of_gemm_went_adds_up(layers):
    layer = next(each for each in layers.LAYERS if each.name == "C11")
    kernel = microtron.compile_op(layer.spec, base)
    found = layers.profile(kernel.program)
    cycles = found.report.cycles
    least = bound_of(layer.spec, base)
    spent = layers.where(kernel.program, found, least.memory)
    gemm = next(each for each in found.engines if each.engine == "gemm")
    waits = sum(part for name, part in spent.items() if name.startswith("waits"))
    assert spent["after"] * cycles == pytest.approx(gemm.idle, abs=2)
    assert spent["before"] + waits + spent["after"] == pytest.approx(
        1 - gemm.working / cycles, abs=0.01)
    assert 0 < spent["beyond"] < spent["bus"] < 1
    assert spent["bus"] - spent["beyond"] == pytest.approx(least.memory / cycles)


def test_an_explanation_names_what_matters_and_nothing_else(layers):
    spent = {"before": 0.031, "waits for load": 0.124, "waits for alu": 0.001,
             "waits for store": 0, "after": 0.02, "bus": 0.93, "beyond": 0.08}
    assert layers.explain(spent) == (
        "3% before the first product, 2% after the last, 12% gemm waits for load; bus busy 93%, "
        "8% beyond the bound")


@pytest.mark.parametrize(("reference", "far"), [(None, True), (0.8, False), (0.99, True)])
def test_a_layer_is_explained_where_it_is_far_from_the_bound_or_the_reference(
        layers, monkeypatch, reference, far):
    monkeypatch.setattr(layers, "_reference", lambda *given: reference)
    layer = next(each for each in layers.LAYERS if each.name == "D9")       # 82 %
    row = layers.measure_layer(layer, base, MemoryTiming(), 1)
    assert row["far"] == far
    assert bool(row["note"]) == far


def rows_of(layers, network):
    """As if measured: every layer takes twice its products in cycles, four times if not hidden."""
    return [{"network": layer.network, "name": layer.name, "times": layer.times,
             "offloaded": layer.offloaded, "macs": layer.spec.macs, "bytes": 1,
             "bound": layer.spec.macs, "cycles": 2 * layer.spec.macs,
             "cycles_without_hiding": 4 * layer.spec.macs, "instructions": 1,
             "compile_seconds": 1.0} for layer in layers.LAYERS if layer.network == network]


def test_totals_count_layers_as_often_as_they_occur(layers):
    whole, offloaded = layers.totals(rows_of(layers, "resnet18"), base)
    assert (whole["times"], whole["instructions"], whole["compile_seconds"]) == (20, 20, 11.0)
    assert (offloaded["times"], offloaded["compile_seconds"]) == (19, 10.0)
    assert offloaded["macs"] == 6_623_232 * 256
    for row in (whole, offloaded):
        assert (row["efficiency"], row["efficiency_without_hiding"], row["gain"]) == (0.5, 0.25, 2)
        assert row["utilization"] == 0.5 / base.macs_per_cycle


def test_a_part_of_a_network_has_no_total(layers):
    assert layers.totals(rows_of(layers, "resnet18")[1:], base) == []


def test_layers_are_chosen_by_network_or_name(layers, networks):
    assert layers.select_layers("") == list(layers.LAYERS)
    assert [layer.name for layer in layers.select_layers("C9,C2")] == ["C2", "C9"]
    assert layers.select_layers("resnet18") == list(networks.RESNET_18)
    with pytest.raises(MicrotronError, match="there is no layer or network 'C99'; there are res"):
        layers.select_layers("C2,C99")


def test_options_make_another_bus_and_memory(layers):
    outcome = layers.measure(SimpleNamespace(all=False, config="small", bus=128, latency=100,
                                             layers="C8", repeats=1, verbose=True))
    assert outcome.facts["bus_bits"] == 128
    assert outcome.facts["read_latency"] == 100
    assert outcome.facts["macs_per_cycle"] == 64
    row, = outcome.rows
    assert {column.key for column in outcome.columns} <= set(row)
    assert row["bound"] == row["macs"] / 64


def test_a_sweep_measures_every_case_once_and_goes_on_where_it_stopped(layers, tmp_path, capsys):
    options = SimpleNamespace(all=True, resume=str(tmp_path / "rows"), seconds=60.0, json=False,
                              only="LeNet average")
    first = layers.measure(options)
    (row,) = first.rows
    config, memory = base, MemoryTiming()
    layer = next(each for each in sys.modules["cases.other_layers"].OTHER_LAYERS
                 if each.name == row["layer"])
    assert row["bound"] == bound_of(layer.spec, config, memory).alone
    assert row["efficiency"] == row["bound"] / row["cycles"] <= row["of_tiles"] <= 1
    sys.modules["layer_sweep"].compile_op = None        # not asked again
    assert layers.measure(options).rows == first.rows
    options.only = "no such layer"
    with pytest.raises(MicrotronError, match="no configuration or layer"):
        layers.measure(options)


def test_a_sweep_has_many_layers_and_configurations(layers):
    others = importlib.import_module("cases.other_layers")
    names = [layer.name for layer in others.OTHER_LAYERS]
    assert len(names) == len(set(names)) >= 120
    assert {layer.name for layer in others.PROBES} < set(names)
    assert len(others.PROBES) >= 20
    assert len(others.CONFIGURATIONS) > 12
    batches = {layer.spec.images for name, layer in others.cases()
               if name == "batch 16" and hasattr(layer.spec, "images")}
    assert batches == {16}
