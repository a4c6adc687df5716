"""`microtron quantize`, and `--data` of other commands."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.quantization.export.write_onnx import write_onnx
from microtron.quantization.prepare import prepare

from ..command import bad, good
from .float_graphs import samples_for, small_network


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("files")
    graph = prepare(small_network())
    (tmp_path / "m.onnx").write_bytes(write_onnx(graph, {}).SerializeToString())
    samples = samples_for(graph, 4)
    np.savez(tmp_path / "s.npz", x=np.concatenate([each["x"] for each in samples]))
    (tmp_path / "labels.txt").write_text(" ".join(
        str(int(evaluate(graph, each)["scores"].argmax())) for each in samples))
    return tmp_path


def test_a_float_file_becomes_a_quantized_one(files):
    text = good("quantize", "m.onnx", "--data", "s.npz", "--config", "none", "--json", cwd=files)
    report = json.loads(text)
    assert report["file"] == "m_int8.onnx"
    assert report["samples"] == 4
    assert not report["random_data"]
    assert min(report["output_sqnr"].values()) > 15
    kinds = {node.op_type for node in onnx.load(files / "m_int8.onnx").graph.node}
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= kinds
    table = good("quantize", "m.onnx", "--random-data", "--config", "none", "--techniques", "",
                 "-o", "r.onnx", cwd=files)
    assert "timing only" in " ".join(table.split())
    assert "what hurts most" in table


def test_other_commands_quantize_on_the_way(files):
    text = good("compile", "m.onnx", "--data", "s.npz", "--config", "tiny", "--json", cwd=files)
    report = json.loads(text)
    assert report["totals"]["cpu_macs"] == 0 < report["totals"]["macs"]


@pytest.mark.parametrize(("words", "message"), [
    (("m.onnx",), "needs samples of the model's inputs: --data"),
    (("m.onnx", "--data", "no.npz"), "no.npz: there is no such file or folder"),
    (("m.onnx", "--data", "s.npz", "-o", "m.mt"), "--output is m.mt, but must be an .onnx file"),
    (("m.onnx", "--data", "s.npz", "-o", "no/m.onnx"), "no/m.onnx: cannot be written"),
    (("m.onnx", "--data", "s.npz", "--method", "mean"), "method is 'mean'"),
    (("m.onnx", "--data", "s.npz", "--techniques", "magic"), "techniques have 'magic'"),
    (("m.onnx", "--data", "s.npz", "--labels", "labels.txt"), "labels are for models with one"),
    (("m.onnx", "--preprocess", "size=4"), "name their folder with --data"),
    (("m.onnx", "--data", "s.npz", "--max-loss", "-1"), "max_loss is -1"),
])
def test_bad_input_is_one_line(files, words, message):
    assert message in bad("quantize", *words, cwd=files)
