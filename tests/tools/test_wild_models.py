"""Model files inside packages."""

from __future__ import annotations

import importlib.util
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ..compiler.frontends.onnx.onnx_models import graph_model

FILE = Path(__file__).parents[2] / "tools" / "wild_models.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("wild_models", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def relu() -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 3))
    model: onnx.ModelProto = graph_model([helper.make_node("Relu", ["x"], ["y"])], [x], ["y"])
    return model.SerializeToString()


@pytest.fixture
def packages(tmp_path):
    """A wheel and a tarball with the same model, one more in a folder, and an archive that is
    none."""
    with zipfile.ZipFile(tmp_path / "a-1-py3-none-any.whl", "w") as archive:
        archive.writestr("a/relu.onnx", relu())
        archive.writestr("a/readme.txt", "")
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("package/same.onnx")
        member.size = len(relu())
        archive.addfile(member, io.BytesIO(relu()))
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "bad.tflite").write_bytes(b"\0\0\0\0TFL3" + bytes(40))
    (tmp_path / "c.zip").write_bytes(b"nothing")
    return tmp_path


def test_files_are_found_in_folders_and_archives(tool, packages, capsys):
    assert [name for name, _ in tool.model_files(packages)] == [
        "a-1-py3-none-any.whl:a/relu.onnx", "b.tgz:package/same.onnx", "inside/bad.tflite"]
    assert "c.zip" in capsys.readouterr().err


def test_each_file_is_judged_once_in_a_process_of_its_own(tool, packages, capsys):
    assert tool.main([str(packages), "--config", "tiny", "--json", str(packages / "r.json")]) == 0
    right, refused = json.loads((packages / "r.json").read_text())
    assert (right["verdict"], right["error"], right["nodes"]) == ("right", 0, 1)
    assert right["options"]["shapes"] == {"x": [1, 3]}
    assert refused["verdict"] == "refused"
    assert "no valid FlatBuffer" in refused["reason"]
    assert "2 files: 1 right, 1 refused" in capsys.readouterr().out


def test_what_crashes_or_takes_long_is_told(tool, tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    path.write_bytes(relu())
    script = tmp_path / "worker.py"
    monkeypatch.setattr(tool, "__file__", str(script))
    arguments = tool.argparse.Namespace(config="tiny", seed=0, seconds=20, quantize=False)
    script.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert tool.judge(path, "m", arguments)["reason"] == "SIGSEGV"
    script.write_text("raise SystemExit('broken')")
    assert tool.judge(path, "m", arguments)["verdict"] == "crashed"
    script.write_text("import time; time.sleep(60)")
    arguments.seconds = 0.2
    assert tool.judge(path, "m", arguments)["verdict"] == "too long"


@pytest.mark.parametrize(("ours", "theirs", "verdict"), [
    ([1.0, 2.0], [1.0, 2.0], "right"), ([1.0, 2.0001], [1.0, 2.0], "right"),
    ([1.0, -2.0], [1.0, 2.0], "wrong"), ([1.0], [1.0, 2.0], "wrong"),
    ([1.0, np.nan], [1.0, 2.0], "wrong"), ([np.nan, 2.0], [np.nan, 2.0], "right"),
    ([0.0, 0.0], [0.0, 0.0], "right"), ([0.0, 0.0], [0.0, 1.0], "wrong")])
def test_outputs_are_compared(tool, ours, theirs, verdict):
    assert tool.compare([np.array(ours)], [np.array(theirs)])["verdict"] == verdict
    assert tool.compare([], [np.array(theirs)])["verdict"] == "wrong"
    assert tool.compare([np.array(ours, np.float32)], [np.array(theirs)])["verdict"] == "wrong"
