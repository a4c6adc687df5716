"""`microtron report` and the option --report: a file, or one line on what is wrong."""

from __future__ import annotations

import json
import re

import pytest

import microtron

from ..command import bad, good
from ..runtime.small_model import small_graph


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "small.mt"
    microtron.compile(small_graph(), "tiny").save(path)
    return path


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
