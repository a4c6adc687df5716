"""The demo: what it says about the network is right."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import microtron
from microtron.base.errors import MicrotronError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def demo():
    specification = importlib.util.spec_from_file_location(
        "digits_demo", ROOT / "examples" / "digits_demo.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["digits_demo"] = module         # dataclasses look there
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def quantized(demo):
    return demo.quantize()


def test_digits_are_told_apart_cycle_by_cycle(demo, quantized):
    assert quantized.report.outputs["scores"] > 36          # decibels
    model = microtron.compile(quantized.graph, "base")
    images, labels = demo.digits(120)
    exact = demo.classify(model, images, labels, "cycle")
    assert exact.accuracy >= 0.98
    assert exact.cycles == model.run(images[7]).cycles
    assert 0.1 < exact.utilization < 1
    fast = demo.classify(model, images, labels, "functional")
    assert (fast.right, fast.cycles) == (exact.right, 0)


def test_the_demo_says_what_ran_where_how_long_and_how_well(demo, quantized, monkeypatch, capsys):
    monkeypatch.setattr(demo, "quantize", lambda progress: quantized)
    monkeypatch.setattr(sys, "argv", ["digits_demo.py", "--digits", "9", "--config", "small"])
    monkeypatch.setenv("COLUMNS", "80")
    demo.main()
    text = capsys.readouterr().out
    for part in (r"of 9 right: [\d.]+%", r"[\d,]+ a digit", r"[\d.]+ dB SQNR",
                 r"[\d.]+% of the MAC array", "conv2d",
                 "real arithmetic runs on"):
        assert re.search(part, text), part
    assert max(map(len, text.splitlines())) <= 80


def test_digits_that_are_not_there_are_refused(demo):
    for count in (0, 361):
        with pytest.raises(MicrotronError, match=f"--digits is {count}, but must be from 1 to 360"):
            demo.digits(count)
