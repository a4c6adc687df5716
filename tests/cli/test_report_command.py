"""`microtron report` and the option --report: a file, or one line on what is wrong."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import microtron

from ..command import bad, good
from ..runtime.small_model import small_graph


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "small.mt"
    microtron.compile(small_graph(), "tiny").save(path)
    return path


@pytest.fixture(autouse=True)
def _with_the_cache(monkeypatch):
    """The same networks are compiled again and again, and their compiler has tests of its own."""
    monkeypatch.delenv("MICROTRON_ANEW", raising=False)


def data_of(path):
    """What a report shows."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_a_report_holds_what_inspect_says(image, tmp_path):
    target = tmp_path / "report.html"
    said = good("report", image, "-o", target, "--clock", 50)
    assert said == f"{target}: a report on small.mt; open it in a browser\n"
    shown = data_of(target)["runs"]
    wanted = json.loads(good("inspect", image, "--clock", 50, "--json"))
    assert [each["name"] for each in shown] == ["small.mt"]
    for name in ("cycles", "bound", "bytes", "accelerator_seconds", "clock_mhz"):
        assert shown[0]["totals"][name] == wanted["totals"][name]


def test_networks_programs_and_configurations_are_compared(image, tmp_path):
    good("asm", "examples/matmul.asm", "-o", tmp_path / "matmul.mt")
    good("report", image, tmp_path / "matmul.mt", image)
    runs = data_of(image.with_suffix(".html"))["runs"]
    assert [each["name"] for each in runs] == ["small.mt", "matmul.mt", "small.mt, 2"]
    model = "examples/digits/digits.onnx"
    target = tmp_path / "two.html"
    good("report", model, "--config", "tiny", "--config", "small", "-o", target)
    runs = data_of(target)["runs"]
    assert [each["name"] for each in runs] == ["digits.onnx (tiny)", "digits.onnx (small)"]
    assert runs[0]["totals"]["cycles"] > runs[1]["totals"]["cycles"]


def test_what_cannot_be_written_or_read_is_said_in_a_line(image, tmp_path):
    missing = tmp_path / "nowhere" / "report.html"
    assert f"there is no folder {missing.parent}" in bad("report", image, "-o", missing)
    assert "is an .html file" in bad("report", image, "-o", tmp_path / "report.pdf")
    folder = tmp_path / "folder.html"
    folder.mkdir()
    assert "it is a folder" in bad("report", image, "-o", folder)
    assert "cannot be read" in bad("report", tmp_path / "absent.mt", "-o", tmp_path / "r.html")
    assert "--config is for .tflite and .onnx files" in bad(
        "report", image, "--config", "small", "-o", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_arguments_of_save_report_are_checked(image, tmp_path):
    model = microtron.load(image)
    with pytest.raises(microtron.MicrotronError, match="must be a Model"):
        microtron.save_report("model.mt", tmp_path / "r.html")
    with pytest.raises(microtron.MicrotronError, match="1 to 16 runs, but there are 0"):
        microtron.save_report([], tmp_path / "r.html")
    with pytest.raises(microtron.MicrotronError, match="the run 'b' is 3"):
        microtron.save_report({"a": model, "b": 3}, tmp_path / "r.html")
    with pytest.raises(microtron.MicrotronError, match="clock is -1 MHz"):
        microtron.save_report(model, tmp_path / "r.html", mhz=-1)
    microtron.save_report([model, microtron.inspect(model)], tmp_path / "r.html", title="two")
    shown = data_of(tmp_path / "r.html")
    assert shown["title"] == "two"
    assert [each["name"] for each in shown["runs"]] == ["small", "small (2)"]


@pytest.mark.parametrize("command", ["inspect", "profile", "run"])
def test_other_commands_write_it_too(image, tmp_path, command):
    target = tmp_path / "report.html"
    np.save(tmp_path / "image.npy", np.zeros((1, 3, 3, 2), np.int8))
    more = ["-i", tmp_path / "image.npy"] if command == "run" else []
    printed = good(command, image, *more, "--report", target, "--json")
    json.loads(printed)                     # nothing is said between
    run = data_of(target)["runs"][0]
    assert run["totals"]["cycles"] == microtron.inspect(microtron.load(image)).cycles
    assert "report.html: a report on small.mt" in good(command, image, *more, "--report", target)
    missing = tmp_path / "nowhere" / "report.html"
    assert "there is no folder" in bad(command, image, *more, "--report", missing)


def test_programs_have_reports_where_there_is_a_clock(tmp_path):
    target = tmp_path / "report.html"
    good("profile", "examples/matmul.asm", "--report", target, "--clock", 25)
    assert data_of(target)["runs"][0]["totals"]["clock_mhz"] == 25
    said = bad("run", "examples/matmul.asm", "--report", target)
    assert "--report is for the cycle or rtl device, not for functional" in said
    good("run", "examples/matmul.asm", "--device", "cycle", "--report", target)
    program = microtron.load_program("examples/matmul.asm")
    assert data_of(target)["runs"][0]["totals"]["cycles"] == microtron.simulate(program).cycles


def test_compile_and_quantize_write_it_too(tmp_path):
    model, target = "examples/digits/digits_float.onnx", tmp_path / "report.html"
    good("quantize", model, "--data", "examples/digits/digits_samples.npz", "--techniques", "",
         "--method", "minmax", "--config", "tiny", "-o", tmp_path / "int8.onnx", "--report", target)
    found = data_of(target)
    assert found["tables"][0]["title"] == "Quantization"
    assert len(found["tables"][0]["rows"]) == len(found["tables"][0]["bars"]) > 0
    levels = [float(row[2].removesuffix(" dB")) for row in found["tables"][0]["rows"]]
    assert levels == sorted(levels)                 # what hurts most comes first
    points = found["plots"][0]["series"][0]["points"]
    assert sorted(round(each["y"], 1) for each in points) == levels
    assert [each["label"].partition(" (")[0] for each in points] != [
        row[0] for row in found["tables"][0]["rows"]]       # but here in the network's order
    said = bad("quantize", model, "--data", "examples/digits/digits_samples.npz", "--config",
               "none", "--report", target)
    assert "needs a configuration" in said
    good("compile", tmp_path / "int8.onnx", "--config", "tiny", "--report", target)
    again = data_of(target)["runs"]
    assert again[0]["totals"]["cycles"] == found["runs"][0]["totals"]["cycles"]
    assert again[0]["name"] == "int8.onnx"
